"""MIG layouts of every GPU of the catalogue against the table of all legal ones."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from gpuplan.catalog.load import load_catalog
from gpuplan.catalog.model import Gpu, MigProfile
from gpuplan.sharing.geometry import reachable
from gpuplan.sharing.mig import layout
from gpuplan.sharing.modes import mig_part

TABLE = Path(__file__).parent / "data" / "mig_layouts.txt"
CATALOG = load_catalog()
Kinds = tuple[str, ...]  # profiles by their compute slices, sorted


def legal() -> dict[int, set[Kinds]]:
    """Legal sets by the memory slices of the GPU."""
    sets: dict[int, set[Kinds]] = {}
    for line in TABLE.read_text().splitlines():
        if line.startswith("["):
            family = sets.setdefault(int(line[1:-1]), set())
        elif not line.startswith("#"):
            parts = [part.partition("*") for part in line.split()]
            family.add(tuple(sorted(k for k, _, n in parts for _ in range(int(n or 1)))))
    return sets


LEGAL = legal()


def gpus() -> list[Gpu]:
    known = [gpu for name in CATALOG.gpu_ids if (gpu := CATALOG.gpu(name)) is not None]
    return [g for g in known if g.mig_slices in LEGAL]


def kind(profile: MigProfile, gpu: Gpu) -> str:
    """`1g`, `1gx2`, `2g+me`: a profile without the memory that is in its name."""
    slices, _, rest = profile.name.partition(".")
    ones = min(p.memory_slices for p in gpu.mig_profiles if p.compute_slices == 1)
    double = profile.compute_slices == 1 and profile.memory_slices == 2 * ones
    return slices + "x2" * double + rest.partition("gb")[2]


def by_kind(gpu: Gpu) -> dict[str, MigProfile]:
    """The profiles of which the table speaks."""
    spoken = {k for kinds in LEGAL[gpu.mig_slices] for k in kinds}
    return {k: p for p in gpu.mig_profiles if (k := kind(p, gpu)) in spoken}


def test_the_table_has_every_family_of_the_catalogue() -> None:
    assert {n: len(sets) for n, sets in LEGAL.items()} == {8: 127, 4: 19, 12: 56}
    assert {g.mig_slices for g in gpus()} == {8, 4, 12}
    assert len(gpus()) >= 16


@pytest.mark.parametrize("gpu", gpus(), ids=lambda g: g.identifier)
def test_exactly_the_legal_sets_have_a_layout(gpu: Gpu) -> None:
    profiles = by_kind(gpu)
    most = gpu.mig_slices if gpu.mig_slices < 12 else 4
    found = {
        kinds
        for count in range(1, most + 1)
        for kinds in itertools.combinations_with_replacement(sorted(profiles), count)
        if layout([profiles[k] for k in kinds]) is not None
    }
    expected = {k for k in LEGAL[gpu.mig_slices] if set(k) <= profiles.keys()}
    assert found == expected
    assert {k for kinds in expected for k in kinds} == set(profiles), "no profile is left out"


@pytest.mark.parametrize("gpu", gpus(), ids=lambda g: g.identifier)
def test_the_packer_fills_gpus_with_exactly_the_legal_sets(gpu: Gpu) -> None:
    """What `compile` places and what `pack` packs are legal by one table."""
    profiles = by_kind(gpu)
    kinds = sorted(profiles)
    packed = reachable([mig_part(profiles[k]) for k in kinds], gpu.mig_slices)
    assert packed is not None
    expected = {k for k in LEGAL[gpu.mig_slices] if set(k) <= profiles.keys()}
    counts = {tuple(Counter(each)[k] for k in kinds) for each in expected}
    assert packed.keys() - {(0,) * len(kinds)} == counts


@pytest.mark.parametrize("gpu", gpus(), ids=lambda g: g.identifier)
def test_every_layout_stands_where_the_driver_would_create_it(gpu: Gpu) -> None:
    """Legal starts, no overlap, three slices first and then from large to small: the MIG User
    Guide's known issue is that the driver finds no room for 3g after smaller ones."""
    profiles = by_kind(gpu)
    names = {p.name: p for p in gpu.mig_profiles}
    for kinds in LEGAL[gpu.mig_slices]:
        instances = layout([profiles[k] for k in kinds if k in profiles])
        assert instances is not None
        taken = [s for i in instances for s in range(i.start, i.start + i.size)]
        assert len(taken) == len(set(taken)), (kinds, instances)
        assert all(i.start in names[i.profile].starts for i in instances)
        order = [(not i.profile.startswith("3g."), -i.size) for i in instances]
        assert order == sorted(order), (kinds, instances)
        assert Counter(i.profile for i in instances) == Counter(profiles[k].name for k in kinds)


@pytest.mark.parametrize(
    ("wanted", "starts"),
    [
        (["3g.20gb", "1g.5gb", "2g.10gb", "1g.5gb"], {"3g.20gb": [4], "2g.10gb": [0]}),
        (["1g.5gb", "2g.10gb", "4g.20gb"], {"4g.20gb": [0], "2g.10gb": [4], "1g.5gb": [6]}),
        (["3g.20gb", "3g.20gb"], {"3g.20gb": [0, 4]}),
        (["4g.20gb", "4g.20gb"], None),
        (["3g.20gb", "4g.20gb", "1g.5gb"], None),
        (["1g.10gb"] * 4 + ["1g.5gb"], None),
    ],
)
def test_the_guides_examples(wanted: Sequence[str], starts: dict[str, list[int]] | None) -> None:
    gpu = CATALOG.gpu("a100-sxm-40gb")
    assert gpu is not None
    profiles = {p.name: p for p in gpu.mig_profiles}
    instances = layout([profiles[name] for name in wanted])
    if starts is None:
        assert instances is None
        return
    assert instances is not None
    for name, expected in starts.items():
        assert sorted(i.start for i in instances if i.profile == name) == expected
