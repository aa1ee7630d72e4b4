"""The layout of a pool's GPUs from the partition that its workloads name."""

from __future__ import annotations

from gpuplan.catalog.model import Gpu, MigProfile, VgpuType
from gpuplan.placement.mig import uniform
from gpuplan.plan.model import PartitionLayout


def known_partitions(gpu: Gpu) -> tuple[str, ...]:
    return tuple(p.name for p in gpu.mig_profiles) + tuple(t.name for t in gpu.vgpu_types)


def layout_of(partition: str, gpu: Gpu) -> PartitionLayout | None:
    """Every GPU full of one MIG profile or vGPU type; None for a name that the GPU does not know.
    Resource names: NVIDIA k8s-device-plugin (`+me` is written `.me`) and its KubeVirt sibling."""
    for profile in gpu.mig_profiles:
        if profile.name == partition:
            return _mig(profile)
    for vgpu in gpu.vgpu_types:
        if vgpu.name == partition:
            return vgpu_layout(vgpu, gpu)
    return None


def _mig(profile: MigProfile) -> PartitionLayout:
    return PartitionLayout(
        kind="mig",
        name=profile.name,
        instances=uniform(profile),
        per_gpu=profile.maximum,
        memory_bytes=profile.memory_bytes,
        resource=f"nvidia.com/mig-{profile.name.replace('+', '.')}",
    )


def vgpu_layout(vgpu: VgpuType, gpu: Gpu) -> PartitionLayout:
    backing = next((p for p in gpu.mig_profiles if p.name == vgpu.mig_profile), None)
    return PartitionLayout(
        kind="vgpu",
        name=vgpu.name,
        instances=uniform(backing) if backing else (),
        vgpu_type=vgpu.name,
        per_gpu=vgpu.maximum,
        memory_bytes=vgpu.memory_bytes,
        resource=f"nvidia.com/{vgpu.name}",
    )
