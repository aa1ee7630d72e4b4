"""Faults of the functions of NICs: who gives them their address.

An Ethernet function gets its MAC address and VLAN from libvirt, through the card's own driver: an
`<interface>`. The driver of an InfiniBand card can do neither (Linux, `ipoib_netdev_ops_pf`: GUIDs
only), so that libvirt would refuse to start the guest: there it is a plain `<hostdev>`.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator

from gpuplan.backends.libvirt.verify_pci import written
from gpuplan.plan.model import Fabric, GuestDevice, VirtualMachine


def network_faults(
    root: ET.Element, machine: VirtualMachine, fabric: Fabric | None
) -> Iterator[str]:
    devices = root.find("devices")
    if devices is None:
        return
    for device in machine.devices:
        element = written(devices, device)
        if element is None or device.kind != "nic":
            continue
        if fabric is not None and fabric.kind == "infiniband":
            if element.tag == "interface":
                yield (
                    f"{device.name} is a network interface, whose MAC address no InfiniBand card"
                    " takes"
                )
        else:
            yield from _ethernet(element, device)


def _ethernet(element: ET.Element, device: GuestDevice) -> Iterator[str]:
    if element.tag != "interface":
        yield f"{device.name} is a plain device, so that nothing sets its MAC address"
        return
    mac, tags = element.find("mac"), element.findall("vlan/tag")
    if mac is None or mac.get("address") != device.mac:
        yield f"{device.name} has another MAC address than {device.mac}"
    if [t.get("id") for t in tags] != ([] if device.vlan is None else [str(device.vlan)]):
        yield f"{device.name} is not in the VLAN that the plan says: {device.vlan or 'none'}"
