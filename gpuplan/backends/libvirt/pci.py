"""The guest's PCI tree: an expander bus for each NUMA cell, so that the guest sees which node a GPU
is on, and a switch where devices share one on the host.

Guest bus numbers are those that firmware gives when it walks the bridges in slot order; each
expander bus starts a range of its own. Sources: QEMU, docs/pcie.txt, docs/pci_expander_bridge.txt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gpuplan.plan.model import GuestDevice, VirtualMachine, record

FIRST_EXPANDER_BUS = 32  # buses below are the root bus's own
LAST_BUS = 255


@record
class Address:
    """`bus` is the index of a controller, as libvirt means it."""

    bus: int
    slot: int


@record
class Controller:
    """`target` is what libvirt calls a port: `chassis` and `port`; an expander bus has instead the
    first number of its range and its guest node."""

    index: int
    model: str
    address: Address
    chassis: int | None = None
    port: int | None = None
    first_bus: int | None = None
    node: int | None = None


@record
class Switch:
    """`bus` is the guest's address of the upstream port."""

    bus: str
    devices: tuple[str, ...]


@record
class PciTree:
    """`addresses` and `buses` are by device name: where libvirt puts a device and where the guest
    finds it. `switches` are by cell; `overflow` is set when the buses do not suffice."""

    controllers: tuple[Controller, ...]
    root_slots: tuple[Address, ...]
    addresses: dict[str, Address]
    buses: dict[str, str]
    switches: dict[int, tuple[Switch, ...]]
    overflow: bool


@dataclass(slots=True)
class _Growing:
    controllers: list[Controller] = field(default_factory=list)
    addresses: dict[str, Address] = field(default_factory=dict)
    buses: dict[str, str] = field(default_factory=dict)
    switches: dict[int, list[Switch]] = field(default_factory=dict)

    def add(self, model: str, address: Address, **more: int) -> int:
        """A new controller; its index."""
        index = len(self.controllers) + 1
        if "port" in more:
            more["chassis"] = index
        self.controllers.append(Controller(index=index, model=model, address=address, **more))
        return index


def tree(machine: VirtualMachine, root_devices: int) -> PciTree:
    """The tree for `machine`'s devices, with `root_devices` ports on the root bus for the rest."""
    growing = _Growing()
    cells = machine.cells
    for number in range(root_devices):
        growing.add("pcie-root-port", Address(bus=0, slot=number + 1), port=number)
    ports = tuple(Address(bus=c.index, slot=0) for c in growing.controllers)
    room = (LAST_BUS + 1 - FIRST_EXPANDER_BUS) // max(1, len(cells))
    first = FIRST_EXPANDER_BUS
    expanders = []
    for number, cell in enumerate(cells):
        slot = Address(bus=0, slot=root_devices + number + 1)
        index = growing.add("pcie-expander-bus", slot, first_bus=first, node=cell.cell)
        expanders.append((index, first))
        first += room
    overflow = root_devices >= FIRST_EXPANDER_BUS or root_devices + len(cells) > 30
    for cell, (index, start) in zip(cells, expanders, strict=True):
        devices = [d for d in machine.devices if d.cell == cell.cell]
        overflow |= _fill(growing, cell.cell, index, start, devices) > room
    return PciTree(
        controllers=tuple(growing.controllers),
        root_slots=ports,
        addresses=growing.addresses,
        buses=growing.buses,
        switches={cell: tuple(own) for cell, own in growing.switches.items()},
        overflow=overflow,
    )


def groups(devices: Sequence[GuestDevice]) -> list[list[GuestDevice]]:
    """Devices by group, in the order in which each group appears."""
    return [[d for d in devices if d.group == g] for g in dict.fromkeys(d.group for d in devices)]


def _fill(
    growing: _Growing, cell: int, expander: int, first: int, devices: Sequence[GuestDevice]
) -> int:
    """Put `devices` below an expander bus; how many bus numbers that takes."""
    bus = first
    for number, group in enumerate(groups(devices)):
        port = growing.add("pcie-root-port", Address(bus=expander, slot=number), port=number)
        bus += 1
        if len(group) == 1:
            growing.addresses[group[0].name] = Address(bus=port, slot=0)
            growing.buses[group[0].name] = _bus(bus)
            continue
        upstream = growing.add("pcie-switch-upstream-port", Address(bus=port, slot=0))
        names = tuple(d.name for d in group)
        growing.switches.setdefault(cell, []).append(Switch(bus=_bus(bus), devices=names))
        bus += 1
        for slot, name in enumerate(names):
            inner = Address(bus=upstream, slot=slot)
            downstream = growing.add("pcie-switch-downstream-port", inner, port=slot)
            growing.addresses[name] = Address(bus=downstream, slot=0)
            bus += 1
            growing.buses[name] = _bus(bus)
    return bus - first + 1


def _bus(number: int) -> str:
    return f"0000:{number & 0xFF:02x}:00.0"
