"""Objects of an hwloc topology as they are met, and their sets of CPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from gpuplan.diagnostics import Diagnostic, note
from gpuplan.inventory.readers.gather import Gathering
from gpuplan.inventory.readers.words import MOST_CPUS, whole
from gpuplan.inventory.readers.xmlread import Element

TOOL = "hwloc"
_CHUNK = re.compile(r"(?:0x)?([0-9A-Fa-f]{1,8})?")
_NO_SET = frozenset(("Bridge", "PCIDev", "OSDev", "Misc"))


def bitmap(text: str) -> tuple[int, ...] | None:
    """`0xff,,0x00000001` (32 bits a part, the highest first; nothing is 0) → numbers. None: not a
    bitmap, or an infinite one (`0xf...f`)."""
    bits = 0
    for part in text.strip().split(","):
        match = _CHUNK.fullmatch(part.strip())
        if not match:
            return None
        bits = bits << 32 | int(match[1] or "0", 16)
        if bits.bit_length() > MOST_CPUS:
            return None
    digits = f"{bits:b}"[::-1]
    return tuple(i for i, digit in enumerate(digits) if digit == "1")


@dataclass(slots=True)
class NumaNode:
    """A NUMA node: its number, the CPUs it is near to, and those that it has."""

    element: Element
    number: int
    near: frozenset[int]
    cpus: tuple[int, ...] = ()


@dataclass(slots=True)
class Topology:
    """The objects of one machine. `whole` is false where the text ended early or a number could not
    be read: then nothing is said that needs all objects."""

    gathering: Gathering
    root: Element
    whole: bool = True
    machine: Element | None = None
    packages: list[Element] = field(default_factory=list)
    cores: list[tuple[int, ...]] = field(default_factory=list)
    cpus: list[int] = field(default_factory=list)
    bare: int = 0  # CPUs outside any core
    nodes: dict[int, NumaNode] = field(default_factory=dict)
    devices: list[tuple[Element, Element, Element | None]] = field(default_factory=list)

    def number(self, element: Element, attribute: str, fact: str) -> int | None:
        """A number of an element; what is not one makes the topology incomplete."""
        word = element.attribute(attribute)
        value = whole(word.text) if word else None
        if word and value is None:
            self.gathering.not_understood(fact, word, "a number")
        self.whole &= value is not None
        return value

    def set_of(self, element: Element, attribute: str = "cpuset") -> frozenset[int]:
        """The CPUs of an element; what is not a set makes the topology incomplete."""
        word = element.attribute(attribute)
        numbers = bitmap(word.text) if word else ()
        if word and numbers is None:
            fact = f"the {attribute} of a {kind_of(element)}"
            expected = "a set like 0x0000ffff"
            self.gathering.not_understood(fact, word, expected)
            self.whole = False
        return frozenset(numbers or ())

    def infos(self, *elements: Element | None) -> Iterator[tuple[str, Element]]:
        for element in elements:
            for info in element.all("info") if element else ():
                yield info.attributes.get("name", ""), info


def kind_of(element: Element) -> str:
    """The type of an object, as version 2 calls it."""
    kind = element.attributes.get("type", "")
    return {"Socket": "Package", "Node": "NUMANode", "System": "Machine"}.get(kind, kind)


def gathered(gathering: Gathering, root: Element) -> Topology:
    """All objects of a `<topology>`, in the order of the text."""
    topology = Topology(gathering, root, whole=root.closed)
    _Walk(topology).down(root, None, None, None)
    _owners(topology)
    return topology


class _Walk:
    """Goes down the tree; `near` is the closest object that has CPUs, `bridge` the closest bridge
    with an address, `core` the numbers of the core at hand."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology

    def down(
        self,
        element: Element,
        near: Element | None,
        bridge: Element | None,
        core: list[int] | None,
    ) -> None:
        for child in element.children:
            if child.tag == "object":
                self._object(child, near, bridge, core)

    def _object(
        self,
        element: Element,
        near: Element | None,
        bridge: Element | None,
        core: list[int] | None,
    ) -> None:
        kind = kind_of(element)
        if kind in {"Bridge", "PCIDev"}:
            if near is not None:
                self.topology.devices.append((element, near, bridge))
            above = element if element.attributes.get("pci_busid") else bridge
            self.down(element, near, above, core)
            return
        if kind in _NO_SET:
            return
        self._kept(element, kind, core)
        if kind == "Core":
            mine: list[int] = []
            self.down(element, element, bridge, mine)
            self.topology.cores.append(tuple(sorted(mine)))
        else:
            self.down(element, element, bridge, core)

    def _kept(self, element: Element, kind: str, core: list[int] | None) -> None:
        topology = self.topology
        topology.machine = topology.machine or element  # in version 1 also its one NUMA node
        if kind == "Package":
            topology.packages.append(element)
        elif kind == "NUMANode":
            self._node(element)
        elif kind == "PU":
            number = topology.number(element, "os_index", "a CPU")
            if number is not None:
                topology.cpus.append(number)
                topology.bare += core is None
                if core is not None:
                    core.append(number)

    def _node(self, element: Element) -> None:
        number = self.topology.number(element, "os_index", "a NUMA node")
        if number is not None:
            near = self.topology.set_of(element)
            self.topology.nodes.setdefault(number, NumaNode(element, number, near))


# Kinds of memory that processors reach beside their own.
_NEVER_FIRST = frozenset(("GPUMemory", "NVM", "SPM", "MCDRAM", "HBM", "CXL-DRAM", "CXL-NVM"))


def _owners(topology: Topology) -> None:
    """Since version 2 a node without CPUs of its own shows those it is near to. A CPU belongs to
    one node: of several near it, the one of ordinary memory with the lowest number, as hwloc lists
    them. Source: hwloc, "How do I find the local MCDRAM NUMA node" and default nodes. A machine
    without nodes, which version 1 could write, is one node, as later versions read it."""
    if topology.machine is not None and topology.whole and not topology.nodes:
        topology.nodes[0] = NumaNode(topology.machine, 0, topology.set_of(topology.machine))
    taken: dict[int, int] = {}

    def rank(node: NumaNode) -> tuple[bool, int]:
        return node.element.attributes.get("subtype", "") in _NEVER_FIRST, node.number

    for node in sorted(topology.nodes.values(), key=rank):
        if not node.near & taken.keys():
            node.cpus = tuple(sorted(node.near))
            taken |= dict.fromkeys(node.near, node.number)
        elif not rank(node)[0]:
            topology.gathering.problems.append(
                _near_only(node, taken[min(node.near & taken.keys())])
            )


def _near_only(node: NumaNode, owner: int) -> Diagnostic:
    word = node.element.attribute("cpuset")
    return note(
        "GP063",
        f"hwloc shows the CPUs of NUMA node {owner} beside node {node.number} as well, which is "
        "read as memory without CPUs",
        word.place if word else node.element.place,
        help="add `numactl -H` or `lscpu`, which say whose they are",
    )
