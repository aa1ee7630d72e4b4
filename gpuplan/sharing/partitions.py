"""What the partitions are that workloads name: MIG profiles and vGPU types of a GPU."""

from __future__ import annotations

from collections.abc import Sequence

from gpuplan.catalog.model import Gpu, MigProfile, VgpuType
from gpuplan.plan.model import Partition
from gpuplan.plan.partitions import PartitionName, mig_resource, vgpu_resource
from gpuplan.sharing.mig import layout
from gpuplan.sharing.modes import HostSharing, Mode, Part, modes

GpuPartition = MigProfile | VgpuType


def partitions(gpu: Gpu) -> tuple[GpuPartition, ...]:
    return (*gpu.mig_profiles, *gpu.vgpu_types)


def partition(name: PartitionName | None, gpu: Gpu) -> GpuPartition | None:
    """The partition of that name; None for a whole GPU, and for a name that the GPU has not."""
    return next((p for p in partitions(gpu) if p.name == name), None)


def per_gpu(part: GpuPartition | None) -> int:
    """How many fit one GPU: 1 of a whole one."""
    return 1 if part is None else part.maximum


def backing(part: GpuPartition | None, gpu: Gpu) -> MigProfile | None:
    """The MIG profile of the instance that the partition is, or stands on."""
    if isinstance(part, VgpuType):
        return next((p for p in gpu.mig_profiles if p.name == part.mig_profile), None)
    return part


def held_by(share: GpuPartition, gpu: Gpu) -> tuple[Mode, Part]:
    """The mode and the part that a partition is: a type on MIG is its instance, any other one of
    vGPUs of one size, since only those have a share of the compute that is sure."""
    profile = backing(share, gpu)
    way, name = ("vgpu", share.name) if profile is None else ("mig", profile.name)
    mode = next(m for m in modes(gpu, HostSharing(virtual=True)) if m.name == way)
    return mode, next(p for p in mode.parts if p.name == name)


def guest_type(part: GpuPartition | None, gpu: Gpu) -> VgpuType | None:
    """What a guest is given of the partition: a vGPU, of a MIG profile the type on its instance."""
    if isinstance(part, MigProfile):
        return next((t for t in gpu.vgpu_types if t.mig_profile == part.name), None)
    return part


def same_part(name: str, part: GpuPartition, gpu: Gpu) -> bool:
    """Whether `name` is the MIG profile behind a vGPU type, or the type on a profile's instance."""
    if isinstance(part, MigProfile):
        return any(t.name == name and t.mig_profile == part.name for t in gpu.vgpu_types)
    return part.mig_profile == name


def takes_turns(part: GpuPartition | None) -> bool:
    """Whether those on it take turns on the whole GPU: a vGPU without a MIG instance of its own."""
    return isinstance(part, VgpuType) and part.mig_profile is None and part.maximum > 1


def room_for(vgpu: VgpuType, users: Sequence[VgpuType | None], gpu: Gpu) -> int:
    """How many more vGPUs of the type a GPU takes beside its `users`, of which None has it whole:
    time-sliced ones are all of one type, those on MIG instances of any that a legal layout
    holds."""
    if all(user is not None and user.name == vgpu.name for user in users):
        return vgpu.maximum - len(users)
    profile, beside = backing(vgpu, gpu), [backing(user, gpu) for user in users]
    instances = [p for p in beside if p is not None]
    if profile is None or len(instances) < len(users):
        return 0
    counts = range(vgpu.maximum, 0, -1)
    return next((n for n in counts if layout([*instances, *[profile] * n])), 0)


def mediated(gpu: Gpu) -> bool:
    """Whether its vGPUs are mediated devices of the GPU, and not virtual functions."""
    return gpu.vgpu_host is not None and gpu.vgpu_host.interface == "mediated-device"


def in_pool(part: GpuPartition, count: int) -> Partition:
    """The plan's record of `count` of them in a pool."""
    mig = isinstance(part, MigProfile)
    return Partition(
        kind="mig" if mig else "vgpu",
        name=part.name,
        count=count,
        per_gpu=part.maximum,
        memory_bytes=part.memory_bytes,
        resource=mig_resource(part.name) if mig else vgpu_resource(part.name),
    )
