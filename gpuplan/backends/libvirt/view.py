"""What the templates print: every decision is made before."""

from __future__ import annotations

from gpuplan.plan.model import record
from gpuplan.render.environments import Verbatim


@record
class Size:
    """A memory size in the biggest unit that divides it."""

    value: int
    unit: str


@record
class Slot:
    """A PCI address as libvirt writes it."""

    domain: str
    bus: str
    slot: str
    function: str


@record
class VcpuPin:
    thread: int
    cpus: str


@record
class Distance:
    cell: int
    value: int


@record
class Cell:
    number: int
    cpus: str
    memory: Size
    host_node: int
    distances: tuple[Distance, ...]


@record
class Port:
    """A PCI controller: a port with a target, an expander bus with a range, or neither."""

    index: int
    model: str
    at: Slot
    is_port: bool
    chassis: int | None
    port: str
    is_expander: bool
    first_bus: int | None
    node: int | None


@record
class DiskView:
    is_block: bool
    format: str
    source: str
    target: str
    serial: str
    thread: int
    at: Slot


@record
class Device:
    """A host device. One that `has_mac` is a network interface, which libvirt gives that address
    and perhaps a VLAN; `is_mediated` is given by its UUID, anything else by its address. Linux sets
    no MAC address of an InfiniBand function, so that one is a device like any other."""

    alias: str
    has_mac: bool
    is_mediated: bool
    is_gpu: bool
    managed: str
    source: Slot | None
    uuid: str
    mac: str
    has_vlan: bool
    vlan: int | None
    at: Slot


@record
class Domain:
    name: str
    uuid: str
    title: str
    has_description: bool
    description: str
    memory: Size
    page: Size
    cell_numbers: str
    host_nodes: str
    vcpus: int
    iothreads: int
    pins: tuple[VcpuPin, ...]
    emulator_cpus: str
    iothread_pins: tuple[VcpuPin, ...]
    sockets: int
    cores: int
    threads: int
    is_amd_smt: bool
    cells: tuple[Cell, ...]
    ports: tuple[Port, ...]
    disks: tuple[DiskView, ...]
    bridge: str
    mac: str
    queues: int
    network_at: Slot
    serial_at: Slot
    random_at: Slot
    devices: tuple[Device, ...]
    has_window: bool
    window_option: str
    has_seed: bool = False
    seed: str = ""
    has_credentials: bool = False
    credentials: tuple[Credential, ...] = ()


@record
class NcclSwitch:
    bus: str
    devices: tuple[str, ...]


@record
class NcclCell:
    number: int
    switches: tuple[NcclSwitch, ...]
    devices: tuple[str, ...]


@record
class Function:
    """A GPU's virtual function and the vGPU type that is set on it for a guest."""

    address: str
    guest: str
    vgpu_type: str


@record
class Parent:
    """A GPU that guests share. `layout` is the MIG instances as nvidia-smi takes them."""

    address: str
    has_layout: bool
    layout: str
    functions: tuple[Function, ...]


@record
class Mediated:
    """A mediated device: `parent` is the GPU."""

    uuid: str
    guest: str
    parent: str
    vgpu_type: str


@record
class NicFunction:
    """A NIC's virtual function in a guest. `guid` is empty where the fabric is no InfiniBand;
    `*code` is Markdown."""

    address: str
    code: Verbatim
    guest: str
    device: str
    guid: str
    guid_code: Verbatim


@record
class Nic:
    """`count` functions are made; `mtu` is empty where the card keeps its own."""

    address: str
    count: int
    mtu: str
    functions: tuple[NicFunction, ...]


@record
class NodeCpus:
    path: str
    cpus: str


@record
class NodePages:
    node: int
    count: int
    path: str


@record
class Passed:
    """A device that a guest gets; `pci_id` and `serial` are empty where nobody stated them. `kind`
    is `shared-nic` for a NIC that the host may use too."""

    kind: str
    address: str
    has_id: bool
    pci_id: str
    vendor: str
    device: str
    serial: str


@record
class PoweredGpu:
    """A GPU that the host's driver keeps; `watts` is empty where nobody limits it."""

    address: str
    watts: str


@record
class CardPath:
    """A network card and a GPU on one PCIe switch, between which data goes without the host."""

    card: str
    gpu: str


@record
class HostSettings:
    """`left` are the names of those that the inventory leaves as they are, in Markdown."""

    has_irqs: bool
    guests_cpus: str
    no_numa_balancing: bool
    has_scheduler: bool
    gpus: tuple[PoweredGpu, ...]
    has_gpus: bool
    paths: tuple[CardPath, ...]
    has_paths: bool
    has_program: bool
    left: tuple[Verbatim, ...]


@record
class Guest:
    name: str
    devices: tuple[Passed, ...]
    has_partition: bool
    partition: int | None


@record
class DiskToMake:
    """`*code` is Markdown. `kind` is overlay, copy, volume or file: a root disk over the image or
    a copy of it, a logical volume of `group`, a file; `other` is made by nobody."""

    path_code: Verbatim
    size: str
    command_code: Verbatim
    path: str
    kib: int
    guest: str
    name: str
    group: str
    kind: str


@record
class Installed:
    """A file of the host, by its path there, and its name below the folder that it comes in."""

    path: str
    name: str
    sha256: str
    mode: str


@record
class Need:
    """A version that a host must have; `call` prints the one that is there."""

    program: str
    version: str
    purpose: str
    call: Verbatim
    call_code: Verbatim


@record
class HostView:
    """`*_code` is Markdown."""

    name: str
    kernel_line: str
    kernel_code: Verbatim
    nodes: tuple[NodeCpus, ...]
    pages: tuple[NodePages, ...]
    housekeeping_cpus: str
    bound_at_boot: tuple[Passed, ...]
    passed_through_codes: tuple[Verbatim, ...]
    parents: tuple[Parent, ...]
    mediated: tuple[Mediated, ...]
    has_vgpus: bool
    nics: tuple[Nic, ...]
    is_infiniband: bool
    has_vfio: bool
    has_fabric: bool
    settings: HostSettings
    has_image: bool
    image: str
    image_sha256: str
    units: tuple[str, ...]
    guests: tuple[Guest, ...]
    disks: tuple[DiskToMake, ...]
    requirements: tuple[Need, ...]


@record
class Setup:
    """What a host's files need to take effect. `stale` are those that other hosts have."""

    requirements: tuple[Need, ...]
    files: tuple[Installed, ...]
    stale: tuple[str, ...]
    units: tuple[str, ...]


@record
class Placed:
    """A host with the names of its guests."""

    name: str
    guests: tuple[str, ...]


@record
class PlainStack:
    """`folder` has a host's files, `kept` is what was applied there; both are root's."""

    name: str
    folder: str
    kept: str
    hosts: tuple[Placed, ...]


@record
class Credential:
    """A file whose content goes to a guest under a name."""

    name: str
    file: str
