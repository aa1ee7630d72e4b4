"""`lscpu -p` and `lscpu -e`: which CPUs are threads of one core."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpuplan.frozen import record
from gpuplan.inventory.readers.gather import HOST, Gathering
from gpuplan.inventory.readers.words import Line, Word, whole

_PARSABLE = re.compile(r"(?:^|\s)# ?(?P<names>CPU,[A-Za-z0-9,:()]*)\s*$", re.IGNORECASE)
_EXTENDED = re.compile(
    r"(?:^|\s)(?P<names>CPU(?:\s+(?:NODE|SOCKET|BOOK|DRAWER|CORE|CLUSTER|L1d\S*|ONLINE|CONFIGURED|"
    r"POLARIZATION|ADDRESS|MAXMHZ|MINMHZ|MHZ|SCALMHZ%|MODELNAME))+)\s*$"
)


@record
class Table:
    """Column names in upper case, and rows of as many words."""

    head: Word
    columns: tuple[str, ...]
    rows: tuple[tuple[Word, ...], ...]
    cut: tuple[Word, ...] = ()  # lines with fewer words


def tables(lines: tuple[Line, ...]) -> list[Table]:
    """All tables in a text, in order: a head, and the lines below it that start with a number."""
    heads = [(at, head) for at, line in enumerate(lines) if (head := _columns(line))]
    ends = [*(at for at, _ in heads[1:]), len(lines)]
    whole_tables = []
    for (at, (columns, separator)), end in zip(heads, ends, strict=False):
        rows = [
            _split(line, separator)
            for line in lines[at + 1 : end]
            if re.match(r"\s*\d+(?:,|\s)", line.text)
        ]
        whole_rows = tuple(row for row in rows if len(row) == len(columns))
        cut = tuple(row[0] for row in rows if len(row) != len(columns))
        whole_tables.append(Table(head=lines[at].word(), columns=columns, rows=whole_rows, cut=cut))
    return [table for table in whole_tables if "CORE" in table.columns]


def _columns(line: Line) -> tuple[tuple[str, ...], str] | None:
    """The names of a head in upper case, and what separates its values."""
    match = _PARSABLE.search(line.text)
    if match:
        return tuple(match["names"].upper().split(",")), ","
    match = _EXTENDED.search(line.text)
    return (tuple(match["names"].upper().split()), " ") if match else None


def _split(line: Line, separator: str) -> tuple[Word, ...]:
    if separator == " ":
        return line.words()
    cells, start = [], 0
    for part in line.text.split(","):
        cells.append(line.word(start, start + len(part)))
        start += len(part) + 1
    return tuple(cells)


def add_siblings(gathering: Gathering, listed: list[Table]) -> None:
    """The CPUs of each core, of the first table (one of physical numbers may follow)."""
    for table in listed[:1]:
        if table.cut:
            fault = f"{len(table.cut)} lines of the table have not {len(table.columns)} values"
            gathering.cut_off(fault, table.cut[0].place)
            continue
        if not table.rows:
            gathering.lacks("line in its table", table.head.place)
        cores = _cores(gathering, table)
        if cores and _whole(gathering, table, cores.values()):
            value = tuple(sorted(tuple(sorted(cpus)) for cpus in cores.values()))
            gathering.add(HOST, "siblings", value, table.rows[0][0].place)
            _groups(gathering, table)


def _groups(gathering: Gathering, table: Table) -> None:
    """The CPUs of each NUMA node, and the number of sockets, of CPUs that are on."""
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    rows = [row for row in rows if row["CORE"].text not in ("-", "")]
    place = table.rows[0][0].place
    for column, attribute in (("SOCKET", "sockets"), ("NODE", "cpus")):
        words = [row[column] for row in rows if column in table.columns]
        groups: dict[int | None, list[int]] = {}
        for row, word in zip(rows, words, strict=False):
            groups.setdefault(whole(word.text), []).append(int(row["CPU"].text))
        if not groups or None in groups:
            continue  # not a column of this table, or not told of all
        if column == "SOCKET":
            gathering.add(HOST, attribute, len(groups), place)
            continue
        for node, cpus in groups.items():
            gathering.add(("numa", str(node)), attribute, tuple(sorted(cpus)), place)


def _whole(gathering: Gathering, table: Table, cores: Iterable[list[int]]) -> bool:
    """False where lines are lost: CPUs that are on have none, or, where nothing says which are on,
    cores differ in their threads."""
    listed = sorted(cpu for cpus in cores for cpu in cpus)
    online = gathering.value(HOST, "cpus")
    uneven = len({len(cpus) for cpus in cores}) > 1
    short = not set(online) <= set(listed) if isinstance(online, tuple) else uneven
    if short:
        part = f"line of every CPU in its table ({len(listed)} are there)"
        gathering.lacks(part, table.rows[0][0].place)
    return not short


def _cores(gathering: Gathering, table: Table) -> dict[tuple[str, ...], list[int]] | None:
    """CPUs by node, socket, core and instruction cache: numbers of cores repeat in each socket,
    and in each kind of cores."""
    cores: dict[tuple[str, ...], list[int]] = {}
    seen: set[int] = set()
    for row in table.rows:
        of = dict(zip(table.columns, row, strict=True))
        number = whole(of["CPU"].text)
        if number is None or number in seen:
            expected = "a number that no other line has"
            gathering.not_understood("a CPU", of["CPU"], expected)
            return None
        seen.add(number)
        if of["CORE"].text in ("-", ""):  # a CPU that is off
            continue
        if whole(of["CORE"].text) is None:
            gathering.not_understood(f"the core of CPU {number}", of["CORE"], "a number")
            return None
        key = tuple(of[name].text for name in ("NODE", "SOCKET", "CORE") if name in of)
        cores.setdefault((*key, _cache(of)), []).append(number)
    return cores


def _cache(of: dict[str, Word]) -> str:
    """The number of the L1 instruction cache: of a column of its own, or of `L1d:L1i:L2:L3`."""
    for column, word in of.items():
        names, values = column.split(":"), word.text.split(":")
        if "L1I" in names and len(names) == len(values):
            return values[names.index("L1I")]
    return ""
