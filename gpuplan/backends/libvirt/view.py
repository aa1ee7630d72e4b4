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
class Pin:
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
    source: str
    target: str
    serial: str
    at: Slot


@record
class Device:
    """A host device. `is_network` gets a MAC address and perhaps a VLAN, `is_mediated` is given by
    its UUID, anything else by its address."""

    alias: str
    is_network: bool
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
    pins: tuple[Pin, ...]
    emulator_cpus: str
    iothread_pins: tuple[Pin, ...]
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
    """A GPU's virtual function and the vGPU type that is set on it."""

    address: str
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
    parent: str
    vgpu_type: str


@record
class NodePages:
    node: int
    count: int
    path: str


@record
class Guest:
    name: str
    has_partition: bool
    partition: int | None


@record
class DiskToMake:
    path: Verbatim
    size: str


@record
class HostView:
    """`*_code` is Markdown."""

    name: str
    kernel_line: str
    kernel_code: Verbatim
    pages: tuple[NodePages, ...]
    housekeeping_cpus: str
    passed_through: tuple[str, ...]
    passed_through_codes: tuple[Verbatim, ...]
    parents: tuple[Parent, ...]
    mediated: tuple[Mediated, ...]
    has_vgpus: bool
    has_fabric: bool
    guests: tuple[Guest, ...]
    disks: tuple[DiskToMake, ...]
