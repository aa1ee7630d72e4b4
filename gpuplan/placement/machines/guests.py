"""What each guest needs: one guest is one node of one replica of a workload.

A whole GPU gets 4 to 8 physical cores, and memory of at least 32 GiB and of the GPU's own size: the
window that the policies check. A part of a GPU gets what the sizing says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from gpuplan.catalog.model import Gpu, MigProfile, VgpuType
from gpuplan.plan.model import Workload, record
from gpuplan.sharing.partitions import profile_of
from gpuplan.units import GIB

CORES_PER_GPU = (4, 8)
MEMORY_PER_GPU = 32 * GIB
MEMORY_PER_GPU_FLOOR = 16 * GIB


@record
class Guest:
    """`gpus` counts whole GPUs, or vGPUs of `vgpu`; cores and memory are for each of them. Below
    the floor a guest does not run."""

    name: str
    workload: Workload
    gpu: Gpu
    vgpu: VgpuType | None
    gpus: int
    cores: int
    memory_bytes: int
    memory_floor_bytes: int
    fixed_cores: bool
    fixed_memory: bool
    scratch_bytes: int
    between_hosts: bool

    @property
    def per_gpu(self) -> int:
        """Guests of this kind that one GPU can have."""
        return self.vgpu.maximum if self.vgpu else 1

    @property
    def profile(self) -> MigProfile | None:
        """The MIG profile of the instance that the vGPU stands on."""
        backing = self.vgpu.mig_profile if self.vgpu else None
        return profile_of(backing, self.gpu)

    @property
    def share(self) -> Fraction:
        """The least part of a GPU that one of its devices takes."""
        if self.profile is not None:
            return Fraction(self.profile.memory_slices, self.gpu.mig_slices)
        return Fraction(1, self.per_gpu)


def ceil_gib(size: float) -> int:
    rounded: int = math.ceil(size / GIB) * GIB
    return rounded


def partition_of(workload: Workload, gpu: Gpu) -> VgpuType | None:
    """The vGPU type that the partition names, or that is backed by the MIG profile it names. None
    for a workload on whole GPUs, and for a name that the GPU does not know."""
    wanted = workload.partition
    if wanted is None:
        return None
    named = [t for t in gpu.vgpu_types if t.name == wanted]
    backed = [t for t in gpu.vgpu_types if t.mig_profile == wanted]
    return next(iter(named + backed), None)


def guests(workload: Workload, gpu: Gpu, vgpu: VgpuType | None) -> Iterator[Guest]:
    """All guests of a workload: replica by replica, node by node."""
    gpus = workload.gpus_per_node
    fixed = {o.quantity.rpartition(".")[2] for o in workload.overrides}
    cores = math.ceil(workload.resources.cpu_cores / gpus)
    memory = ceil_gib(workload.resources.memory_bytes / gpus)
    fixed_cores, fixed_memory = "cpu_cores_per_gpu" in fixed, "host_memory_per_gpu" in fixed
    if vgpu is None:
        cores = cores if fixed_cores else min(max(cores, CORES_PER_GPU[0]), CORES_PER_GPU[1])
        least = max(MEMORY_PER_GPU, ceil_gib(gpu.memory_bytes.value))
        floor = MEMORY_PER_GPU_FLOOR
    else:
        least = ceil_gib(vgpu.memory_bytes)
        floor = ceil_gib(MEMORY_PER_GPU_FLOOR / vgpu.maximum)
    memory = memory if fixed_memory else max(memory, least)
    for ordinal in range(workload.replicas * workload.nodes_per_replica):
        yield Guest(
            name=f"{workload.name}-{ordinal}",
            workload=workload,
            gpu=gpu,
            vgpu=vgpu,
            gpus=gpus,
            cores=max(1, cores),
            memory_bytes=memory,
            memory_floor_bytes=min(floor, memory),
            fixed_cores=fixed_cores,
            fixed_memory=fixed_memory,
            scratch_bytes=workload.resources.scratch_bytes,
            between_hosts=workload.nodes_per_replica > 1,
        )
