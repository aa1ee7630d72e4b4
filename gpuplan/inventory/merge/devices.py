"""GPUs, network cards, drives and bridges of a host, as the inventory describes them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from gpuplan.inventory.merge.cpu import Nodes
from gpuplan.inventory.merge.entities import Entity
from gpuplan.inventory.merge.item import Item
from gpuplan.inventory.merge.numbers import address_of
from gpuplan.inventory.merge.settle import Settler
from gpuplan.inventory.merge.sizes import drive_text, exact_text, rate_text
from gpuplan.inventory.merge.tree import Bridges
from gpuplan.inventory.merge.uses import drive_uses
from gpuplan.inventory.names import card_type, gpu_types
from gpuplan.inventory.words import UNKNOWN

_ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
LINKS = ("ethernet", "infiniband")


def _short(address: str) -> str | None:
    """An address with a domain of four digits; hosts with more (virtual domains) have no guests."""
    return address if _ADDRESS.fullmatch(address) else None


def _addresses(listed: Sequence[str]) -> list[str]:
    return [a for a in listed if _ADDRESS.fullmatch(a)]


def _between(low: int, high: int) -> Callable[[int], int | None]:
    return lambda value: value if low <= value <= high else None


def _place(item: Item, nodes: Nodes, tree: Bridges) -> None:
    """What every device has: where it is on the bus and near which node."""
    item.take("pci_id", "pci_id")
    stated = item.value("numa_node")
    if isinstance(stated, int) and not nodes.items:
        item.put("numa_node", _between(0, 65535)(stated), item.said("numa_node"))
    elif isinstance(stated, int) and stated in nodes.places:
        item.put("numa_node", nodes.places[stated], item.said("numa_node"))
    elif stated is not None or not item.of.said.get("numa_node"):
        _derived_node(item, nodes, tree)
    item.take("iommu_group", "iommu_group", _between(0, 65535))
    item.take("parent", "parent", _short)


def _derived_node(item: Item, nodes: Nodes, tree: Bridges) -> None:
    """The node by the CPUs near the device, the bridges above it, or because there is no other."""
    parent = item.value("parent")
    above = tree.numa_node(str(parent), item.settler) if parent else None
    if (near := nodes.near(item.value("cpus"))) is not None:
        item.put("numa_node", near, item.said("cpus"))
    elif above in nodes.places:
        item.put("numa_node", nodes.places[above or 0], item.said("parent"))
    elif len(nodes.items) == 1:
        item.put("numa_node", 0, nodes.items[0].said("cpus"))


def types_of(gpu: Entity) -> set[str]:
    """What the catalogue calls it, by all that tools say of it."""
    identifier, memory = gpu.first("pci_id"), gpu.first("memory_bytes")
    return gpu_types(
        (str(p) for p in gpu.values("product")),
        None if identifier is None else str(identifier),
        None if memory is None else float(str(memory)),
    )


def gpu_item(gpu: Entity, nodes: Nodes, tree: Bridges, settler: Settler) -> Item:
    item = Item(gpu, settler)
    products = [str(p) for p in gpu.values("product")]
    types = types_of(gpu)
    name = next(iter(types)) if len(types) == 1 else next(iter(products), UNKNOWN)
    said = settler.value(gpu, "product")
    item.put("type", name, said.said if said else item.said("pci_id"))
    address = address_of(gpu)
    if address and _short(address):
        item.put("address", address, gpu.said.get("address", ()))
    if said and len(types) != 1:
        item.take("product", "product")
    _place(item, nodes, tree)
    item.take("module_id", "module_id", _between(1, 16))
    item.take("memory", "memory_bytes", exact_text)
    item.take("bar", "bar_bytes", exact_text)
    item.take("pcie_generation", "pcie_generation", _between(1, 9))
    item.take("pcie_width", "pcie_width", _between(1, 32))
    item.take("nvlinks", "nvlinks", _between(0, 65535))
    item.take("mig", "mig", {"on": True, "off": False}.get)
    if item.take("mig_instances", "mig_devices") is None:
        item.take("mig_instances", "mig_profiles")
    item.take("nvlink_domain", "fabric_clique")
    item.take("virtual_functions", "virtual_functions", _addresses)
    return item


def nic_item(card: Entity, nodes: Nodes, tree: Bridges, settler: Settler) -> Item:
    item = Item(card, settler)
    product = settler.value(card, "product")
    wording, identifier = str(product.value) if product else UNKNOWN, item.value("pci_id")
    said = product.said if product else item.said("pci_id")
    item.put("type", card_type(wording, str(identifier) if identifier else None), said)
    item.take("name", "name")
    address = address_of(card)
    if address and _short(address):
        item.put("address", address, card.said.get("address", ()))
    if wording not in (UNKNOWN, item.tree["type"]):
        item.take("product", "product")
    _place(item, nodes, tree)
    item.take("bandwidth", "bytes_per_s", lambda rate: rate_text(rate) if rate > 0 else None)
    item.take("link", "link", lambda v: v if v in LINKS else None)
    if item.take("virtual_functions", "virtual_functions", _addresses) is None:
        item.take("virtual_functions", "functions", _between(0, 65535))
    item.take("total_functions", "total_functions", _between(0, 65535))
    return item


def nvme_item(drive: Entity, nodes: Nodes, tree: Bridges, settler: Settler) -> Item:
    item = Item(drive, settler)
    item.take("name", "name")
    item.take("size", "size_bytes", lambda size: drive_text(size) if size > 0 else None)
    address = address_of(drive)
    if address and _short(address):
        item.put("address", address, drive.said.get("address", ()))
    item.take("product", "product")
    _place(item, nodes, tree)
    item.put("in_use", drive_uses(drive), drive.said.get("uses", drive.said.get("driver", ())))
    return item


def function_item(function: Entity, nodes: Nodes, tree: Bridges, settler: Settler) -> Item:
    item = Item(function, settler)
    item.put("address", address_of(function), function.said.get("address", ()))
    item.take("product", "product")
    _place(item, nodes, tree)
    return item


def bridge_items(items: Iterable[Item], tree: Bridges, settler: Settler) -> list[Item]:
    """The bridges on the way from a device to its root port; others carry nothing of interest."""
    needed: set[str] = set()
    for item in items:
        needed |= {*tree.above(item.tree.get("parent"))}
    entries = []
    for address in sorted(needed):
        bridge = tree.by_address.get(address) or Entity("bridge", [address])
        entry = Item(bridge, settler)
        if _short(address) is None:
            continue
        entry.put("address", address, bridge.said.get("address", ()))
        entry.take("parent", "parent", _short)
        entry.take("product", "product")
        entries.append(entry)
    return entries


def without_repeated_modules(gpus: Iterable[Item]) -> None:
    """Boards without NVSwitch count every GPU as module 1, which names none of them."""
    modules = Counter(item.tree.get("module_id") for item in gpus)
    for item in gpus:
        if modules[item.tree.get("module_id")] > 1:
            item.tree.pop("module_id", None)
            item.sources.pop("module_id", None)


def counted(gpus: Sequence[Item]) -> list[Item]:
    """Equal GPUs that follow each other and have no address, as one entry with their number."""
    if any("address" in gpu.tree for gpu in gpus):
        return [*gpus]
    runs: list[list[Item]] = []
    for gpu in gpus:
        if runs and runs[-1][0].tree == gpu.tree:
            runs[-1].append(gpu)
        else:
            runs.append([gpu])
    for run in runs:
        run[0].tree = {"type": run[0].tree["type"], "count": len(run)} | run[0].tree
    return [run[0] for run in runs]
