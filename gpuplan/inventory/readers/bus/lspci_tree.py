"""`lspci -t` and `lspci -tv`: the drawing of buses and bridges. It does not say what class a
device is of; where its name does not either, it is a subject of the kind `device`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpuplan.inventory.facts import Reader, Reading
from gpuplan.inventory.readers.bus.called import kind_by_name
from gpuplan.inventory.readers.gather import Gathering
from gpuplan.inventory.readers.words import Line, Word, lines_of, unwrapped
from gpuplan.source import Place, SourceDocument

TOOL = "lspci -t"
_ROOT = r"\[([0-9a-f]{4,8}):([0-9a-f]{2})\]"
_RECOGNISED = re.compile(rf"^[ |]*[-+\\]-?\+?-?(?:{_ROOT}|\[00\])-", re.MULTILINE)
_TOKEN = re.compile(
    r"(?P<wire>[-+\\]*)(?:\[(?:(?P<domain>[0-9a-f]{4,8}):)?(?P<bus>[0-9a-f]{2})(?:-[0-9a-f]{2})?\]|"
    r"(?P<device>[0-9a-f]{2})\.(?P<function>[0-7]))"
)
_TAIL = re.compile(r"-*(?:  .*)?")
_BEGINS = re.compile(r"[ |+\\-]")
_NAMELESS = re.compile(r".* Device [0-9a-f]{4}|Device [0-9a-f]{4}:[0-9a-f]{4}")


def recognises(text: str) -> bool:
    return _RECOGNISED.search(text) is not None


def read(document: SourceDocument) -> tuple[Reading, ...]:
    parser = _Parser(document)
    for line in unwrapped(lines_of(document), _BEGINS):
        if line.text.strip():
            parser.line(line)
    parser.end()
    return (parser.gathering.reading(),)


READER = Reader(tool=TOOL, recognises=recognises, read=read)


@dataclass(slots=True)
class _Bus:
    """A bus being drawn: `column` is where it is written, `children` where its devices are;
    `ended` after the last of them."""

    domain: str
    number: str
    column: int
    bridge: str | None
    children: int | None = None
    ended: bool = False


class _Parser:
    """`open` are the buses that the line at hand may continue, from the root outwards; `roots` is
    true where another root must follow."""

    def __init__(self, document: SourceDocument) -> None:
        self.gathering = Gathering(TOOL, document.name)
        self.open: list[_Bus] = []
        self.device: tuple[str, Place] | None = None  # the last one of this line
        self.above: str | None = None  # the bridge above it
        self.called = "device"  # what its name says it is
        self.roots = False
        self.last = document.text.count("\n") + 1
        self.drawn: Line | None = None

    def line(self, line: Line) -> None:
        position = len(line.text) - len(line.text.lstrip(" |"))
        self.device = None
        first = True
        while match := _TOKEN.match(line.text, position):
            if not self._token(line, match, first=first):
                return
            position, first = match.end(), False
        tail = line.text[position:]
        branch = first and line.text[:1] in " |+\\" and tail[:1] in {"+", "\\", "-"}
        if not first or branch:
            self.drawn = line
            if line.number == self.last and not tail.startswith("  "):
                self._missing(line)  # it may have been a bridge
                return
            name = self._name(line, position)
            self.called = kind_by_name(name.text) if name else "device"
            self._keep()
            if not _TAIL.fullmatch(tail):
                self._odd(line, position)
            if name and self.device and not _NAMELESS.fullmatch(name.text):
                subject = self._subject(self.device[0])
                self.gathering.add(subject, "product", name.text, name.place)
            self.called = "device"

    def end(self) -> None:
        """The text is over: no bus may announce more than was drawn."""
        self._close(0, self.drawn)
        if self.roots and self.drawn:
            self._missing(self.drawn)

    def _token(self, line: Line, match: re.Match[str], *, first: bool) -> bool:
        if match["device"]:
            return self._device(line, match, first=first)
        column = match.end("wire")
        behind = self.device and line.text[match.start() - 1] in "01234567"  # a bridge's function
        if behind:
            self._below(line, match, column)
        elif match["domain"]:
            self._root(line, match, match["domain"])
        elif not self.open:
            self._root(line, match, "0000")  # domains were not always written
        else:
            self._odd(line, column)
            return False
        return True

    def _root(self, line: Line, match: re.Match[str], domain: str) -> None:
        """A root bus, or one of several behind a bridge."""
        column = match.end("wire")
        self._close(column, line)
        below = self.open[-1] if self.open else None
        bridge = self.device[0] if self.device else below.bridge if below else None
        if not self.open and not self.device:
            self.roots = "+" in match["wire"]
        self.open.append(_Bus(domain, match["bus"], column, bridge))

    def _below(self, line: Line, match: re.Match[str], column: int) -> None:
        """The bus behind the bridge that stands before it."""
        if self.device is None:
            return
        address, place = self.device
        number = match["bus"]
        self.open.append(_Bus(address.split(":")[0], number, column, address))
        if int(number, 16):
            self.gathering.add(("bridge", address), "address", address, place)
            where = line.group(match, "bus").place
            self.gathering.add(("bridge", address), "secondary_bus", int(number, 16), where)

    def _device(self, line: Line, match: re.Match[str], *, first: bool) -> bool:
        column = match.start("device")
        bus = self._bus_at(column, line) if first else self.open[-1] if self.open else None
        if bus is None or bus.ended or int(match["device"], 16) > 31:
            self._odd(line, column)
            return False
        bus.children = column
        bus.ended = "\\" in match["wire"] or "+" not in match["wire"]
        self._keep()
        address = f"{bus.domain}:{bus.number}:{match['device']}.{match['function']}"
        self.device, self.above = (address, line.word(column, match.end()).place), bus.bridge
        return True

    def _bus_at(self, column: int, line: Line) -> _Bus | None:
        """The bus whose devices stand in this column; those further right are done."""
        self._close(column, line)
        return next((b for b in reversed(self.open) if b.children == column), None)

    def _close(self, column: int, line: Line | None) -> None:
        """Leave the buses whose devices stand right of a column."""
        done = [b for b in self.open if (b.children or b.column) > column]
        self.open = [b for b in self.open if (b.children or b.column) <= column]
        if line and any(b.children and not b.ended for b in done):
            self._missing(line)

    def _keep(self) -> None:
        """The facts of the device at hand, which is a bridge where a bus followed it."""
        if self.device is None:
            return
        address, place = self.device
        self.gathering.add(self._subject(address), "address", address, place)
        if self.above:
            self.gathering.add(self._subject(address), "parent", self.above, place)

    def _subject(self, address: str) -> tuple[str, str]:
        bridge = (("bridge", address), "address") in self.gathering.facts
        return ("bridge" if bridge else self.called, address)

    def _name(self, line: Line, position: int) -> Word | None:
        """What `-v` calls the device; a line that has no end may say half of it."""
        name = line.word(position)
        if self.device is None or line.number == self.last or name.text[:1] in {"", "-"}:
            return None
        return name

    def _missing(self, line: Line) -> None:
        self.gathering.cut_off("more branches are announced than drawn", line.word().place)

    def _odd(self, line: Line, column: int) -> None:
        self._keep()
        word = line.word(column)
        self.gathering.not_understood("a branch", word, "a bus or device under the one above")
