"""The catalogue's GPUs as the packer takes them, and what of them is enough for an item."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.catalog.model import Gpu
from gpuplan.fleet.problem import GpuModel, Option
from gpuplan.frozen import record
from gpuplan.plan.partitions import PartitionName
from gpuplan.sharing.modes import PROTECTED, HostSharing, Mode, ModeName, Part, Way, modes
from gpuplan.sharing.partitions import GpuPartition, backing


@record
class PartRequest:
    """What an item wants of one GPU: memory, part of the compute units, an engine for video."""

    memory_bytes: int
    compute: float = 0.0
    media: bool = False
    ways: tuple[Way, ...] = PROTECTED


def gpu_model(gpu: Gpu, hosts: HostSharing) -> GpuModel:
    return GpuModel(
        name=gpu.identifier,
        memory_bytes=int(gpu.memory_bytes.value),
        modes=tuple(modes(gpu, hosts)),
    )


def held_by(share: GpuPartition, gpu: Gpu) -> tuple[ModeName, PartitionName]:
    """The mode and the part that a partition of the sizing is: a type on MIG is its instance. The
    sizing counts on a vGPU's share of the compute, which only vGPUs of one size have."""
    profile = backing(share, gpu)
    return ("vgpu", share.name) if profile is None else ("mig", profile.name)


def shares(
    model: GpuModel, wanted: PartRequest, cores: int, memory_bytes: int, functions: int
) -> Iterator[Option]:
    """The smallest MIG profile, the smallest vGPU among mixed ones, every size of vGPU where all
    are equal, a time slice, the whole GPU; smallest first."""
    for mode in (m for m in model.modes if m.way in wanted.ways):
        fitting = sorted((p for p in mode.parts if _enough(mode, p, wanted)), key=_order)
        for part in fitting if mode.uniform else fitting[:1]:
            yield Option(
                gpu=model.name,
                mode=mode.name,
                part=part.name,
                cores=cores,
                memory_bytes=memory_bytes,
                functions=functions,
            )
    if wanted.memory_bytes <= model.memory_bytes and not wanted.media:
        yield whole(model.name, 1, cores, memory_bytes, functions)


def whole(gpu: str, gpus: int, cores: int, memory_bytes: int, functions: int) -> Option:
    return Option(gpu=gpu, gpus=gpus, cores=cores, memory_bytes=memory_bytes, functions=functions)


def _enough(mode: Mode, part: Part, wanted: PartRequest) -> bool:
    rounding = 1e-9
    return (
        part.memory_bytes >= wanted.memory_bytes
        and _compute(mode, part) + rounding >= wanted.compute
        and (mode.uniform or part.size < mode.units)
        and part.extension == ("+me" if wanted.media else "")
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
