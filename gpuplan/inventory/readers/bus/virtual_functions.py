"""`ls -l /sys/bus/pci/devices/*/virtfn*` (or under /sys/class/net, /sys/class/infiniband): which
virtual functions a card has, by address."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpuplan.inventory.facts import Reader, Reading, Subject
from gpuplan.inventory.readers.gather import Gathering
from gpuplan.inventory.readers.words import ADDRESS, Line, lines_of, pci_address
from gpuplan.source import Place, SourceDocument

TOOL = "virtfn links"
_OWNER = rf"(?:(?P<address>{ADDRESS})|/sys/class/(?:net|infiniband)/(?P<name>[^/\s]+)/device)"
_LINK = re.compile(
    rf"(?:{_OWNER}/|(?:^|\s))virtfn(?P<number>[0-9]{{1,9}}) -> "
    rf"(?:\S*/)?(?P<function>{ADDRESS})(?=/|\s|$)"
)
_HEAD = re.compile(rf"\S*?{_OWNER}/?:\s*$")
_LISTED = "lrwxrwxrwx"  # how `ls -l` begins a link
_LIKE = re.compile(r"virtfn[0-9]{1,9}")


def recognises(text: str) -> bool:
    return any(_LINK.search(line) for line in text.splitlines())


def read(document: SourceDocument) -> tuple[Reading, ...]:
    parser = _Parser(document)
    for line in lines_of(document):
        parser.line(line)
    parser.end()
    return (parser.gathering.reading(),)


READER = Reader(tool=TOOL, recognises=recognises, read=read)


@dataclass(slots=True)
class _Link:
    function: str
    place: Place


class _Parser:
    """`owner` is the card whose folder is being listed."""

    def __init__(self, document: SourceDocument) -> None:
        self.gathering = Gathering(TOOL, document.name)
        self.owner: tuple[Subject, Place] | None = None
        self.links: dict[Subject, dict[int, _Link]] = {}
        self.last = document.text.count("\n") + 1

    def line(self, line: Line) -> None:
        head, link = _HEAD.match(line.text), _LINK.search(line.text)
        if head:
            self.owner = self._owner(line, head)
        elif link:
            self._link(line, link)
        elif not line.text.strip():
            self.owner = None
        elif line.number == self.last and (
            _LISTED.startswith(line.text[:10]) or "/sys/" in line.text
        ):
            self._cut(line)
        elif _LIKE.search(line.text):
            expected = "a link like …/virtfn0 -> ../0000:3b:00.2"
            self.gathering.not_understood("a virtual function", line.word(), expected)

    def _cut(self, line: Line) -> None:
        """The last line has no end: the functions of the last card may be more."""
        self.gathering.cut_off("its last line has no end", line.word().place)
        if self.links:
            self.links.popitem()

    def _owner(self, line: Line, match: re.Match[str]) -> tuple[Subject, Place] | None:
        if match["address"]:
            address = pci_address(match["address"])
            place = line.group(match, "address").place
            return (("device", address), place) if address else None
        return (("nic", match["name"]), line.group(match, "name").place) if match["name"] else None

    def _link(self, line: Line, match: re.Match[str]) -> None:
        own = self._owner(line, match) or self.owner
        word = line.group(match, "function")
        function = pci_address(word.text)
        if own is None or function is None:
            fault = f"a virtual function ({word.text}) stands below no card"
            self.gathering.cut_off(fault, word.place)
            return
        subject, place = own
        identity = "address" if subject[0] == "device" else "name"
        self.gathering.add(subject, identity, subject[1], place)
        number = int(match["number"])
        self.links.setdefault(subject, {}).setdefault(number, _Link(function, word.place))

    def end(self) -> None:
        """A card's functions in order; where a number is missing, a line is."""
        for subject, links in self.links.items():
            places = [link.place for link in links.values()]
            if sorted(links) != list(range(len(links))):
                fault = f"numbers of the virtual functions of {subject[1]} are missing"
                self.gathering.cut_off(fault, places[-1])
                continue
            functions = tuple(links[i].function for i in sorted(links))
            self.gathering.add(subject, "virtual_functions", functions, places[0])
