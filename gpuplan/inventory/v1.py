"""The inventory, version 1: the machines there are.

For Kubernetes a host needs its GPUs, cores and memory; for a hypervisor also its NUMA nodes, PCI
addresses and the pools that guests' disks and bridges come from.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from gpuplan.manifest.base import Count, Document, GpusOfNode, Text
from gpuplan.manifest.quantities import Bytes, BytesPerSecond, UsdPerHour

API_VERSION = "gpuplan.dev/inventory/v1"


def _ascending(cpus: str) -> str:
    for part in cpus.split(","):
        first, _, last = part.partition("-")
        if last and int(last) < int(first):
            raise ValueError(f"'{part}' runs backwards, write {last}-{first}")
    return cpus


HostName = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$",
        description="Lower-case letters, digits, '-' and '.'.",
    ),
]
PciAddress = Annotated[
    str, Field(pattern=r"^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$", examples=["0000:1b:00.0"])
]
CpuList = Annotated[
    str,
    Field(
        pattern=r"^[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*$",
        max_length=4096,
        description="CPUs as `lscpu` prints them, like 0-55,112-167; none is above 9999.",
    ),
    AfterValidator(_ascending),
]
Index = Annotated[int, Field(ge=0, le=65535)]


class NumaNodeSpec(Document):
    """`cpus` as `lscpu` prints them; `siblings` says how threads of a core are numbered: `split`
    (first all first threads, then all second ones) or `adjacent`."""

    cpus: CpuList
    siblings: Literal["split", "adjacent"] = "split"
    memory: Bytes
    distances: list[Count] | None = None


class Device(Document):
    address: PciAddress | None = None
    numa_node: Index | None = None
    iommu_group: Index | None = None
    switch: str | None = Field(None, description="Devices with one name share a PCIe switch.")


class GpuSpec(Device):
    """`virtual_functions` are the functions that vGPUs are given to guests through. `module_id` is
    the GPU's number on an NVSwitch board, which `nvidia-smi -q` prints as "Module ID"."""

    type: Text
    count: GpusOfNode | None = Field(
        None, description="Equal GPUs, where addresses are not needed."
    )
    virtual_functions: list[PciAddress] = []
    module_id: Annotated[int, Field(ge=1, le=16)] | None = None


class NicSpec(Device):
    """`virtual_functions` by address where guests get them; elsewhere their number is enough."""

    type: Text
    bandwidth: BytesPerSecond | None = Field(
        None, description="Stated of every card of a host, they bound what its GPUs exchange."
    )
    virtual_functions: Index | list[PciAddress] = 0
    vlan: Annotated[int, Field(ge=1, le=4094)] | None = None


class NvmeSpec(Device):
    size: Bytes


class HypervisorSpec(Document):
    """Where guests' disks and network come from: a block device or file path prefix, a bridge."""

    disk_path: Annotated[str, Field(pattern=r"^/[A-Za-z0-9._/-]+$")]
    bridge: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,15}$")]
    reserved_cores: Count | None = Field(
        None, description="Physical cores of each NUMA node that the host keeps; otherwise 2."
    )
    reserved_memory: Bytes | None = Field(
        None,
        description="Memory of each NUMA node that the host keeps; otherwise a sixteenth of the "
        "node, at least 8 GiB.",
    )


class HostSpec(Document):
    """One kind of host; `names` lists all hosts of this kind."""

    names: Annotated[list[HostName], Field(min_length=1)]
    node_type: Text | None = None
    cpu_vendor: Literal["intel", "amd", "arm"] | None = None
    physical_address_bits: Annotated[int, Field(ge=36, le=57)] | None = None
    sockets: Count | None = None
    threads_per_core: Annotated[int, Field(ge=1, le=2)] = 2
    cpu_cores: Count | None = Field(
        None, description="Physical cores, where NUMA is not described."
    )
    memory: Bytes | None = None
    numa_nodes: list[NumaNodeSpec] = []
    gpus: Annotated[list[GpuSpec], Field(min_length=1)]
    nics: list[NicSpec] = []
    nvme: list[NvmeSpec] = []
    hypervisor: HypervisorSpec | None = None
    price: UsdPerHour | None = Field(None, description="What one host costs.")


class Inventory(Document):
    api_version: Literal["gpuplan.dev/inventory/v1"] = Field(alias="apiVersion")
    name: Text
    hosts: Annotated[list[HostSpec], Field(min_length=1)]
