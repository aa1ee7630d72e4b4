"""hwloc's XML (`lstopo --of xml`), versions 1, 2 and 3: packages, cores, NUMA nodes, devices."""

from __future__ import annotations

import re

from gpuplan.inventory.facts import Reader, Reading
from gpuplan.inventory.readers import xmlread
from gpuplan.inventory.readers.gather import HOST, Gathering, shown, unreadable
from gpuplan.inventory.readers.trees.hwloc_io import devices
from gpuplan.inventory.readers.trees.hwloc_links import nvlinks
from gpuplan.inventory.readers.trees.hwloc_sets import TOOL, NumaNode, Topology, gathered
from gpuplan.inventory.readers.words import CPU_VENDORS, pci_address, whole
from gpuplan.inventory.readers.xmlread import Element
from gpuplan.source import SourceDocument

_OBJECT = re.compile(r"<topology(?:\s[^>]*)?>.*?<object\s+type=", re.DOTALL)
LOCAL = 10  # a node's distance to itself; other matrices are measured. Source: ACPI, SLIT
_LATENCY, _FROM_OS = 4, 1  # of a matrix's kind. Source: hwloc/distances.h


def recognises(text: str) -> bool:
    return "<topology" in text and _OBJECT.search(text) is not None


def read(document: SourceDocument) -> tuple[Reading, ...]:
    trees = xmlread.read(document, "topology", TOOL)
    return tuple(_reading(document, tree) for tree in trees)


READER = Reader(tool=TOOL, recognises=recognises, read=read)


def _reading(document: SourceDocument, tree: xmlread.Root) -> Reading:
    gathering = Gathering(TOOL, document.name, problems=list(tree.problems))
    if tree.root is None:
        return gathering.reading()
    topology = gathered(gathering, tree.root)
    if topology.machine is None:
        gathering.problems.append(unreadable(TOOL, "it holds no machine", tree.root.place))
        return gathering.reading()
    _infos(topology)
    if topology.whole:
        _processors(topology, topology.machine)
    _numa(topology)
    devices(topology)
    nvlinks(topology)
    host = gathering.value(HOST, "name")
    return gathering.reading(str(host) if host else None)


def _infos(topology: Topology) -> None:
    """What machine and packages say of themselves; version 3 says it of the whole topology."""
    add = topology.gathering.add
    names = {"HostName": "name", "Architecture": "architecture", "CPUModel": "cpu_model"}
    for name, info in topology.infos(topology.root, topology.machine, *topology.packages):
        value = info.attribute("value")
        if value is None or not value.text:
            continue
        if name in names:
            add(HOST, names[name], value.text, value.place)
        elif name == "CPUVendor" and value.text in CPU_VENDORS:
            add(HOST, "cpu_vendor", CPU_VENDORS[value.text], value.place)


def _processors(topology: Topology, machine: Element) -> None:
    """CPUs, cores and packages; where the parts are not the whole, nothing."""
    add, place = topology.gathering.add, machine.place
    cpus, stated = tuple(sorted(topology.cpus)), topology.set_of(machine)
    if not cpus or len(set(cpus)) < len(cpus) or (stated and stated != set(cpus)):
        word = machine.attribute("cpuset")
        both = shown(tuple(sorted(stated))), shown(cpus)
        topology.gathering.contradiction(
            "the host's CPUs", both, (word.place if word else place, place)
        )
        return
    add(HOST, "cpus", cpus, place)
    if not _packages(topology, cpus):
        return
    if topology.bare or not topology.cores:
        return
    add(HOST, "siblings", tuple(sorted(topology.cores)), place)
    threads = {len(core) for core in topology.cores}
    if len(threads) == 1:
        add(HOST, "threads_per_core", threads.pop(), place)
    _cores_per_socket(topology)


def _packages(topology: Topology, cpus: tuple[int, ...]) -> bool:
    """Whether the packages, where there are any, have every CPU once."""
    if not topology.packages:
        return True
    place = topology.packages[0].place
    inside = [cpu for package in topology.packages for cpu in topology.set_of(package)]
    if tuple(sorted(inside)) == cpus:
        topology.gathering.add(HOST, "sockets", len(topology.packages), place)
        return True
    fact = "the CPUs of all packages"
    both = shown(cpus), shown(tuple(sorted(inside)))
    assert topology.machine is not None
    topology.gathering.contradiction(fact, both, (topology.machine.place, place))
    return False


def _cores_per_socket(topology: Topology) -> None:
    counts = set()
    for package in topology.packages:
        mine = topology.set_of(package)
        counts.add(sum(set(core) <= mine for core in topology.cores))
    if len(counts) == 1:
        count = counts.pop()
        place = topology.packages[0].place
        topology.gathering.add(HOST, "cores_per_socket", count, place)


def _numa(topology: Topology) -> None:
    for node in topology.nodes.values():
        _node(topology, node)
    if topology.whole:
        for matrix in topology.root.all("distances2"):
            _matrix(topology, matrix)
        for matrix in topology.machine.all("distances") if topology.machine else ():
            _first_matrix(topology, matrix)


def _node(topology: Topology, node: NumaNode) -> None:
    """A NUMA node: GPUs' memory is one of its own, without CPUs, and says whose it is."""
    add, subject = topology.gathering.add, ("numa", str(node.number))
    memory, subtype = (node.element.attribute(n) for n in ("local_memory", "subtype"))
    size = whole(memory.text) if memory else None
    if memory and size:
        add(subject, "memory_bytes", size, memory.place)
    if subtype and subtype.text:
        add(subject, "subtype", subtype.text, subtype.place)
    for name, info in topology.infos(node.element):
        word = info.attribute("value") if name == "PCIBusID" else None
        address = pci_address(word.text) if word else None
        if word and address:
            add(("gpu", address), "memory_node", node.number, word.place)
    if topology.whole:
        where = node.element.attribute("cpuset")
        add(subject, "cpus", node.cpus, where.place if where else node.element.place)
        _socket(topology, node.number, node.cpus)


def _socket(topology: Topology, number: int, cpus: tuple[int, ...]) -> None:
    """The package that has all CPUs of a node, counted by their first CPUs as `lscpu` does."""
    ordered = sorted(topology.packages, key=lambda p: min(topology.set_of(p), default=0))
    for i, package in enumerate(ordered):
        if cpus and set(cpus) <= topology.set_of(package):
            topology.gathering.add(("numa", str(number)), "socket", i, package.place)
            return


def _matrix(topology: Topology, matrix: Element) -> None:
    """Distances of the firmware's table, between nodes named by the numbers of `<indexes>`."""
    kind = whole(matrix.attributes.get("kind", "")) or 0
    latency = kind & _LATENCY and kind & _FROM_OS
    if matrix.attributes.get("type") != "NUMANode" or not latency:
        return
    order = _numbers(matrix, "indexes")
    if matrix.attributes.get("indexing") == "gp":
        by_object = {
            n.element.attributes.get("gp_index"): n.number for n in topology.nodes.values()
        }
        order = [by_object.get(str(index), -1) for index in order]
    _distances(topology, matrix, order, _numbers(matrix, "u64values"))


def _numbers(matrix: Element, tag: str) -> list[int]:
    words = " ".join(child.text for child in matrix.all(tag)).split()
    numbers = (whole(word) for word in words)
    return [-1 if number is None else number for number in numbers]


def _first_matrix(topology: Topology, matrix: Element) -> None:
    """Version 1: values relative to the lowest, between all objects of one depth."""
    nodes = list(topology.nodes)
    depth = whole(matrix.attributes.get("relative_depth", ""))
    if topology.machine is None or _at_depth(topology.machine, depth or 0) != len(nodes):
        return
    try:
        base = float(matrix.attributes.get("latency_base", "x"))
        relative = [float(v.attributes.get("value", "x")) for v in matrix.all("latency")]
        values = [round(base * value) for value in relative]
    except (ValueError, OverflowError):
        return
    _distances(topology, matrix, nodes, values)


def _at_depth(element: Element, depth: int) -> int:
    """How many NUMA nodes are that far below; 0 where other objects are there too."""
    level = [element]
    for _ in range(min(depth, 50)):
        level = [
            c for e in level for c in e.children if c.tag == "object" and "cpuset" in c.attributes
        ]
    kinds = {e.attributes.get("type") for e in level}
    return len(level) if kinds == {"NUMANode"} else 0


def _distances(topology: Topology, matrix: Element, order: list[int], values: list[int]) -> None:
    """A row for each node, in the order of their numbers, where the matrix is of all nodes."""
    size = len(order)
    complete = sorted(order) == sorted(topology.nodes) and len(values) == size * size
    if not complete or {values[i * size + i] for i in range(size)} != {LOCAL} or min(values) < 0:
        return
    ascending = sorted(range(size), key=lambda i: order[i])
    for i in ascending:
        row = tuple(values[i * size + j] for j in ascending)
        topology.gathering.add(("numa", str(order[i])), "distances", row, matrix.place)
