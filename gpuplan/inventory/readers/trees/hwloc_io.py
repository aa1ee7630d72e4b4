"""The devices of an hwloc topology: bridges, PCI functions, and what the system calls them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuplan.inventory.facts import Value
from gpuplan.inventory.readers.pci import Function, Functions
from gpuplan.inventory.readers.trees.hwloc_sets import Topology, kind_of
from gpuplan.inventory.readers.words import Word, pci_address, whole
from gpuplan.inventory.readers.xmlread import Element
from gpuplan.source import Place

_TYPE = re.compile(r"([0-9a-f]{4}) \[([0-9a-f]{4}:[0-9a-f]{4})\]")
_BUSES = re.compile(r"[0-9a-f]{4,8}:\[([0-9a-f]{2})-[0-9a-f]{2}\]")
_NAMESPACE = re.compile(r"(nvme[0-9]+)(?:c[0-9]+)?n[0-9]+")
_NVML = re.compile(r"nvml([0-9]{1,9})")
# osdev_type of a network card and an RDMA device, by major version; 3 has flags. Source: hwloc.h
_NETWORK = {False: ({2}, {3}), True: ({16, 48}, {32, 48})}


def devices(topology: Topology) -> None:
    """Put the facts of all PCI functions into the gathering."""
    functions = Functions(topology.gathering)
    for element, near, bridge in topology.devices:
        word = element.attribute("pci_busid")
        if word is None:
            continue  # a host bridge
        address = pci_address(word.text)
        if address is None:
            topology.gathering.not_understood("a device", word, "an address like 0000:17:00.0")
            continue
        function = functions.at(address, word.place)
        _identity(functions, function, element)
        _place(topology, functions, function, near)
        _above(functions, function, bridge)
        _named(topology, functions, function, element)
    functions.emit()


def _identity(functions: Functions, function: Function, element: Element) -> None:
    word = element.attribute("pci_type")
    match = _TYPE.match(word.text) if word else None
    if word and match:
        functions.say(function, "class", match[1], word.place)
        functions.say(function, "pci_id", match[2], word.place)
    buses = element.attribute("bridge_pci")
    match = _BUSES.fullmatch(buses.text) if buses else None
    if buses and match:
        functions.say(function, "secondary", int(match[1], 16), buses.place)


def _place(topology: Topology, functions: Functions, function: Function, near: Element) -> None:
    """The one NUMA node that the closest object with CPUs has; its CPUs where it has several."""
    cpus = topology.set_of(near)
    if not topology.whole or not cpus or not topology.nodes:
        return
    nodes = [n.number for n in topology.nodes.values() if cpus & set(n.cpus)]
    if len(nodes) == 1:
        functions.say(function, "numa_node", nodes[0], near.place)
    elif len(cpus) < len(topology.cpus):
        functions.say(function, "cpus", tuple(sorted(cpus)), near.place)


def _above(functions: Functions, function: Function, bridge: Element | None) -> None:
    word = bridge.attribute("pci_busid") if bridge else None
    address = pci_address(word.text) if word else None
    if word and address:
        functions.say(function, "parent", address, word.place)


def _named(topology: Topology, functions: Functions, function: Function, element: Element) -> None:
    """Names of the system, and the product: a GPU's driver knows it better than its address."""
    infos = dict(_values(topology, element)) if element.closed else {}
    inside = [c for c in element.children if c.tag == "object" and kind_of(c) == "OSDev"]
    devices = inside if element.closed else []
    say = functions.say
    model = next((v for c in devices for n, v in _values(topology, c) if n == "GPUModel"), None)
    if model:
        say(function, "product", model.text, model.place)
    elif "PCIDevice" in infos:
        maker, product = infos.get("PCIVendor"), infos["PCIDevice"]
        text = f"{maker.text} {product.text}" if maker else product.text
        say(function, "product", text, product.place)
    for name, value, place in (*_gpu(topology, devices), *_nic(topology, devices)):
        say(function, name, value, place)
    if function.get("class") == "0108":
        _drive(topology, functions, function, devices)


def _gpu(topology: Topology, devices: list[Element]) -> Iterator[tuple[str, Value, Place]]:
    """NVML counts GPUs as `nvidia-smi` does; CUDA may count otherwise."""
    for device in devices:
        match = _NVML.fullmatch(device.attributes.get("name", ""))
        if match:
            yield "index", int(match[1]), device.place
        for name, value in _values(topology, device):
            if name == "NVIDIAUUID":
                yield "uuid", value.text, value.place


def _nic(topology: Topology, devices: list[Element]) -> Iterator[tuple[str, Value, Place]]:
    """The RDMA device's name, else the network interface's, where there is one."""
    third = topology.root.attributes.get("version", "").startswith("3")
    network, rdma = _NETWORK[third]
    for types in (rdma, network):
        names = [
            device.attribute("name")
            for device in devices
            if whole(device.attributes.get("osdev_type", "")) in types
        ]
        if len(names) == 1 and names[0]:
            yield "name", names[0].text, names[0].place
            return


def _drive(
    topology: Topology, functions: Functions, function: Function, devices: list[Element]
) -> None:
    """`nvme0n1` is the first namespace of the drive `nvme0`; its size is in KiB."""
    spaces = [(m, d) for d in devices if (m := _NAMESPACE.fullmatch(d.attributes.get("name", "")))]
    for match, device in spaces:
        functions.say(function, "name", match[1], device.place)
    if len(spaces) == 1:
        size = dict(_values(topology, spaces[0][1])).get("Size")
        value = whole(size.text.removesuffix("KiB")) if size else None
        if size and value:
            functions.say(function, "size_bytes", value * 1024, size.place)


def _values(topology: Topology, element: Element) -> Iterator[tuple[str, Word]]:
    for name, info in topology.infos(element):
        value = info.attribute("value")
        if value and value.text:
            yield name, value
