"""`nvidia-smi topo -m` (and `-mp`): what lies between GPUs and network cards, and their CPUs.

The matrix is read by its names, with tabs or blanks, colours, and what a log puts before its
lines. Both halves are read, so a cell that its mirror contradicts is found.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gpuplan.inventory.facts import Reader, Reading, Subject
from gpuplan.inventory.readers.gather import Gathering
from gpuplan.inventory.readers.nvidia.topo_affinity import TOOL, add_affinity, affinity_columns
from gpuplan.inventory.readers.nvidia.topo_legend import CELL, LINKS, cards, sorted_key
from gpuplan.inventory.readers.words import Line, Word, lines_of
from gpuplan.source import SourceDocument

LONGEST_LINE = 10_000  # a row of a thousand devices
_MAKES = "mlx|bnxt_re|irdma|rocep|ibp|roce|rdma|qedr|efa|hfi1|ib|hns|cxgb|erdma|ionic"
_CARD = rf"(?:NIC\d{{1,9}}|(?:{_MAKES})[\w-]*)"
NAME = re.compile(rf"(?:GPU\d{{1,9}}|{_CARD})")
_HEADER = re.compile(
    rf"(?:^|\s)(?P<names>GPU\d{{1,9}}(?:\s*(?:GPU|NIC)\d{{1,9}}|\s+(?:{_MAKES})[\w-]*)*)"
    r"(?P<rest>(?:\s+(?:CPU|NUMA|GPU NUMA)\b.*)?)\s*$"
)
_ROW = re.compile(rf"(?:^|\s)(?P<name>{NAME.pattern})(?P<rest>\s+{CELL}(?:\s.*)?)$")
_WORD = re.compile(rf"{CELL}(?=\s|$|{CELL})|\S+")  # a wrapped line may glue two links together
_PEER = frozenset(("OK", "CNS", "GNS", "TNS", "NS", "DR", "U"))
_MORE = re.compile(rf"^\s*{CELL}(?:\s.*)?$")


@dataclass(slots=True)
class _Row:
    """A device's line: its name, the words after it (with those of lines it runs on), and where
    each ends in its line's text."""

    name: Word
    line: Line
    words: list[Word] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def go_on(self, line: Line, start: int) -> None:
        for match in _WORD.finditer(line.text, start):
            self.words.append(line.word(match.start(), match.end()))
            self.ends.append(match.end())
        self.line = line


@dataclass(slots=True)
class _Matrix:
    names: list[Word]
    header: Line
    columns: tuple[str, ...]
    rows: list[_Row] = field(default_factory=list)


def _recognises(text: str) -> bool:
    return "GPU0" in text and bool(_matrices(lines_of(SourceDocument("", text))))


def _read(document: SourceDocument) -> tuple[Reading, ...]:
    lines = lines_of(document)
    legend = cards(lines)
    matrices = _matrices(lines)
    return tuple(_reading(document, matrix, legend, len(matrices)) for matrix in matrices)


def _matrices(lines: tuple[Line, ...]) -> list[_Matrix]:
    matrices: list[_Matrix] = []
    for line in lines:
        if len(line.text) > LONGEST_LINE:
            continue
        header = _HEADER.search(line.text)
        if header:
            _header(matrices, line, header)
        elif matrices and _ROW.search(line.text):
            _row(matrices[-1], line)
        elif matrices and matrices[-1].rows and _MORE.match(line.text):
            _continue(matrices[-1], line)
    return [matrix for matrix in matrices if matrix.columns or _links(matrix)]


def _links(matrix: _Matrix) -> bool:
    """A matrix of links, not one of peer access (`topo -p2p`), which looks the same."""
    words = [word.text for row in matrix.rows for word in row.words[: len(matrix.names)]]
    return bool(words) and _PEER.isdisjoint(words)


def _header(matrices: list[_Matrix], line: Line, match: re.Match[str]) -> None:
    at = match.start("names")
    names = [
        line.word(at + each.start(), at + each.end()) for each in NAME.finditer(match["names"])
    ]
    columns = affinity_columns(match["rest"])
    matrices.append(_Matrix(names, line, columns))


def _row(matrix: _Matrix, line: Line) -> None:
    match = _ROW.search(line.text)
    assert match  # the caller has looked
    matrix.rows.append(_Row(line.group(match, "name"), line))
    matrix.rows[-1].go_on(line, match.start("rest"))


def _continue(matrix: _Matrix, line: Line) -> None:
    """A row that a narrow terminal has broken."""
    if len(matrix.rows[-1].words) < len(matrix.names):
        matrix.rows[-1].go_on(line, 0)


def _reading(
    document: SourceDocument, matrix: _Matrix, legend: dict[str, Word], matrices: int
) -> Reading:
    gathering = Gathering(TOOL, document.name)
    names, names_end = [word.text for word in matrix.names], matrix.names[-1].place
    for word in matrix.names:
        _device(gathering, word, legend if matrices == 1 else {})
    read = [row.name.text for row in matrix.rows if _cells(gathering, matrix, names, row)]
    missing = [word for word in matrix.names if word.text not in read]
    if missing:
        listed = ", ".join(word.text for word in missing)
        kept = f"{len(read)} of {len(names)} rows"
        gathering.cut_off(f"no whole row of {listed}", missing[0].place, kept)
    unnamed = [w for w in matrix.names if w.text.startswith("NIC") and w.text not in legend]
    if unnamed and matrices == 1:
        gathering.lacks(f"NIC legend with the name of {unnamed[0].text}", unnamed[0].place)
    if not matrix.columns:
        gathering.lacks("columns of CPU and NUMA affinity", names_end)
    return gathering.reading()


def subject_of(name: str) -> Subject:
    return ("gpu" if name.startswith("GPU") else "nic"), name


def _device(gathering: Gathering, word: Word, legend: dict[str, Word]) -> None:
    subject = subject_of(word.text)
    if subject[0] == "gpu":
        gathering.add(subject, "index", int(word.text[3:]), word.place)
    elif word.text.startswith("NIC"):
        name = legend.get(word.text)
        if name:
            gathering.add(subject, "name", name.text, name.place)
    else:
        gathering.add(subject, "name", word.text, word.place)


def _cells(gathering: Gathering, matrix: _Matrix, names: list[str], row: _Row) -> bool:
    """The links of a row; false where it is not whole."""
    if row.name.text not in names:
        expected = "a name of the header line"
        gathering.not_understood("a row's device", row.name, expected)
        return False
    cells = row.words[: len(names)]
    whole = len(cells) == len(names)
    if not whole and row.line.text.rstrip() == row.line.text:
        cells = cells[:-1]  # which may be half a word
    own = names.index(row.name.text)
    stray = next((i for i, c in enumerate(cells) if (c.text == "X") != (i == own)), None)
    if stray is not None:
        expected = "an X" if stray == own else "a link: only its own cell has an X"
        fact = f"{row.name.text} to {names[stray]}"
        remedy = "the row is left out: its cells do not stand under their names"
        gathering.not_understood(fact, cells[stray], expected, remedy)
        return False
    for name, cell in zip(names, cells, strict=False):
        _cell(gathering, row.name.text, name, cell)
    if whole and row.name.text.startswith("GPU"):
        rest = row.line.text[row.ends[len(names) - 1] :]
        add_affinity(gathering, matrix.columns, row.name, rest, row.words[len(names) :])
    return whole


def _cell(gathering: Gathering, row: str, column: str, cell: Word) -> None:
    if row == column:
        return
    link = LINKS.get(cell.text, cell.text if re.fullmatch(CELL, cell.text) else None)
    if link is None:
        expected = "a link (NV#, PIX, PXB, PHB, NODE, SYS)"
        gathering.not_understood(f"{row} to {column}", cell, expected)
    elif link != "N/A":
        gathering.add(("pair", sorted_key(row, column)), "link", link, cell.place)


READER = Reader(tool=TOOL, recognises=_recognises, read=_read)
