"""What the partitions are that workloads name."""

from __future__ import annotations

from gpuplan.catalog.model import Gpu, MigProfile, VgpuType
from gpuplan.plan.model import Partition


def known_partitions(gpu: Gpu) -> tuple[str, ...]:
    return tuple(p.name for p in gpu.mig_profiles) + tuple(t.name for t in gpu.vgpu_types)


def profile_of(partition: str | None, gpu: Gpu) -> MigProfile | None:
    """The MIG profile of that name, if the GPU has one."""
    return next((p for p in gpu.mig_profiles if p.name == partition), None)


def vgpu_of(partition: str | None, gpu: Gpu) -> VgpuType | None:
    return next((t for t in gpu.vgpu_types if t.name == partition), None)


def mig_partition(profile: MigProfile, count: int) -> Partition:
    """Resource names: NVIDIA k8s-device-plugin, which writes `+me` as `.me`."""
    return Partition(
        kind="mig",
        name=profile.name,
        count=count,
        per_gpu=profile.maximum,
        memory_bytes=profile.memory_bytes,
        resource=f"nvidia.com/mig-{profile.name.replace('+', '.')}",
    )


def vgpu_partition(vgpu: VgpuType, gpus: int) -> Partition:
    """`gpus` full of one type. Resource names: NVIDIA's KubeVirt device plugin."""
    return Partition(
        kind="vgpu",
        name=vgpu.name,
        count=gpus * vgpu.maximum,
        per_gpu=vgpu.maximum,
        memory_bytes=vgpu.memory_bytes,
        resource=f"nvidia.com/{vgpu.name}",
    )
