"""One virtual machine of the plan → the view of its domain XML."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from gpuplan.backends.libvirt.pci import Address, Controller, PciTree
from gpuplan.backends.libvirt.view import (
    Cell,
    Device,
    DiskView,
    Distance,
    Domain,
    Port,
    Size,
    Slot,
    VcpuPin,
)
from gpuplan.backends.libvirt.window import Window
from gpuplan.plan.changes.guests import SEEDS
from gpuplan.plan.model import Disk, GuestCell, GuestDevice, Host, VirtualMachine, Workload
from gpuplan.render.xml import legal
from gpuplan.units import GIB, KIB, MIB, format_ranges

ROOT_DEVICES = 3  # beside the disks: network, guest agent, random numbers
QUEUES = 4


def domain(
    machine: VirtualMachine,
    host: Host,
    workload: Workload,
    tree: PciTree,
    space: Window,
    *,
    infiniband: bool,
) -> Domain:
    """The view of `machine`. `tree` has one root port for each disk and `ROOT_DEVICES` more;
    `infiniband` says that the NICs' functions are of that kind."""
    cells = machine.cells
    threads_used = cells[: len(machine.disks)]  # an I/O thread a cell, as far as disks need them
    vcpus = sum(len(c.pins) for c in cells)
    sockets, cores, threads = processors(machine)
    slots = [_slot(a) for a in tree.root_slots]
    disks = [s for s, _ in zip(slots, machine.disks, strict=False)]
    network, serial, random = slots[len(machine.disks) :]
    return Domain(
        name=machine.name,
        uuid=machine.uuid,
        title=f"{machine.workload} on {machine.host}",
        has_description=bool(workload.description),
        description=legal(workload.description or ""),
        memory=size(machine.memory_bytes),
        page=size(machine.hugepage_bytes),
        cell_numbers=format_ranges(c.cell for c in cells),
        host_nodes=format_ranges(c.host_node for c in cells),
        vcpus=vcpus,
        iothreads=len(threads_used),
        pins=tuple(VcpuPin(thread=p.vcpu, cpus=str(p.cpu)) for c in cells for p in c.pins),
        emulator_cpus=format_ranges(cpu for c in cells for cpu in c.emulator_cpus),
        iothread_pins=tuple(
            VcpuPin(thread=number, cpus=format_ranges(c.iothread_cpus))
            for number, c in enumerate(threads_used, 1)
        ),
        sockets=sockets,
        cores=cores,
        threads=threads,
        is_amd_smt=host.cpu_vendor == "amd" and threads > 1,
        cells=tuple(_cell(c, cells, host) for c in cells),
        ports=tuple(_port(c) for c in tree.controllers),
        disks=tuple(
            _disk(number, number % len(threads_used) + 1, d, at, host)
            for number, (d, at) in enumerate(zip(machine.disks, disks, strict=True))
        ),
        bridge=machine.bridge,
        mac=machine.mac,
        queues=min(QUEUES, vcpus),
        network_at=network,
        serial_at=serial,
        random_at=random,
        devices=tuple(
            _device(d, machine, tree.addresses[d.name], infiniband=infiniband)
            for d in machine.devices
        ),
        has_window=space.asked_bytes is not None,
        seed=f"{SEEDS}/{machine.name}.iso",
        window_option=f"name=opt/ovmf/X-PciMmio64Mb,string={space.megabytes}",
    )


def processors(machine: VirtualMachine) -> tuple[int, int, int]:
    """Sockets, the cores of each, the threads of each core: a socket a cell, one for all where
    cells are unequal."""
    sizes = [len(c.pins) for c in machine.cells]
    sockets = len(sizes) if len({*sizes}) == 1 else 1
    threads = machine.threads_per_core
    return sockets, sum(sizes) // sockets // threads, threads


def size(value: int) -> Size:
    for factor, unit in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if value % factor == 0:
            return Size(value=value // factor, unit=unit)
    raise ValueError(f"{value} bytes are no whole number of KiB")


def overlaid(disk: Disk, host: Host) -> bool:
    """Whether it is a file over the host's image."""
    return host.image is not None and disk.name == "root" and not disk.source.startswith("/dev/")


def mediated_uuid(machine: VirtualMachine, device: GuestDevice) -> str:
    """The mediated device that the host makes for `device`."""
    return str(uuid.uuid5(uuid.UUID(machine.uuid), device.name))


def is_mediated(device: GuestDevice) -> bool:
    """A vGPU without a virtual function of its own."""
    return device.kind == "vgpu" and device.parent is None


def _cell(cell: GuestCell, cells: Sequence[GuestCell], host: Host) -> Cell:
    row = next(n.distances for n in host.numa_nodes if n.node == cell.host_node)
    known = [Distance(cell=c.cell, value=row[c.host_node]) for c in cells] if row else []
    return Cell(
        number=cell.cell,
        cpus=format_ranges(p.vcpu for p in cell.pins),
        memory=size(cell.memory_bytes),
        host_node=cell.host_node,
        distances=tuple(known),
    )


def _slot(address: Address) -> Slot:
    return Slot(
        domain="0x0000", bus=f"0x{address.bus:02x}", slot=f"0x{address.slot:02x}", function="0x0"
    )


def _source(address: str) -> Slot:
    domain, bus, rest = address.split(":")
    slot, function = rest.split(".")
    return Slot(domain=f"0x{domain}", bus=f"0x{bus}", slot=f"0x{slot}", function=f"0x{function}")


def _port(controller: Controller) -> Port:
    return Port(
        index=controller.index,
        model=controller.model,
        at=_slot(controller.address),
        is_port=controller.port is not None,
        chassis=controller.chassis,
        port=f"0x{controller.port or 0:x}",
        is_expander=controller.first_bus is not None,
        first_bus=controller.first_bus,
        node=controller.node,
    )


def _disk(number: int, thread: int, disk: Disk, at: Slot, host: Host) -> DiskView:
    return DiskView(
        format="qcow2" if overlaid(disk, host) else "raw",
        is_block=disk.source.startswith("/dev/"),
        source=disk.source,
        target=f"vd{chr(ord('a') + number)}",
        serial=disk.name,
        thread=thread,
        at=at,
    )


def _device(
    device: GuestDevice, machine: VirtualMachine, address: Address, *, infiniband: bool
) -> Device:
    mediated = is_mediated(device)
    return Device(
        alias=f"ua-{device.name}",
        has_mac=device.mac is not None and not infiniband,
        is_mediated=mediated,
        is_gpu=device.kind == "gpu",
        managed="yes" if device.managed else "no",
        source=None if mediated else _source(device.address),
        uuid=mediated_uuid(machine, device),
        mac=device.mac or "",
        has_vlan=device.vlan is not None,
        vlan=device.vlan,
        at=_slot(address),
    )
