"""What each guest needs: one guest is one node of one replica of a workload, with the cores and the
memory that its sizing recorded."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from gpuplan.catalog.model import Gpu, MigProfile, VgpuType
from gpuplan.plan import window
from gpuplan.plan.model import Workload, record
from gpuplan.sharing.partitions import backing, guest_type, partition, per_gpu


@record
class Guest:
    """`gpus` counts whole GPUs, or vGPUs of `vgpu`; cores and pages of memory are for each.
    One that is `networked` gets a function of a network card beside each GPU, which is to carry
    `port_bytes_per_s` where that is known."""

    name: str
    workload: Workload
    gpu: Gpu
    vgpu: VgpuType | None
    gpus: int
    cores: int
    pages: int
    scratch_bytes: int
    between_hosts: bool
    networked: bool
    port_bytes_per_s: float | None

    @property
    def per_gpu(self) -> int:
        """Guests of this kind that one GPU can have."""
        return per_gpu(self.vgpu)

    @property
    def profile(self) -> MigProfile | None:
        """The MIG profile of the instance that the vGPU stands on."""
        return backing(self.vgpu, self.gpu)

    @property
    def share(self) -> Fraction:
        """The least part of a GPU that one of its devices takes."""
        if self.profile is not None:
            return Fraction(self.profile.memory_slices, self.gpu.mig_slices)
        return Fraction(1, self.per_gpu)


def guests(
    workload: Workload, gpu: Gpu, fabric_bytes_per_s: float | None = None
) -> Iterator[Guest]:
    """All guests of a workload: replica by replica, node by node. `fabric_bytes_per_s`: what each
    GPU has of the platform's fabric, which reaches guests with whole GPUs."""
    gpus, fabric = workload.gpus_per_node, fabric_bytes_per_s is not None
    for ordinal in range(workload.members):
        yield Guest(
            name=f"{workload.oldest_name}-{ordinal}",
            workload=workload,
            gpu=gpu,
            vgpu=guest_type(partition(workload.partition, gpu), gpu),
            gpus=gpus,
            cores=-(-workload.resources.cpu_cores // gpus),
            pages=window.pages(workload.resources.host_memory_bytes / gpus),
            scratch_bytes=workload.resources.scratch_bytes,
            between_hosts=workload.nodes_per_replica > 1,
            networked=workload.nodes_per_replica > 1 or (fabric and workload.partition is None),
            port_bytes_per_s=fabric_bytes_per_s,
        )
