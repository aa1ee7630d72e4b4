"""Where it runs: node pools, hosts, virtual machines and their devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Literal, get_args

from gpuplan.frozen import record
from gpuplan.plan.partitions import PartitionName
from gpuplan.plan.records import Override, origin_field
from gpuplan.source import Origin
from gpuplan.units import format_usd
from gpuplan.vendors import Vendor, vendor_of


@record
class MigInstance:
    profile: PartitionName
    start: int
    size: int


@record
class Partition:
    """A share of a GPU that workloads of a pool ask for: a MIG profile or a vGPU type. `count` of
    them are in the pool, at most `per_gpu` on a GPU; `resource` is what schedulers count."""

    kind: Literal["mig", "vgpu"]
    name: PartitionName
    count: int
    per_gpu: int
    memory_bytes: int
    resource: str


@record
class GpuLayout:
    """GPUs of a node, a range of numbers, that are cut alike: the MIG instances of each in creation
    order."""

    gpus: tuple[int, ...]
    instances: tuple[MigInstance, ...]

    @property
    def name(self) -> str:
        """`GPU 3` or, of a range, `GPUs 4-7`."""
        first, last = self.gpus[0], self.gpus[-1]
        return f"GPU {first}" if first == last else f"GPUs {first}-{last}"

    @property
    def counts(self) -> dict[PartitionName, int]:
        """Instances of one of the GPUs by profile, in creation order."""
        return dict(Counter(i.profile for i in self.instances))


@record
class NodeLayout:
    """`node_count` nodes of a pool whose GPUs are cut alike; GPUs that no layout names stay whole.
    `node_names` is empty when the nodes are not known by name."""

    node_count: int
    node_names: tuple[str, ...] = ()
    gpus: tuple[GpuLayout, ...]

    @property
    def instances(self) -> int:
        """MIG instances of one node."""
        return sum(len(g.gpus) * len(g.instances) for g in self.gpus)

    @property
    def cut_gpus(self) -> int:
        """GPUs of one node that are not whole."""
        return sum(len(g.gpus) for g in self.gpus)

    def count(self, profile: PartitionName) -> int:
        """Instances of a profile on one node."""
        return sum(len(g.gpus) * g.counts.get(profile, 0) for g in self.gpus)


@record
class Neighbour:
    """How another stack of the cluster cuts a node: MIG manager reads one map for all of them."""

    stack: str
    gpus_per_node: int
    layout: NodeLayout


@record
class Room:
    """How many more `replicas` of a workload its pool's nodes hold, were it alone."""

    workload: str
    replicas: int


@record
class CheaperMachine:
    """A machine with as many GPUs of the same type, and as many cores and as much memory at least,
    that an allowed provider lists for less. `usd_per_hour` is of one, `rented` as of a pool."""

    node_type: str
    rented: str
    usd_per_hour: Decimal
    priced_at: str


@record
class NodePool:
    """Equal GPU nodes. `node_names` is empty when the nodes are not known by name. Cores are
    physical; `cpu_cores`, `memory_bytes` and prices are per node; None is unknown, never zero.
    `layouts` say of its nodes how their GPUs are cut; nodes that none of them counts have whole
    GPUs. `watts` are the most that a node draws; `boards_only`: its GPU boards alone, without CPUs,
    fans, cards and losses, of which no source says anything.
    `rented` names the machine where a provider rents it, `priced_at` the list of its price.
    `nvlink_nodes`: of so many nodes, at least, NVLink joins the GPUs; None: it ends at each.
    `labelled_type`: what the provider writes into the label node.kubernetes.io/instance-type of
    each node; None where nobody does. `vendor` names the maker of the GPUs where it is not the
    first one (`gpuplan.vendors`), `gpu_product` is what the label of their nodes says.
    `cheaper` is the machine that does the same for least, where another one does for less.
    `idle_gpus` are those that no workload has, in whole or in part, and `room` what would
    fit on the nodes beside what is there; not on the `spare_nodes`, which stand by for a run.
    """

    name: str
    node_type: str | None
    labelled_type: str | None = None
    gpu: str
    vendor: str | None = None
    node_count: int
    node_names: tuple[str, ...] = ()
    gpus_per_node: int
    gpu_memory_bytes: int
    gpu_product: str
    cpu_cores: int | None
    memory_bytes: int | None
    numa_nodes: int | None
    threads_per_core: int | None = None
    interconnect: str
    interconnect_bytes_per_s: float
    nvlink_nodes: int | None = None
    partitions: tuple[Partition, ...] = ()
    layouts: tuple[NodeLayout, ...] = ()
    spare_nodes: int | None = None
    idle_gpus: int = 0
    room: tuple[Room, ...] = ()
    rented: str | None = None
    usd_per_hour: Decimal | None
    priced_at: str | None = None
    cheaper: CheaperMachine | None = None
    watts: float | None
    boards_only: bool = True
    origin: Origin | None = origin_field()

    @property
    def domain_nodes(self) -> int:
        """Of so many of its nodes NVLink joins the GPUs; 1: it ends at each."""
        return self.nvlink_nodes or 1

    @property
    def maker(self) -> Vendor:
        """Whose GPUs they are."""
        return vendor_of(self.vendor)

    @property
    def provider(self) -> str | None:
        """Whose machines they are, where they are rented."""
        return self.rented.split(", ")[0] if self.rented else None

    @property
    def spot(self) -> bool:
        """Whether they are spare capacity."""
        return self.rented is not None and self.rented.endswith(", spot")

    @property
    def rented_from(self) -> tuple[str, str, bool] | None:
        """Provider, region and whether it is spare capacity; None where no region is known."""
        parts = (self.rented or "").split(", ")
        if len(parts) < 2 or parts[1] == "spot":
            return None
        return parts[0], parts[1], self.spot

    @property
    def price(self) -> str:
        """`$1.10/h a node (azure, westus3; Karpenter's Azure price table, 2026-06-18)`; without a
        list it is the manifest's or the inventory's."""
        if self.usd_per_hour is None:
            return f"{self.name} unpriced"
        each = f"{format_usd(self.usd_per_hour)}/h a node"
        said = "; ".join(filter(None, (self.rented, self.priced_at or "as stated")))
        return f"{each} ({said})"

    @property
    def shape(self) -> str:
        """`2 × dgx-h100 with 8 × h100-sxm-80gb (1 of them spare)`."""
        kind = self.node_type or "node"
        spare = f" ({self.spare_nodes} of them spare)" if self.spare_nodes else ""
        return f"{self.node_count} × {kind} with {self.gpus_per_node} × {self.gpu}{spare}"

    @property
    def idle(self) -> str | None:
        """`7 of 8 GPUs idle ($7.70/h): would hold 7 more of chat or 3 more of tune`; None where
        none is."""
        if not self.idle_gpus:
            return None
        held = (f"{r.replicas:,} more of {r.workload}" for r in self.room if r.replicas)
        text = " or ".join(held)
        every = self.node_count * self.gpus_per_node
        would = f"would hold {text}" if text else "too few cores, memory or GPUs for more"
        cost = ""
        if self.usd_per_hour is not None:
            cost = f" ({format_usd(self.usd_per_hour * self.idle_gpus / self.gpus_per_node)}/h)"
        return f"{self.idle_gpus:,} of {every:,} GPUs idle{cost}: {would}"

    @property
    def cuts(self) -> Iterator[str]:
        """How GPUs are shared: `GPUs 6-7 of gpu-02 as 1 × 3g.40gb, 2 × 2g.20gb each`."""
        for layout in self.layouts:
            every = layout.node_count == self.node_count
            some = "each node" if every else f"{layout.node_count} of its nodes"
            nodes = ", ".join(layout.node_names) or some
            for cut in layout.gpus:
                parts = ", ".join(f"{n} × {profile}" for profile, n in cut.counts.items())
                yield f"{cut.name} of {nodes} as {parts}" + " each" * (len(cut.gpus) > 1)
        yield from (f"each as {p.name}" for p in self.partitions if not self.layouts)


@record
class Core:
    """A physical core: the host CPU numbers of its threads."""

    cpus: tuple[int, ...]


@record
class NumaNode:
    node: int
    cores: tuple[Core, ...]
    memory_bytes: int
    reserved_cores: tuple[Core, ...]
    hugepages: int
    distances: tuple[int, ...]


DeviceKind = Literal["gpu", "nic", "nvme", "function"]
HostSetting = Literal["irqs", "numa-balancing", "gpu-power", "vgpu-scheduler", "ats"]
HOST_SETTINGS: tuple[HostSetting, ...] = get_args(HostSetting)


@record
class PciDevice:
    """A host device. `address` is `dddd:bb:dd.f`; devices of one `switch` share a PCIe switch.
    `instances` is the MIG layout that the host sets on a GPU, in creation order. A `function` is
    another one in a device's IOMMU group. `pci_id` (vendor:device) and `serial` (a drive's serial
    number, a NIC's MAC address) are what the host finds there; `shared` is a person's word that the
    host may use the device too."""

    kind: DeviceKind
    model: str
    address: str
    numa_node: int
    iommu_group: int | None
    switch: str | None
    pci_id: str | None = None
    serial: str | None = None
    shared: bool = False
    virtual_functions: int = 0
    mtu: int | None = None
    power_limit_watts: float | None = None
    instances: tuple[MigInstance, ...] = ()


GuestSystem = Literal["debian-12", "debian-13", "ubuntu-24.04"]


@record
class GuestImage:
    """A cloud image on a host, of which root disks are made. `keys` may log in to its guests."""

    path: str
    sha256: str
    system: GuestSystem
    keys: tuple[str, ...] = ()


# Where a host keeps what guests get as credentials, root's alone, a folder a stack; the file there
# that admits guests to a cluster; the label that they have as its nodes.
SECRETS = "/etc/gpuplan/secrets"
JOIN_FILE = "join-token"
JOIN_LABEL = "gpuplan.dev/workload"
SLURM_NODES = "hypervisor/slurm"  # in a stack: what a controller reads of guests


def feature(workload: str) -> str:
    """By which jobs find a workload's guests in Slurm, whose expressions have own signs."""
    return workload.replace("-", "_")


@record
class ClusterJoin:
    """A cluster that guests become nodes of; its scheduler starts their work. `server` is the API
    server, or the host of slurmctld. `version` and `sha256` are those of what the guest installs,
    `ca_cert_hashes` tell that the server is the right one."""

    kind: Literal["kubeadm", "k3s", "slurm"]
    server: str
    version: str | None = None
    sha256: str | None = None
    ca_cert_hashes: tuple[str, ...] = ()


@record
class Host:
    """A hypervisor host with its reservations. `settings` are those that the stack makes there.
    Without an `image` somebody else fills the guests' root disks; `join`: what its guests join."""

    name: str
    sockets: int | None
    threads_per_core: int
    numa_nodes: tuple[NumaNode, ...]
    devices: tuple[PciDevice, ...]
    hugepage_bytes: int
    kernel_parameters: tuple[str, ...]
    cpu_vendor: Literal["intel", "amd", "arm"]
    physical_address_bits: int | None
    settings: tuple[HostSetting, ...] = HOST_SETTINGS
    image: GuestImage | None = None
    join: ClusterJoin | None = None
    overrides: tuple[Override, ...] = ()
    origin: Origin | None = origin_field()


@record
class CpuPin:
    vcpu: int
    cpu: int


@record
class GuestCell:
    """A guest NUMA cell on one host node."""

    cell: int
    host_node: int
    pins: tuple[CpuPin, ...]
    memory_bytes: int
    emulator_cpus: tuple[int, ...]
    iothread_cpus: tuple[int, ...]


@record
class GuestDevice:
    """A host device (or a virtual function of one) in a guest. `address` is the function that is
    attached, `parent` the physical function it belongs to, `vgpu_type` the type of a GPU's VF."""

    name: str
    kind: Literal["gpu", "vgpu", "nic", "nvme", "function"]
    address: str
    parent: str | None = None
    cell: int
    group: int
    managed: bool
    mac: str | None = None
    vlan: int | None = None
    vgpu_type: PartitionName | None = None
    bar_bytes: int | None = None


@record
class Disk:
    name: str
    source: str
    size_bytes: int


@record
class VirtualMachine:
    """A guest. `fabric_partition`: the NVSwitch partition that must be active when it starts."""

    name: str
    uuid: str
    host: str
    workload: str
    cells: tuple[GuestCell, ...]
    threads_per_core: int
    memory_bytes: int
    hugepage_bytes: int
    devices: tuple[GuestDevice, ...]
    disks: tuple[Disk, ...]
    bridge: str
    mac: str
    physical_address_bits: int | None
    fabric_partition: int | None = None
    origin: Origin | None = origin_field()
