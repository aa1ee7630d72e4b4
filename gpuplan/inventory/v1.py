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
PciId = Annotated[str, Field(pattern=r"^[0-9a-f]{4}:[0-9a-f]{4}$", examples=["10de:2330"])]
DeviceName = Annotated[str, Field(pattern=r"^(gpu|nic)[0-9]{1,4}$")]
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

UNKNOWN = "unknown"  # the type of a device that no text names


class NumaNodeSpec(Document):
    """`cpus` as `lscpu` prints them; `siblings` says how threads of a core are numbered: `split`
    (first all first threads, then all second ones), `adjacent`, or the CPUs of each core. A device
    names its node by the place in the list; `node` is the kernel's number where that differs.
    A node without CPUs is memory alone, such as a GPU's, and never a guest's."""

    node: Index | None = None
    socket: Index | None = None
    cpus: CpuList | None = None
    siblings: Literal["split", "adjacent"] | list[CpuList] = "split"
    memory: Bytes | None = Field(None, description="Needed for guests; absent where nobody said.")
    distances: list[Count] | None = None


class Device(Document):
    """`product` and `pci_id` (vendor:device) are what the card says of itself; `parent` is the PCIe
    bridge above it, one of the host's `bridges`."""

    address: PciAddress | None = None
    product: Text | None = None
    pci_id: PciId | None = None
    numa_node: Index | None = None
    iommu_group: Index | None = None
    switch: str | None = Field(None, description="Devices with one name share a PCIe switch.")
    parent: PciAddress | None = None


class GpuSpec(Device):
    """`virtual_functions` are the functions that vGPUs are given to guests through. `module_id` is
    the GPU's number on an NVSwitch board, which `nvidia-smi -q` prints as "Module ID".
    `mig_instances` are those there are now, as PROFILE@START, or PROFILE where that is not known.
    GPUs of one `nvlink_domain` reach each other over NVLink, on other hosts too."""

    type: Text
    count: GpusOfNode | None = Field(
        None, description="Equal GPUs, where addresses are not needed."
    )
    virtual_functions: list[PciAddress] = []
    module_id: Annotated[int, Field(ge=1, le=16)] | None = None
    memory: Bytes | None = None
    bar: Bytes | None = Field(None, description="The window to the GPU's memory on the bus.")
    pcie_generation: Annotated[int, Field(ge=1, le=9)] | None = None
    pcie_width: Annotated[int, Field(ge=1, le=32)] | None = None
    nvlinks: Index | None = None
    mig: bool | None = Field(None, description="Whether the GPU is in MIG mode.")
    mig_instances: list[Text] = []
    nvlink_domain: Text | None = None


class NicSpec(Device):
    """`virtual_functions` by address where guests get them; elsewhere their number is enough."""

    type: Text
    bandwidth: BytesPerSecond | None = Field(
        None, description="Stated of every card of a host, they bound what its GPUs exchange."
    )
    virtual_functions: Index | list[PciAddress] = 0
    total_functions: Index | None = Field(None, description="Most virtual functions it can have.")
    name: Text | None = Field(None, description="What the kernel calls it, like mlx5_0.")
    link: Literal["ethernet", "infiniband"] | None = None
    vlan: Annotated[int, Field(ge=1, le=4094)] | None = None


class NvmeSpec(Device):
    size: Bytes | None = Field(None, description="Needed for scratch space of guests.")
    name: Text | None = None


class BridgeSpec(Document):
    """A PCIe bridge: a root port, or a port of a switch."""

    address: PciAddress
    parent: PciAddress | None = None
    product: Text | None = None
    numa_node: Index | None = None


class LinkSpec(Document):
    """How devices reach each other, in the words of `nvidia-smi topo -m`: NV and the number of
    links, PIX, PXB, PHB, NODE, SYS. Devices are `gpu0` or `nic0`, by their places in the lists,
    where an entry with a count has as many. Every two of `between` have the link, or each of
    `between` with each of `to`."""

    link: Annotated[str, Field(pattern=r"^(NV[0-9]{1,2}|PIX|PXB|PHB|NODE|SYS)$")]
    between: Annotated[list[DeviceName], Field(min_length=1)]
    to: list[DeviceName] = []


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
    vgpu_sizes: Literal["equal", "mixed"] = Field(
        "equal",
        description="Whether GPUs may hold vGPUs of several sizes at once, which is switched on by "
        "GPU and leaves vGPUs without fixed shares of the compute; `gpuplan pack` only.",
    )


class HostSpec(Document):
    """One kind of host; `names` lists all hosts of this kind. `gpu_uuids` are the GPUs of each host
    in the order of `gpus`. A host that `virtualization` names is a guest itself."""

    names: Annotated[list[HostName], Field(min_length=1)]
    node_type: Text | None = None
    virtualization: Text | None = None
    architecture: Text | None = None
    cpu_model: Text | None = None
    driver_version: Text | None = None
    iommu: bool | None = Field(None, description="Whether the kernel runs with an IOMMU.")
    kernel_parameters: Text | None = None
    cpu_vendor: Literal["intel", "amd", "arm"] | None = None
    physical_address_bits: Annotated[int, Field(ge=36, le=57)] | None = None
    sockets: Count | None = None
    threads_per_core: Annotated[int, Field(ge=1, le=8)] = 2
    cpu_cores: Count | None = Field(
        None, description="Physical cores, where NUMA is not described."
    )
    memory: Bytes | None = None
    numa_nodes: list[NumaNodeSpec] = []
    gpus: list[GpuSpec]
    nics: list[NicSpec] = []
    nvme: list[NvmeSpec] = []
    bridges: list[BridgeSpec] = []
    links: list[LinkSpec] = []
    gpu_uuids: dict[HostName, list[Text | None]] = {}
    hypervisor: HypervisorSpec | None = None
    price: UsdPerHour | None = Field(None, description="What one host costs.")
    time_slices: Annotated[int, Field(ge=2, le=64)] | None = Field(
        None,
        description="Time slices that each GPU is offered as, the 'replicas' of NVIDIA's device "
        "plugin; `gpuplan pack` only.",
    )


class Inventory(Document):
    api_version: Literal["gpuplan.dev/inventory/v1"] = Field(alias="apiVersion")
    name: Text
    hosts: Annotated[list[HostSpec], Field(min_length=1)]
