"""`lscpu`: text (old, and in sections since 2.38), JSON, and tables (`-e`, `-p`)."""

from __future__ import annotations

import re

from gpuplan.inventory.facts import Reader, Reading
from gpuplan.inventory.readers.cpu.lscpu_fields import KEYS, TOOL, Entry, add_fields
from gpuplan.inventory.readers.cpu.lscpu_table import Table, add_siblings, tables
from gpuplan.inventory.readers.gather import Gathering
from gpuplan.inventory.readers.jsonread import Json, parse
from gpuplan.inventory.readers.words import Line, Word, lines_of
from gpuplan.source import SourceDocument

_ENTRY = re.compile(rf"(?:^|\s)(?P<key>{KEYS}):(?P<value>.*)$")
_JSON = r'\{\s*"lscpu"\s*:\s*\['
_CPUS = r'\{\s*"cpus"\s*:\s*\[\s*\{\s*"(?:cpu|node|socket|core)"'


def _recognises(text: str) -> bool:
    if re.search(_JSON, text) or re.search(_CPUS, text):
        return True
    if "CPU" not in text:
        return False
    keys = {match["key"] for match in re.finditer(_ENTRY.pattern, text, re.MULTILINE)}
    return len(keys) >= 2 or bool(tables(lines_of(SourceDocument("", text))))


def _read(document: SourceDocument) -> tuple[Reading, ...]:
    """A reading for each output in the text: every one starts with the architecture."""
    gathering = Gathering(TOOL, document.name)
    entries = _json(gathering, document)
    from_json = _json_table(gathering, document)
    if entries or from_json:
        add_fields(gathering, entries)
        add_siblings(gathering, from_json)
        return (gathering.reading(),)
    readings = [_text(document, lines) for lines in _parts(lines_of(document))]
    return (gathering.reading(), *readings) if gathering.problems else tuple(readings)


def _parts(lines: tuple[Line, ...]) -> list[list[Line]]:
    parts: list[list[Line]] = [[]]
    started = False
    for line in lines:
        match = _ENTRY.search(line.text)
        if match and match["key"] == "Architecture":
            if started:
                parts.append([])
            started = True
        parts[-1].append(line)
    return parts


def _text(document: SourceDocument, lines: list[Line]) -> Reading:
    gathering = Gathering(TOOL, document.name)
    add_fields(gathering, _without_half(gathering, _entries(tuple(lines)), lines[-1]))
    add_siblings(gathering, tables(tuple(lines)))
    return gathering.reading()


def _entries(lines: tuple[Line, ...]) -> list[Entry]:
    """The lines whose key is known, in their order; `Virtualisation` is the British locale's."""
    return [
        Entry(key=match["key"], value=line.group(match, "value"), at=line.group(match, "key"))
        for line in lines
        if (match := _ENTRY.search(line.text))
    ]


def _without_half(gathering: Gathering, entries: list[Entry], last: Line) -> list[Entry]:
    """A line at which the text breaks off may hold half a value; NUMA nodes come after all that is
    read here but themselves."""
    if not entries or entries[-1].at.place.span.line != last.number:
        return entries
    final = entries[-1]
    if final.key.startswith("NUMA") or any(entry.key == "NUMA node(s)" for entry in entries):
        return entries
    gathering.cut_off(f"it ends with '{final.key}'", final.at.place, "what stands before")
    return entries[:-1]


def _json(gathering: Gathering, document: SourceDocument) -> list[Entry]:
    """`lscpu -J`: fields in one list, or in one another."""
    parsed = parse(document, _JSON)
    _report(gathering, parsed.fault)
    top = parsed.value.members.get("lscpu") if parsed.value else None
    entries: list[Entry] = []
    waiting = list(reversed(top.items)) if top else []
    while waiting:
        item = waiting.pop()
        key, value = item.text("field"), item.text("data")
        if key and (match := re.fullmatch(f"({KEYS}):?", key.text.strip())):
            empty = Word(text="", place=key.place)
            entries.append(Entry(key=match[1], value=value or empty, at=key))
        children = item.members.get("children")
        waiting += reversed(children.items) if children else []
    return entries


def _json_table(gathering: Gathering, document: SourceDocument) -> list[Table]:
    """`lscpu -e -J`: a member for each column."""
    parsed = parse(document, _CPUS)
    _report(gathering, parsed.fault)
    top = parsed.value.members.get("cpus") if parsed.value else None
    rows = [row for row in top.items if row.closed and row.kind == "object"] if top else []
    if not rows:
        return []
    columns = tuple(name.upper() for name in rows[0].members)
    return [
        Table(head=rows[0].word, columns=columns, rows=tuple(_words(row, rows[0]) for row in rows))
    ]


def _words(row: Json, first: Json) -> tuple[Word, ...]:
    empty = Word(text="-", place=row.word.place)
    return tuple(row.text(name) or empty for name in first.members)


def _report(gathering: Gathering, fault: Word | None) -> None:
    if fault is not None:
        where = f"its JSON ends or breaks at '{fault.text[:20]}'"
        gathering.cut_off(where, fault.place, "what stands before")


READER = Reader(tool=TOOL, recognises=_recognises, read=_read)
