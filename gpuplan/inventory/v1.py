"""The inventory, version 1: the machines there are.

For Kubernetes a host needs its GPUs, cores and memory; for a hypervisor also its NUMA nodes, PCI
addresses and the pools that guests' disks and bridges come from.
"""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from gpuplan.manifest.base import Count, Document, GpusOfNode, Later, Text
from gpuplan.manifest.quantities import Bytes, BytesPerSecond, UsdPerHour, Watts
from gpuplan.plan.site import GuestSystem, HostSetting


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
HeldInstance = Annotated[
    str, Field(pattern=r"^[1-9]g\.[0-9]+gb[a-z.+-]*@[0-9]:[1-9]$", examples=["1g.20gb@0:2"])
]

JOINED = ("version", "sha256", "ca_cert_hashes")
NEEDED = {"kubeadm": ("version", "ca_cert_hashes"), "k3s": ("version", "sha256"), "slurm": ()}


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


class SharedDevice(Device):
    """A device that the host may use itself, and that only what is stated keeps from guests."""

    in_use: list[Text] | None = Field(
        None,
        description="What the host does with it, like '/ (ext4)', 'lvm', 'default route'; empty: "
        "nothing, so guests may have it; absent: unknown, so they may not.",
    )
    for_guests: bool | None = Field(
        None,
        description="A person's word, over 'in_use': whether guests may have it. The host itself "
        "still refuses a drive that is mounted or held.",
    )

    @property
    def free(self) -> bool:
        """Proven to be free of the host's use, or marked so by a person."""
        return self.in_use == [] if self.for_guests is None else self.for_guests


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
    power_limit: Watts | None = Field(
        None,
        description="Set by whoever's driver has the GPU: the host that shares it, or its guest. "
        "Without it the card's own.",
    )


class NicSpec(SharedDevice):
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
    mtu: Annotated[int, Field(ge=1280, le=9978)] | None = Field(
        None, description="Of the card and of its functions in guests; without it as it is."
    )


class NvmeSpec(SharedDevice):
    size: Bytes | None = Field(None, description="Needed for scratch space of guests.")
    name: Text | None = None


class FunctionSpec(SharedDevice):
    """A function in the IOMMU group of a device above, or on its card. A GPU's sound and USB, which
    are on its card, go to a guest with it; others only if they are free, as a group must."""

    address: PciAddress


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


class ImageSpec(Document):
    """A cloud image that lies on the host, of which guests' root disks are made when they are not
    there. `system` says which packages it takes."""

    path: Annotated[str, Field(pattern=r"^/[A-Za-z0-9._/-]+$")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    system: GuestSystem
    keys: list[Annotated[str, Field(pattern=r"^[a-z0-9@.-]+ [A-Za-z0-9+/=]+( [ -~]*)?$")]] = Field(
        [], description="Public SSH keys of who may log in to the guests."
    )


class JoinSpec(Document):
    """A cluster that the guests become nodes of. Its scheduler starts work in them, so engines are
    not started by themselves. The token, or for Slurm munge's key, stands in no file of the stack:
    each host has it in its file `join-token`."""

    kind: Literal["kubeadm", "k3s", "slurm"]
    server: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?:[0-9]{1,5}$")] = (
        Field(
            description="Host and port of the API server or of slurmctld.",
            examples=["cluster.example.com:6443"],
        )
    )
    version: (
        Annotated[str, Field(pattern=r"^v?[0-9]+\.[0-9]+\.[0-9]+([+~-][A-Za-z0-9.]+)*$")] | None
    ) = Field(
        None,
        description="What guests install: the cluster's release of Kubernetes, or k3s' own, like "
        "v1.34.2+k3s1. Slurm's is that of the image's distribution.",
        examples=["1.34.2"],
    )
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = Field(
        None, description="Of the program `k3s` of that release."
    )
    ca_cert_hashes: list[Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]] = Field(
        [], description="Of the cluster's authority, as `kubeadm token create` prints them."
    )

    @model_validator(mode="after")
    def _complete(self) -> Self:
        needed = NEEDED[self.kind]
        absent = [name for name in needed if not getattr(self, name)]
        extra = [name for name in JOINED if name not in needed and getattr(self, name)]
        needs = f"needs {' and '.join(absent)}" if absent else ""
        has_no = f"has no {' and no '.join(extra)}" if extra else ""
        if needs or has_no:
            raise ValueError(f"{self.kind} {', and '.join(filter(None, (needs, has_no)))}")
        return self


class HypervisorSpec(Document):
    """Where guests' disks and network come from: a block device or file path prefix, a bridge."""

    disk_path: Annotated[str, Field(pattern=r"^/[A-Za-z0-9._/-]+$")]
    bridge: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,15}$")]
    reserved_cores: Count | None = Field(
        None,
        description="Physical cores of each NUMA node that the host keeps; otherwise 2, which of "
        "a node with GPUs the nearest one without keeps where it has them.",
    )
    reserved_memory: Bytes | None = Field(
        None,
        description="Memory of each NUMA node that the host keeps; otherwise a sixteenth of the "
        "node, at least 8 GiB.",
    )
    hugepages: Count | None = Field(
        None,
        description="Huge pages of 1 GiB that each NUMA node with GPUs sets aside for its guests, "
        "each of which leaves one of them free; otherwise as many as the host does not keep.",
    )
    vgpu_sizes: Literal["equal", "mixed"] = Field(
        "equal",
        description="Whether GPUs may hold vGPUs of several sizes at once, which is switched on by "
        "GPU and leaves vGPUs without fixed shares of the compute; `gpuplan pack` only.",
    )

    image: ImageSpec | None = Field(
        None, description="Without one somebody else fills the guests' root disks."
    )
    join: JoinSpec | None = Field(
        None, description="Without one, guests start their engines by themselves."
    )
    leave: list[HostSetting] = Field(
        [],
        description="Settings of the host that stay as they are. irqs: interrupts on the host's "
        "own cores. numa-balancing: off. gpu-power: persistence and power limits of shared GPUs. "
        "vgpu-scheduler: equal shares of GPUs that guests take turns on. ats: the cards' address "
        "translation, for GPUDirect between a GPU and a card on one PCIe switch.",
        examples=[["irqs", "ats"]],
    )

    @model_validator(mode="after")
    def _installed(self) -> Self:
        if self.join is not None and self.image is None:
            raise ValueError("'join' needs an 'image', of which the guests install themselves")
        return self


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
    numa_nodes: list[Later[NumaNodeSpec]] = []
    gpus: list[GpuSpec]
    nics: list[Later[NicSpec]] = []
    nvme: list[Later[NvmeSpec]] = []
    functions: list[Later[FunctionSpec]] = []
    bridges: list[Later[BridgeSpec]] = []
    links: list[Later[LinkSpec]] = []
    gpu_uuids: dict[HostName, list[Text | None]] = {}
    serials: dict[HostName, dict[PciAddress, Text]] = Field(
        {},
        description="Of each host, by address: drives' serial numbers and network cards' MAC "
        "addresses, which the host compares before a guest gets one.",
    )
    hypervisor: Later[HypervisorSpec] | None = None
    price: UsdPerHour | None = Field(None, description="What one host costs.")
    time_slices: Annotated[int, Field(ge=2, le=64)] | None = Field(
        None,
        description="Time slices that each GPU is offered as, the 'replicas' of NVIDIA's device "
        "plugin, the shards of Slurm; `gpuplan pack` and the target slurm.",
    )

    @property
    def nvlink_domain(self) -> str | None:
        """That of all its GPUs; None where they are of none, or of several."""
        domains = {gpu.nvlink_domain for gpu in self.gpus}
        return domains.pop() if len(domains) == 1 else None


class SwitchSpec(Document):
    """A switch of the network between hosts, with what is plugged into it: hosts, and switches of
    this list."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$")]
    hosts: list[HostName] = []
    switches: list[Text] = []


class HeldCut(Document):
    """GPUs of a host, by number, that are cut alike: the MIG instances of each in creation order,
    as PROFILE@START:SIZE in memory slices."""

    gpus: Annotated[list[Index], Field(min_length=1)]
    instances: Annotated[list[HeldInstance], Field(min_length=1)]


class HeldHost(Document):
    """A host, the number of its GPUs, and how those with MIG instances are cut."""

    name: HostName
    gpus: Count
    mig: list[HeldCut] = []


class Allocation(Document):
    """The hosts that a stack holds, which no other stack gets. A host is held whole, as a
    scheduler knows no stacks and a hypervisor sets cores and huge pages aside once."""

    stack: Text
    hosts: Annotated[list[HeldHost], Field(min_length=1)]


class Inventory(Document):
    api_version: Literal["gpuplan.dev/inventory/v1"] = Field(alias="apiVersion")
    name: Text
    hosts: Annotated[list[HostSpec], Field(min_length=1)]
    switches: list[Later[SwitchSpec]] = Field(
        [],
        description="The network between the hosts; for a scheduler that places runs by it (target "
        "`slurm`).",
    )
    allocations: list[Later[Allocation]] = Field(
        [], description="Written by `gpuplan inventory allocate`, taken away by `release`."
    )

    @property
    def nvlink_domains(self) -> dict[str, str | None]:
        """Of each host, by its name."""
        return {name: host.nvlink_domain for host in self.hosts for name in host.names}
