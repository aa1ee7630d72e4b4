"""The catalogue's GPUs as the packer takes them, and what of them is enough for an item."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.catalog.model import Gpu
from gpuplan.fleet.modes import MIG, VGPU, Sharing, modes
from gpuplan.fleet.problem import GpuModel, Mode, Option, Part
from gpuplan.plan.records import record


@record
class Share:
    """What an item wants of one GPU: memory, part of the compute units, an engine for video."""

    memory_bytes: int
    compute: float = 0.0
    media: bool = False
    sharing: tuple[str, ...] = (MIG, VGPU)


def gpu_model(gpu: Gpu, sharing: Sharing) -> GpuModel:
    return GpuModel(
        name=gpu.identifier,
        memory_bytes=int(gpu.memory_bytes.value),
        modes=tuple(modes(gpu, sharing)),
    )


def held_by(partition: str, gpu: Gpu) -> tuple[str, str]:
    """The mode and the part that a partition of the sizing is: a type on MIG is its instance. The
    sizing counts on a vGPU's share of the compute, which only vGPUs of one size have."""
    if any(p.name == partition for p in gpu.mig_profiles):
        return MIG, partition
    backing = next((t.mig_profile for t in gpu.vgpu_types if t.name == partition), None)
    return (VGPU, partition) if backing is None else (MIG, backing)


def shares(
    model: GpuModel, want: Share, cores: int, memory_bytes: int, functions: int
) -> Iterator[Option]:
    """The smallest MIG profile, the smallest vGPU among mixed ones, every size of vGPU where all
    are equal, a time slice, the whole GPU; smallest first."""
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
    rounding = 1e-9
    return (
        part.memory_bytes >= want.memory_bytes
        and _compute(mode, part) + rounding >= want.compute
        and (mode.uniform or part.size < mode.units)
        and part.media == ("+me" if want.media else "")
    )


def _compute(mode: Mode, part: Part) -> float:
    """The part of the GPU's compute that is sure. Of equal vGPUs and slices each has at worst an
    equal part. Mixed vGPUs cannot have fixed shares: at worst each is one of as many as fit."""
    if mode.uniform:
        return 1 / part.maximum
    if mode.compute_units:
        return part.compute / mode.compute_units
    return 1 / max(p.maximum for p in mode.parts)


def _order(part: Part) -> tuple[int, int, int, str]:
    return (part.size, part.compute, part.memory_bytes, part.name)
