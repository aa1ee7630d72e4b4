"""The catalogue's GPUs as the packer takes them: whole, in MIG instances, in vGPUs."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from gpuplan.catalog.model import Gpu, MigProfile
from gpuplan.packing.problem import GpuModel, Mode, Option, Part
from gpuplan.plan.records import record

MIG = "mig"
VGPU = "vgpu"


@record
class Share:
    """What an item wants of one GPU: memory, part of the compute units, an engine for video."""

    memory_bytes: int
    compute: float = 0.0
    media: bool = False
    sharing: tuple[str, ...] = (MIG, VGPU)


def gpu_model(gpu: Gpu, *, virtual: bool) -> GpuModel:
    """`virtual`: all its hosts are hypervisors, so that it can be given out as vGPUs."""
    modes = [*_mig(gpu), *(_vgpu(gpu) if virtual else ())]
    return GpuModel(
        name=gpu.identifier, memory_bytes=int(gpu.memory_bytes.value), modes=tuple(modes)
    )


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


def _vgpu(gpu: Gpu) -> Iterator[Mode]:
    """Types of one size a GPU. Types that stand on a MIG instance are their instance."""
    parts = [
        Part(
            name=t.name,
            memory_bytes=t.memory_bytes,
            starts=(),
            size=1,
            compute=0,
            maximum=t.maximum,
        )
        for t in gpu.vgpu_types
        if t.mig_profile is None and t.maximum > 1
    ]
    if parts:
        yield Mode(
            name=VGPU, kind="vgpu", units=0, compute_units=0, uniform=True, parts=tuple(parts)
        )


def held_by(partition: str, gpu: Gpu) -> tuple[str, str]:
    """The mode and the part that a partition of the sizing is: a type on MIG is its instance."""
    if any(p.name == partition for p in gpu.mig_profiles):
        return MIG, partition
    backing = next((t.mig_profile for t in gpu.vgpu_types if t.name == partition), None)
    return (VGPU, partition) if backing is None else (MIG, backing)


def shares(
    model: GpuModel, want: Share, cores: int, memory_bytes: int, functions: int
) -> Iterator[Option]:
    """The smallest MIG profile, every vGPU size that is enough, the whole GPU; smallest first."""
    for mode in (m for m in model.modes if m.kind in want.sharing):
        fitting = sorted((p for p in mode.parts if _enough(mode, p, want)), key=_order)
        for part in fitting if mode.uniform else fitting[:1]:
            yield Option(
                gpu=model.name,
                mode=mode.name,
                part=part.name,
                cores=cores,
                memory_bytes=memory_bytes,
                functions=functions,
            )
    if want.memory_bytes <= model.memory_bytes and not want.media:
        yield whole(model.name, 1, cores, memory_bytes, functions)


def whole(gpu: str, gpus: int, cores: int, memory_bytes: int, functions: int) -> Option:
    return Option(gpu=gpu, gpus=gpus, cores=cores, memory_bytes=memory_bytes, functions=functions)


def _enough(mode: Mode, part: Part, want: Share) -> bool:
    """A vGPU has at worst an equal part of its GPU's compute."""
    compute = 1 / part.maximum if mode.uniform else part.compute / mode.compute_units
    rounding = 1e-9
    return (
        part.memory_bytes >= want.memory_bytes
        and compute + rounding >= want.compute
        and (mode.uniform or part.size < mode.units)
        and part.media == ("+me" if want.media else "")
    )


def _order(part: Part) -> tuple[int, int, int, str]:
    return (part.size, part.compute, part.memory_bytes, part.name)


def virtual_gpus(hosts: Collection[tuple[str, bool]]) -> frozenset[str]:
    """Of (GPU type, its host is a hypervisor): the types that no other host has."""
    return frozenset(g for g, _ in hosts) - {g for g, virtual in hosts if not virtual}
