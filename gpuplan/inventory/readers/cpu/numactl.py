"""`numactl -H`: NUMA nodes, also without memory or without CPUs, and how far apart they are."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gpuplan.inventory.facts import Reader, Reading
from gpuplan.inventory.readers.gather import (
    HOST,
    Gathering,
    shown,
)
from gpuplan.inventory.readers.words import Line, Word, cpu_list, lines_of, size_bytes, whole
from gpuplan.source import Place, SourceDocument

TOOL = "numactl -H"
_COUNT = re.compile(r"available: (?P<count>\d{1,9}) nodes? \((?P<nodes>[^)]*)\)")
_NODE = re.compile(r"\bnode (?P<node>\d{1,9}) (?P<what>cpus|size):(?P<value>.*)$")
_HEAD = re.compile(r"(?:^|\s)node(?P<nodes>(?:\s+\d{1,9})+)\s*$")
_ROW = re.compile(r"(?:^|\s)(?P<node>\d{1,9}):(?P<values>(?:\s+\d{1,9})+)\s*$")
_NUMBERS = re.compile(r"^\s*\d[\d ]*$")
LOCAL = 10  # the distance of a node from itself, by the ACPI specification


@dataclass(slots=True)
class _Nodes:
    """What has been read: CPUs by node, and the table's header."""

    cpus: dict[int, list[Word]] = field(default_factory=dict)
    sized: set[int] = field(default_factory=set)
    columns: list[Word] = field(default_factory=list)
    far: dict[int, Place] = field(default_factory=dict)
    rows: dict[int, int] = field(default_factory=dict)  # nodes by line
    open: int | None = None  # the node whose CPUs the next line may go on with


def _recognises(text: str) -> bool:
    return re.search(r"\bnode \d{1,9} (?:cpus|size):", text) is not None


def _read(document: SourceDocument) -> tuple[Reading, ...]:
    """A reading for each output in the text: each starts with `available:`."""
    parts: list[list[Line]] = [[]]
    listing = False
    for line in lines_of(document):
        if listing and _COUNT.search(line.text):
            parts.append([])
            listing = False
        listing = listing or _NODE.search(line.text) is not None
        parts[-1].append(line)
    return tuple(_reading(document, lines) for lines in parts)


def _reading(document: SourceDocument, lines: list[Line]) -> Reading:
    gathering, nodes = Gathering(TOOL, document.name), _Nodes()
    for line in lines:
        _line(gathering, nodes, line)
    _cpus(gathering, nodes)
    _whole(gathering, nodes, lines)
    return gathering.reading()


def _line(gathering: Gathering, nodes: _Nodes, line: Line) -> None:
    node = _NODE.search(line.text)
    if node:
        nodes.open = None
        _node(gathering, nodes, line, node)
    elif nodes.open is not None and _NUMBERS.match(line.text):
        nodes.cpus[nodes.open] += line.words()  # a narrow terminal has broken the line
    elif head := _HEAD.search(line.text):
        start = head.start("nodes")
        nodes.columns = [
            line.word(start + m.start(), start + m.end())
            for m in re.finditer(r"\d{1,9}", head["nodes"])
        ]
        _distinct(gathering, nodes)
    elif nodes.columns and (row := _ROW.search(line.text)):
        _distances(gathering, nodes, line, row)
    elif line.text.strip():
        nodes.open = None


def _node(gathering: Gathering, nodes: _Nodes, line: Line, match: re.Match[str]) -> None:
    number, value = int(match["node"]), line.group(match, "value")
    if match["what"] == "cpus":
        start = match.start("value")
        nodes.cpus[number] = [
            line.word(start + m.start(), start + m.end())
            for m in re.finditer(r"\S+", match["value"])
        ] or [value]
        nodes.open = number
        return
    size = size_bytes(value.text) if " " in value.text else None
    nodes.sized.add(number)
    if size is None:
        gathering.not_understood(f"the memory of node {number}", value, "a size in MB")
    else:
        gathering.add(("numa", str(number)), "memory_bytes", size, value.place)


def _cpus(gathering: Gathering, nodes: _Nodes) -> None:
    owners: dict[int, tuple[int, Place]] = {}
    for node, words in nodes.cpus.items():
        numbers = [whole(word.text) for word in words if word.text]
        cpus = cpu_list(" ".join(word.text for word in words))
        if cpus is None or list(cpus) != numbers:
            _not_cpus(gathering, node, words)
            continue
        gathering.add(("numa", str(node)), "cpus", cpus, words[0].place)
        for cpu, word in zip(cpus, words, strict=False):
            before, place = owners.setdefault(cpu, (node, word.place))
            if before != node:
                both = f"node {before}", f"node {node}"
                gathering.contradiction(f"the node of CPU {cpu}", both, (place, word.place))
                gathering.drop(("numa", str(node)), "cpus")
                gathering.drop(("numa", str(before)), "cpus")
                break


def _not_cpus(gathering: Gathering, node: int, words: list[Word]) -> None:
    """The first word that is no number, or not above the one before it."""
    last = -1
    for word in words:
        number = whole(word.text)
        if number is None or number <= last:
            fact = f"a CPU of node {node}"
            expected = "a number above the one before it"
            gathering.not_understood(fact, word, expected)
            return
        last = number
    gathering.not_understood(f"the CPUs of node {node}", words[-1], "a CPU")


def _distinct(gathering: Gathering, nodes: _Nodes) -> None:
    """A table with two columns of one node says nothing of either."""
    numbers = [int(word.text) for word in nodes.columns]
    for place, number in enumerate(numbers):
        if number in numbers[:place]:
            word = nodes.columns[place]
            gathering.not_understood("a column of the distances", word, "each node once")
            nodes.columns = []
            return


def _distances(gathering: Gathering, nodes: _Nodes, line: Line, match: re.Match[str]) -> None:
    """A row of the table; its values in ascending order of nodes."""
    node, start = int(match["node"]), match.start("values")
    words = [
        line.word(start + m.start(), start + m.end())
        for m in re.finditer(r"\d{1,9}", match["values"])
    ]
    columns = [int(word.text) for word in nodes.columns]
    name = line.group(match, "node")
    if len(words) != len(columns):
        fault = f"the distances of node {node} are {len(words)}, of {len(columns)}"
        gathering.cut_off(fault, line.group(match, "values").place)
        return
    own = words[columns.index(node)] if node in columns else name
    if node not in columns or int(own.text) != LOCAL:
        expected = f"{LOCAL}, that of every node from itself"
        gathering.not_understood(f"the distance of node {node} from itself", own, expected)
        return
    ordered = tuple(int(word.text) for _, word in sorted(zip(columns, words, strict=True)))
    gathering.add(("numa", str(node)), "distances", ordered, words[0].place)
    nodes.far[node] = name.place
    nodes.rows[line.number] = node


def _whole(gathering: Gathering, nodes: _Nodes, lines: list[Line]) -> None:
    """The nodes that the first line announces are those that follow."""
    numbers = sorted({*nodes.cpus, *nodes.sized})
    first = next(
        (line.group(m, "count") for line in lines if (m := _COUNT.search(line.text))), None
    )
    at = first or next(iter(line.word() for line in lines if line.text.strip()), lines[0].word())
    if first is None:
        gathering.lacks("first line, which names all nodes", at.place)
    elif len(numbers) == int(first.text):
        gathering.add(HOST, "numa_count", len(numbers), first.place)
    else:
        listed = f"{len(numbers)} are listed ({shown(tuple(numbers))})"
        gathering.cut_off(f"{first.text} nodes are available, {listed}", at.place)
    for node in numbers:
        missing = "CPUs" if node not in nodes.cpus else "size" if node not in nodes.sized else ""
        if missing:
            gathering.lacks(f"line of the {missing} of node {node}", at.place)
            gathering.drop(("numa", str(node)), "cpus")  # the list may be cut off too
    if not nodes.columns and not any("No distance" in line.text for line in lines):
        gathering.lacks("table of distances", at.place)
    if lines[-1].number in nodes.rows and len(nodes.far) < len(nodes.columns):
        gathering.drop(("numa", str(nodes.rows[lines[-1].number])), "distances")
    gap = [word for word in nodes.columns if int(word.text) not in nodes.far]
    if gap and len(nodes.far) < len(nodes.columns):
        listed = ", ".join(word.text for word in gap)
        gathering.cut_off(f"the table has no whole row of node {listed}", gap[0].place)


READER = Reader(tool=TOOL, recognises=_recognises, read=_read)
