"""The ways in which a GPU can be shared: MIG instances, vGPUs of one size or of several, time
slices. A GPU is in one mode as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from gpuplan.catalog.model import Gpu, MigProfile, VgpuType
from gpuplan.frozen import record
from gpuplan.plan.partitions import MigExtension

Way = Literal["mig", "vgpu", "time-slice"]
ModeName = Literal["mig", "vgpu", "vgpu-mixed", "time-slice"]
PROTECTED: tuple[Way, ...] = ("mig", "vgpu")  # parts whose memory nobody else on the GPU sees


@record
class Part:
    """A size in which a GPU can be shared. It takes `size` units from one of `starts`, `compute`
    of the mode's compute units, and stands at most `maximum` times on a GPU. In a uniform mode only
    `maximum` counts."""

    name: str
    memory_bytes: int
    starts: tuple[int, ...]
    size: int
    compute: int
    maximum: int
    extension: MigExtension = ""


@record
class Mode:
    """One way of sharing a GPU: MIG (`units` memory slices), vGPUs of mixed sizes (`units` of
    placement), vGPUs or time slices of one size (`uniform`)."""

    name: ModeName
    way: Way
    units: int
    compute_units: int
    uniform: bool
    parts: tuple[Part, ...]

    def compute_share(self, part: Part) -> float:
        """How much of the GPU's compute is sure. Of equal vGPUs and slices each has at worst an
        equal part. Mixed vGPUs cannot have fixed shares: at worst each is one of as many as
        fit."""
        if self.uniform:
            return 1 / part.maximum
        if self.compute_units:
            return part.compute / self.compute_units
        return 1 / max(p.maximum for p in self.parts)


@record
class HostSharing:
    """How hosts share their GPUs beside MIG: as vGPUs (hypervisors), as vGPUs of mixed sizes too,
    in so many time slices (0: in none)."""

    virtual: bool = False
    mixed: bool = False
    slices: int = 0


def modes(gpu: Gpu, hosts: HostSharing) -> Iterator[Mode]:
    """The modes of `gpu` that have a part."""
    ways = (
        _placed("mig", gpu.mig_slices, map(mig_part, gpu.mig_profiles)),
        _uniform("vgpu", _equal_vgpus(gpu) if hosts.virtual else ()),
        _mixed_vgpus(gpu) if hosts.mixed else None,
        _uniform("time-slice", [_slice(gpu, hosts.slices)] if hosts.slices else ()),
    )
    yield from (mode for mode in ways if mode is not None and mode.parts)


def _placed(name: Literal["mig", "vgpu-mixed"], units: int, parts: Iterable[Part]) -> Mode:
    every = tuple(parts)
    return Mode(
        name=name,
        way="mig" if name == "mig" else "vgpu",
        units=units,
        compute_units=max((p.compute for p in every), default=0),
        uniform=False,
        parts=every,
    )


def _uniform(way: Literal["vgpu", "time-slice"], parts: Iterable[Part]) -> Mode:
    return Mode(name=way, way=way, units=0, compute_units=0, uniform=True, parts=tuple(parts))


def mig_part(profile: MigProfile) -> Part:
    return Part(
        name=profile.name,
        memory_bytes=profile.memory_bytes,
        starts=profile.starts,
        size=profile.memory_slices,
        compute=profile.compute_slices,
        maximum=profile.maximum,
        extension=profile.extension,
    )


def _time_sliced(gpu: Gpu) -> Iterator[VgpuType]:
    """Types that share the GPU. Those that stand on a MIG instance are their instance."""
    yield from (t for t in gpu.vgpu_types if t.mig_profile is None and t.maximum > 1)


def _equal_vgpus(gpu: Gpu) -> Iterator[Part]:
    return (_equal(t.name, t.memory_bytes, t.maximum) for t in _time_sliced(gpu))


def _equal(name: str, memory_bytes: int, maximum: int) -> Part:
    return Part(name=name, memory_bytes=memory_bytes, starts=(), size=1, compute=0, maximum=maximum)


def _mixed_vgpus(gpu: Gpu) -> Mode | None:
    """Types of several sizes on a GPU, each at a placement that NVIDIA lists."""
    region = gpu.vgpu_host.region if gpu.vgpu_host else None
    if region is None:
        return None
    parts = (
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
    )
    return _placed("vgpu-mixed", region, parts)


def holds_mixed(gpu: Gpu) -> bool:
    """Whether a source says where vGPUs of several sizes stand on the GPU."""
    mode = _mixed_vgpus(gpu)
    return mode is not None and bool(mode.parts)


def _slice(gpu: Gpu, number: int) -> Part:
    """A replica of the device plugin. Nothing keeps their memory apart, so each is counted with an
    equal part of it."""
    return _equal(f"slice-of-{number}", int(gpu.memory_bytes.value) // number, number)
