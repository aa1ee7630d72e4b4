"""The ways in which a GPU can be shared: MIG instances, vGPUs, time slices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuplan.catalog.model import Gpu, MigProfile, VgpuType
from gpuplan.fleet.problem import Mode, Part
from gpuplan.plan.records import record

MIG = "mig"
VGPU = "vgpu"
VGPU_MIXED = "vgpu-mixed"
TIME_SLICE = "time-slice"


@record
class Sharing:
    """How hosts share their GPUs beside MIG: as vGPUs (hypervisors), as vGPUs of mixed sizes too,
    in so many time slices (0: in none)."""

    virtual: bool = False
    mixed: bool = False
    slices: int = 0


def common(hosts: Iterable[Sharing]) -> Sharing:
    """What all hosts of a GPU type can do: an item may come to stand on any of them."""
    every = tuple(hosts)
    slices = {s.slices for s in every}
    return Sharing(
        virtual=all(s.virtual for s in every),
        mixed=all(s.mixed for s in every),
        slices=slices.pop() if len(slices) == 1 else 0,
    )


def modes(gpu: Gpu, sharing: Sharing) -> Iterator[Mode]:
    yield from _mig(gpu)
    if sharing.virtual:
        yield from _vgpu(gpu)
    if sharing.mixed:
        yield from _mixed(gpu)
    if sharing.slices:
        yield _slices(gpu, sharing.slices)


def _mig(gpu: Gpu) -> Iterator[Mode]:
    if not gpu.mig_profiles:
        return
    parts = [
        Part(
            name=p.name,
            memory_bytes=p.memory_bytes,
            starts=p.starts,
            size=p.memory_slices,
            compute=p.compute_slices,
            maximum=p.maximum,
            media=media(p),
        )
        for p in gpu.mig_profiles
    ]
    units = max(p.compute_slices for p in gpu.mig_profiles)
    yield Mode(
        name=MIG,
        kind="mig",
        units=gpu.mig_slices,
        compute_units=units,
        uniform=False,
        parts=tuple(parts),
    )


def media(profile: MigProfile) -> str:
    """`+me`, `+me.all`, `-me`, `+gfx`, as the profile's name ends; or nothing."""
    for sign in "+-":
        _, found, claim = profile.name.partition(sign)
        if found:
            return sign + claim
    return ""


def _time_sliced(gpu: Gpu) -> Iterator[VgpuType]:
    """Types that share the GPU. Those that stand on a MIG instance are their instance."""
    yield from (t for t in gpu.vgpu_types if t.mig_profile is None and t.maximum > 1)


def _vgpu(gpu: Gpu) -> Iterator[Mode]:
    """Types of one size a GPU."""
    parts = [_uniform(t.name, t.memory_bytes, t.maximum) for t in _time_sliced(gpu)]
    if parts:
        yield Mode(
            name=VGPU, kind="vgpu", units=0, compute_units=0, uniform=True, parts=tuple(parts)
        )


def _uniform(name: str, memory_bytes: int, maximum: int) -> Part:
    return Part(name=name, memory_bytes=memory_bytes, starts=(), size=1, compute=0, maximum=maximum)


def _mixed(gpu: Gpu) -> Iterator[Mode]:
    """Types of several sizes on a GPU, each at a placement that NVIDIA lists."""
    region = gpu.vgpu_host.region if gpu.vgpu_host else None
    parts = [
        Part(
            name=t.name,
            memory_bytes=t.memory_bytes,
            starts=t.placements,
            size=t.placement_size,
            compute=0,
            maximum=t.mixed_maximum,
        )
        for t in _time_sliced(gpu)
        if t.mixed_maximum and t.placement_size and t.placements
    ]
    if parts and region:
        yield Mode(
            name=VGPU_MIXED,
            kind="vgpu",
            units=region,
            compute_units=0,
            uniform=False,
            parts=tuple(parts),
        )


def holds_mixed(gpu: Gpu) -> bool:
    """Whether a source says where vGPUs of several sizes stand on the GPU."""
    return any(_mixed(gpu))


def _slices(gpu: Gpu, number: int) -> Mode:
    """Replicas of the device plugin. Nothing keeps their memory apart, so each is counted with an
    equal part of it."""
    part = _uniform(f"slice-of-{number}", int(gpu.memory_bytes.value) // number, number)
    return Mode(
        name=TIME_SLICE, kind="time-slice", units=0, compute_units=0, uniform=True, parts=(part,)
    )
