"""Processors, NUMA nodes and memory of a host, as the inventory describes them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from gpuplan.inventory.facts import Value
from gpuplan.inventory.merge.cpus import cores_of, numbering
from gpuplan.inventory.merge.entities import Entity
from gpuplan.inventory.merge.item import Item
from gpuplan.inventory.merge.settle import Settler
from gpuplan.inventory.merge.sizes import memory_text
from gpuplan.units import format_ranges

VENDORS = ("intel", "amd", "arm")
MOST_THREADS = 8
_OF_PLACEMENT = re.compile(
    r"(intel_iommu|amd_iommu|iommu|vfio|pci|hugepages|hugepagesz|default_hugepagesz|isolcpus|"
    r"nohz_full|rcu_nocbs|irqaffinity|maxcpus|nr_cpus|mem|numa|numa_balancing|nosmt|"
    r"transparent_hugepage|pcie_acs_override)\b"
)
LARGEST_CPU = 9999  # that an inventory can name


@dataclass(slots=True)
class Nodes:
    """NUMA nodes with CPUs, in the order of the kernel's numbers. `places` gives a number its place
    in the list; nodes that are memory alone (of a GPU, or persistent) are not in it. `disputed`:
    tools contradict each other on the CPUs of a node."""

    items: list[Item] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)
    cpus: list[frozenset[int]] = field(default_factory=list)
    disputed: bool = False

    def near(self, cpus: Value | None) -> int | None:
        """The place of the only node that has all of `cpus`."""
        wanted = frozenset(cpus) if isinstance(cpus, tuple) else frozenset()
        around = [n for n, own in enumerate(self.cpus) if wanted and wanted <= own]
        return around[0] if len(around) == 1 else None


def host_item(host: Entity, settler: Settler) -> Item:
    """What is true of the host as a whole."""
    item = Item(host, settler)
    item.take("node_type", "node_type")
    item.take("virtualization", "virtualization", lambda v: None if v == "none" else v)
    item.take("architecture", "architecture")
    item.take("cpu_model", "cpu_model")
    item.take("cpu_vendor", "cpu_vendor", lambda v: v if v in VENDORS else None)
    item.take("physical_address_bits", "physical_address_bits", _bits)
    item.take("sockets", "sockets", lambda v: v or None)
    item.take("threads_per_core", "threads_per_core", _threads)
    item.take("driver_version", "driver_version")
    item.take("iommu", "iommu", {"on": True, "off": False}.get)
    item.take("kernel_parameters", "kernel_parameters", _line)
    return item


def _bits(bits: int) -> int | None:
    return bits if 36 <= bits <= 57 else None


def _threads(threads: int) -> int | None:
    return threads if 1 <= threads <= MOST_THREADS else None


def _line(words: Any) -> str | None:
    """What of the kernel's line bears on placement: it also names disks, and anything else."""
    listed = words if isinstance(words, tuple) else str(words).split()
    return " ".join(w for w in listed if _OF_PLACEMENT.match(w)) or None


def nodes_of(host: Item, things: Iterable[Entity], settler: Settler) -> Nodes:
    """The nodes that have CPUs, with what is said of them."""
    nodes = Nodes()
    numbered = {int(thing.keys[0]): thing for thing in things if thing.keys[0].isdecimal()}
    for number, thing in sorted(numbered.items()):
        item = Item(thing, settler)
        cpus = item.value("cpus")
        nodes.disputed |= cpus is None and bool(thing.said.get("cpus"))
        if not isinstance(cpus, tuple) or not cpus or int(str(max(cpus))) > LARGEST_CPU:
            continue
        nodes.places[number] = len(nodes.items)
        nodes.items.append(item)
        nodes.cpus.append(frozenset(int(str(c)) for c in cpus))
        if number != nodes.places[number]:
            item.put("node", number)
        _node(item, host)
    if any("cpus" in t.said and not t.said["cpus"][0].value for t in numbered.values()):
        _distances(nodes, sorted(numbered))
    else:
        _distances(nodes, sorted(nodes.places))
    _one_node(nodes, host, memory_only=len(numbered) > len(nodes.items))
    return nodes


def _node(item: Item, host: Item) -> None:
    if item.take("socket", "socket") is None and host.value("sockets") == 1:
        item.put("socket", 0, host.said("sockets"))
    cpus = item.take("cpus", "cpus", format_ranges)
    siblings = host.value("siblings")
    if isinstance(cpus, tuple) and isinstance(siblings, tuple):
        cores = cores_of(cpus, siblings)  # type: ignore[arg-type]
        item.put("siblings", numbering(cpus, cores), host.said("siblings"))  # type: ignore[arg-type]
    item.take("memory", "memory_bytes", lambda size: memory_text(size) if size else None)


def _distances(nodes: Nodes, columns: list[int]) -> None:
    """Rows without the columns of nodes that are not in the list."""
    kept = [place for place, number in enumerate(columns) if number in nodes.places]
    for item in nodes.items:
        row = item.value("distances")
        if isinstance(row, tuple) and len(row) == len(columns):
            item.take("distances", "distances", lambda r: [r[k] for k in kept])
        elif isinstance(row, tuple) and len(row) == len(nodes.items):
            item.take("distances", "distances")


def _one_node(nodes: Nodes, host: Item, *, memory_only: bool) -> None:
    """The memory of a host with one node is that node's."""
    size = host.value("memory_bytes")
    if len(nodes.items) == 1 and not memory_only and "memory" not in nodes.items[0].tree and size:
        nodes.items[0].put("memory", memory_text(float(str(size))), host.said("memory_bytes"))


def cores_and_memory(host: Item, nodes: Nodes) -> None:
    """What stands at the host itself, where its nodes do not say it."""
    if not nodes.items:
        per_socket, sockets = host.value("cores_per_socket"), host.value("sockets")
        if per_socket and sockets:
            said = host.said("cores_per_socket")
            host.put("cpu_cores", int(str(per_socket)) * int(str(sockets)), said)
        elif cores := _cores(host):
            host.put(
                "cpu_cores",
                cores,
                host.said("siblings") or host.said("cpus") or host.said("cpu_count"),
            )
    if not nodes.items or any("memory" not in item.tree for item in nodes.items):
        host.take("memory", "memory_bytes", lambda size: memory_text(size) if size else None)


def _cores(host: Item) -> int | None:
    """Physical cores by the siblings, or by the CPUs where a core has one thread."""
    siblings, cpus = host.value("siblings"), host.value("cpus")
    if isinstance(siblings, tuple):
        return len(siblings) or None
    threads, count = host.value("threads_per_core"), host.value("cpu_count")
    number = len(cpus) if isinstance(cpus, tuple) else count
    if isinstance(number, int) and isinstance(threads, int) and threads > 0:
        return number // threads or None
    return None


def threads_from_siblings(host: Item) -> None:
    """The threads of a core, where siblings are listed and no tool counts them."""
    siblings = host.value("siblings")
    if "threads_per_core" not in host.tree and isinstance(siblings, tuple) and siblings:
        most = max(len(s) for s in siblings if isinstance(s, tuple))
        host.put("threads_per_core", _threads(most), host.said("siblings"))
