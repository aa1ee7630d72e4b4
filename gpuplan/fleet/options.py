"""The catalogue's GPUs as the packer takes them, and what of them is enough for an item."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.catalog.model import Gpu
from gpuplan.fleet.problem import GpuModel, Option
from gpuplan.frozen import record
from gpuplan.sharing.modes import PROTECTED, HostSharing, Mode, Part, Way, modes


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
        and mode.compute_share(part) + rounding >= wanted.compute
        and (mode.uniform or part.size < mode.units)
        and part.extension == ("+me" if wanted.media else "")
    )


def _order(part: Part) -> tuple[int, int, int, str]:
    return (part.size, part.compute, part.memory_bytes, part.name)
