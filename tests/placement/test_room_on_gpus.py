"""What the GPUs of the catalogue take beside what is on them, against every way to stand there."""

from __future__ import annotations

import functools
from itertools import combinations_with_replacement

import pytest

from gpuplan.catalog.load import load_catalog
from gpuplan.catalog.model import Gpu, MigProfile, VgpuType
from gpuplan.sharing.mig import completed, counted, instances, layout
from gpuplan.sharing.modes import HostSharing, modes
from gpuplan.sharing.partitions import (
    backing,
    guest_type,
    partition,
    partitions,
    per_gpu,
    room_for,
    same_part,
    takes_turns,
)

CATALOG = load_catalog()
GPUS = [gpu for name in CATALOG.gpu_ids if (gpu := CATALOG.gpu(name)) and partitions(gpu)]
CUT = [gpu for gpu in GPUS if gpu.mig_profiles]


def names(gpus: list[Gpu]) -> list[str]:
    return [gpu.identifier for gpu in gpus]


def stand(profiles: tuple[MigProfile, ...]) -> bool:
    """Whether instances of these profiles stand on one GPU, by trying every start."""
    extended = [p for p in profiles if p.extension.startswith("+me")]
    if len(extended) > 1 or any(profiles.count(p) > p.maximum for p in profiles):
        return False
    if any(p.extension == "+me.all" for p in profiles) and any(
        p.extension not in {"+me.all", "-me"} for p in profiles
    ):
        return False

    @functools.cache
    def down(place: int, taken: int) -> bool:
        if place == len(profiles):
            return True
        own = (1 << profiles[place].memory_slices) - 1
        return any(
            not own << start & taken and down(place + 1, taken | own << start)
            for start in profiles[place].starts
        )

    return down(0, 0)


@pytest.mark.parametrize("gpu", CUT, ids=names(CUT))
def test_layouts_are_those_that_stand_and_are_filled_up(gpu: Gpu) -> None:
    """Of up to three instances; what they leave is cut until nothing more of them stands."""
    for number in (1, 2, 3):
        for profiles in combinations_with_replacement(gpu.mig_profiles[:8], number):
            legal = layout(profiles)
            assert (legal is not None) == stand(profiles), [p.name for p in profiles]
            if legal is None:
                continue
            assert sorted(i.profile for i in legal) == sorted(p.name for p in profiles)
            full = completed(counted(profiles), profiles)
            most = tuple(p for p, n in full for _ in range(n))
            assert stand(most)
            assert all(most.count(p) >= profiles.count(p) for p in profiles)
            assert not any(stand((*most, p)) for p in set(profiles))
            assert len(instances(full)) == len(most)


@pytest.mark.parametrize("gpu", GPUS, ids=names(GPUS))
def test_a_gpu_takes_as_many_more_as_stand_beside_its_users(gpu: Gpu) -> None:
    for vgpu in gpu.vgpu_types:
        profile = backing(vgpu, gpu)
        assert room_for(vgpu, [], gpu) == vgpu.maximum
        assert room_for(vgpu, [None], gpu) == 0
        assert room_for(vgpu, [vgpu], gpu) == vgpu.maximum - 1
        for other in gpu.vgpu_types[:12]:
            if other == vgpu:
                continue
            beside = backing(other, gpu)
            most = 0
            if profile is not None and beside is not None:
                numbers = range(vgpu.maximum + 1)
                most = max(n for n in numbers if stand((beside, *(profile,) * n)))
            assert room_for(vgpu, [other], gpu) == most, (vgpu.name, other.name)
            assert room_for(vgpu, [other, None], gpu) == 0


@pytest.mark.parametrize("gpu", GPUS, ids=names(GPUS))
def test_vgpus_share_a_gpu_by_turns_or_on_instances_of_mig_as_they_are_listed(gpu: Gpu) -> None:
    """Of those on an instance none is listed beside it, and none that has the GPU alone."""
    found = {mode.name: mode for mode in modes(gpu, HostSharing(virtual=True, mixed=True))}
    turns = [t for t in gpu.vgpu_types if t.mig_profile is None and t.maximum > 1]
    equal = found["vgpu"].parts if "vgpu" in found else ()
    assert [(p.name, p.memory_bytes, p.maximum) for p in equal] == [
        (t.name, t.memory_bytes, t.maximum) for t in turns
    ]
    mixed = found["vgpu-mixed"].parts if "vgpu-mixed" in found else ()
    assert [(p.name, p.starts, p.size, p.maximum) for p in mixed] == [
        (t.name, t.placements, t.placement_size, t.mixed_maximum)
        for t in turns
        if t.placements and t.mixed_maximum
    ]
    cut = found["mig"].parts if "mig" in found else ()
    assert [p.name for p in cut] == [p.name for p in gpu.mig_profiles]
    assert {mode.name for mode in modes(gpu, HostSharing())} == ({"mig"} if cut else set())


@pytest.mark.parametrize("gpu", GPUS, ids=names(GPUS))
def test_partitions_are_found_by_name_and_guests_get_the_type_on_their_instance(gpu: Gpu) -> None:
    assert (partition(None, gpu), per_gpu(None), takes_turns(None)) == (None, 1, False)
    for part in partitions(gpu):
        assert partition(part.name, gpu) == part
        assert per_gpu(part) == part.maximum
        turns = isinstance(part, VgpuType) and part.mig_profile is None and part.maximum > 1
        assert takes_turns(part) == turns
        profile, given = backing(part, gpu), guest_type(part, gpu)
        if isinstance(part, MigProfile):
            assert profile == part
            on_it = [t for t in gpu.vgpu_types if t.mig_profile == part.name]
            assert given == (on_it[0] if on_it else None)
            assert all(same_part(t.name, part, gpu) == (t in on_it) for t in gpu.vgpu_types)
        else:
            assert given == part
            assert (profile.name if profile else None) == part.mig_profile
            assert all(same_part(p.name, part, gpu) == (p == profile) for p in gpu.mig_profiles)
