"""Faults of a domain's PCI tree: devices, the node that the guest sees them on, bus numbers."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator

from gpuplan.plan.model import GuestDevice, Host, VirtualMachine
from gpuplan.units import GIB, MIB

Place = tuple[int, int, int]  # controller, slot, function
HOLDERS = ("pcie-root-port", "pcie-switch-downstream-port", "pcie-root")
LAST_BUS = 255
QEMU = "http://libvirt.org/schemas/domain/qemu/1.0"


def device_faults(root: ET.Element, machine: VirtualMachine, host: Host) -> Iterator[str]:
    devices = root.find("devices")
    if devices is None:
        yield "there are no devices"
        return
    controllers = {
        _number(c, "index"): c for c in devices.iterfind("controller") if c.get("type") == "pci"
    }
    yield from _places(devices)
    yield from _ranges(controllers)
    yield from _window(root, devices, controllers, machine)
    yield from _sources(devices, machine)
    for device in machine.devices:
        element = written(devices, device)
        if element is not None:
            yield from _locality(element, device, controllers, machine, host)


def place(element: ET.Element) -> Place | None:
    """Where the guest has a device; None for one that is on no PCI bus."""
    address = element.find("address")
    if address is None or address.get("type") != "pci":
        return None
    return _number(address, "bus"), _number(address, "slot"), _number(address, "function")


def _number(element: ET.Element, name: str) -> int:
    """`0x1b` or `27`; 0 where there is none, -1 for anything else."""
    text = element.get(name, "0")
    try:
        return int(text, 0)
    except ValueError:
        return -1


def _host_address(element: ET.Element) -> str | None:
    """The host's address of a passed-through device."""
    source = element.find("source/address")
    if source is None or source.get("bus") is None:
        return None
    domain, bus, slot, function = (
        _number(source, name) for name in ("domain", "bus", "slot", "function")
    )
    return f"{domain:04x}:{bus:02x}:{slot:02x}.{function}"


def _alias(element: ET.Element) -> str:
    alias = element.find("alias")
    return "" if alias is None else alias.get("name", "")


def _passed(devices: ET.Element) -> list[ET.Element]:
    interfaces = [i for i in devices.iterfind("interface") if i.get("type") == "hostdev"]
    return [*devices.iterfind("hostdev"), *interfaces]


def written(devices: ET.Element, device: GuestDevice) -> ET.Element | None:
    return next((e for e in _passed(devices) if _alias(e) == f"ua-{device.name}"), None)


def _places(devices: ET.Element) -> Iterator[str]:
    for where, times in Counter(map(place, devices)).items():
        if where is not None and times > 1:
            address = f"{where[0]}:{where[1]}.{where[2]}"
            yield f"{times} devices are at PCI address {address} of the guest"


def _sources(devices: ET.Element, machine: VirtualMachine) -> Iterator[str]:
    given = Counter(a for a in map(_host_address, _passed(devices)) if a is not None)
    planned = {d.address for d in machine.devices if d.parent is not None or d.kind != "vgpu"}
    for address, times in sorted(given.items()):
        if times > 1:
            yield f"{address} is passed through {times} times"
        if address not in planned:
            yield f"{address} is passed through, which the plan does not say"
    for device in machine.devices:
        element = written(devices, device)
        if element is None:
            yield f"{device.name} is missing"
        elif _host_address(element) not in (None, device.address):
            yield f"{device.name} is {_host_address(element)}, the plan says {device.address}"
        elif element.get("managed") != ("yes" if device.managed else "no"):
            yield f"{device.name} is managed='{element.get('managed')}', the plan says otherwise"


def _first_buses(controllers: dict[int, ET.Element]) -> dict[int, int]:
    """The first bus number of the root and of each expander bus."""
    first: dict[int, int] = {}
    for index, controller in controllers.items():
        target = controller.find("target")
        if controller.get("model") == "pcie-root":
            first[index] = 0
        elif controller.get("model") == "pcie-expander-bus" and target is not None:
            first[index] = _number(target, "busNr")
    return first


def _ranges(controllers: dict[int, ET.Element]) -> Iterator[str]:
    """Bus numbers: an expander bus has those from its first up to the next expander's."""
    roots = _first_buses(controllers)
    needs = dict.fromkeys(roots, 1)
    for index in controllers.keys() - roots.keys():
        top = root_of(index, controllers)
        if top in needs:
            needs[top] += 1
    starts = sorted(roots.values())
    for index, first in roots.items():
        end = min((s for s in starts if s > first), default=LAST_BUS + 1)
        if first + needs[index] > end:
            yield f"buses {first} to {first + needs[index] - 1} overlap the next range, from {end}"
    if len(set(starts)) != len(starts):
        yield "two expander buses start at the same bus number"


def _window(
    root: ET.Element,
    devices: ET.Element,
    controllers: dict[int, ET.Element],
    machine: VirtualMachine,
) -> Iterator[str]:
    """The firmware's window for 64-bit BARs holds those of all GPUs, by the port they share.
    Without known address bits there is nothing to compare with."""
    if machine.physical_address_bits is None:
        return
    bars: dict[int, list[int]] = {}
    for device in machine.devices:
        element = written(devices, device)
        where = None if element is None else place(element)
        if where is not None and device.bar_bytes:
            bars.setdefault(_outermost(where[0], controllers), []).append(device.bar_bytes)
    need = sum((sum(group) // max(group) + 1) * max(group) for group in bars.values())
    have = 2 ** (min(machine.physical_address_bits, 46) - 3)
    for argument in root.iterfind(f"{{{QEMU}}}commandline/{{{QEMU}}}arg"):
        _, _, asked = argument.get("value", "").partition("X-PciMmio64Mb,string=")
        have = max(have, int(asked) * MIB) if asked.isdecimal() else have
    if need and need + GIB > have:  # the other devices take less than 1 GiB
        yield f"the GPUs' BARs need a window of {need} bytes, the firmware gives {have}"


def _outermost(index: int, controllers: dict[int, ET.Element]) -> int:
    """The port of an expander bus or of the root that controller `index` is or hangs on."""
    for _ in controllers:
        above = place(controllers[index]) if index in controllers else None
        if above is None or above[0] == root_of(index, controllers):
            break
        index = above[0]
    return index


def root_of(index: int, controllers: dict[int, ET.Element]) -> int | None:
    """The expander bus or the root that controller `index` is below; None for a broken tree."""
    seen: set[int] = set()
    while index in controllers and index not in seen:
        if controllers[index].get("model") in ("pcie-expander-bus", "pcie-root"):
            return index
        seen.add(index)
        above = place(controllers[index])
        if above is None:
            return None
        index = above[0]
    return None


def _locality(
    element: ET.Element,
    device: GuestDevice,
    controllers: dict[int, ET.Element],
    machine: VirtualMachine,
    host: Host,
) -> Iterator[str]:
    """The guest sees a device on the cell of the host node that it is on."""
    where = place(element)
    top = None if where is None else root_of(where[0], controllers)
    if where is None or top is None:
        yield f"{device.name} is on no PCI bus of the guest"
        return
    if controllers[where[0]].get("model") not in HOLDERS:
        yield f"{device.name} hangs on a {controllers[where[0]].get('model')}, not on a port"
    shown = controllers[top].findtext("target/node")
    nodes = {d.address: d.numa_node for d in host.devices}
    actual = nodes.get(device.parent or device.address)
    cells = {str(c.cell): c.host_node for c in machine.cells}
    if device.kind in ("gpu", "vgpu") and cells.get(shown or "") != actual:
        yield f"{device.name} is on host node {actual}, the guest sees it on cell {shown or 'none'}"
    elif shown != str(device.cell):
        yield f"the guest sees {device.name} on cell {shown or 'none'}, the plan says {device.cell}"
