"""IOMMU groups: `ls -l` and `find` under /sys/kernel/iommu_groups, links called `iommu_group`, what
the kernel logs, and the listings of the scripts that administrators pass around."""

from __future__ import annotations

import re
from itertools import pairwise

from gpuplan.inventory.facts import Reader, Reading
from gpuplan.inventory.readers.gather import HOST, Gathering
from gpuplan.inventory.readers.words import Line, lines_of, pci_address
from gpuplan.source import Place, SourceDocument

TOOL = "IOMMU groups"
_ADDRESS = r"(?P<address>(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])"
# The group stands last: a line without an end may hold half of it.
_GROUP_LAST = re.compile(
    rf"{_ADDRESS}/iommu_group -> \S*iommu_groups/(?P<group>[0-9]{{1,9}})\s*$|"
    rf"\b{_ADDRESS.replace('address', 'logged')}: Adding to iommu group (?P<of>[0-9]{{1,9}})\s*$|"
    rf"\bAdding device {_ADDRESS.replace('address', 'old')} to group "
    r"(?P<old_group>[0-9]{1,9})\s*$"
)
_PATH = re.compile(rf"iommu_groups/(?P<group>[0-9]{{1,9}})/devices/{_ADDRESS}(?=\s|/|$)")
_SCRIPT = re.compile(rf"\s*IOMMU Group +(?P<group>[0-9]{{1,9}}):? +{_ADDRESS}(?=\s)", re.IGNORECASE)
_HEAD = re.compile(
    r"\s*(?:\S*iommu_groups/(?P<group>[0-9]{1,9})/devices/?:|IOMMU Group +(?P<of>[0-9]{1,9}):)\s*$",
    re.IGNORECASE,
)
_MEMBER = re.compile(rf"(?:.* )?\t*{_ADDRESS}(?=\s|$)")
_TARGET = re.compile(r"-> \S*?/pci[0-9a-f]{4,8}:[0-9a-f]{2}((?:/[0-9A-Fa-f]{4,8}:[0-9A-Fa-f:.]+)+)")


def recognises(text: str) -> bool:
    lines = text.splitlines()
    if any(_PATH.search(x) or _GROUP_LAST.search(x) or _SCRIPT.match(x) for x in lines):
        return True
    return any(
        _HEAD.match(line) and (below.startswith("total ") or _MEMBER.match(below))
        for line, below in pairwise(lines)
    )


def read(document: SourceDocument) -> tuple[Reading, ...]:
    parser = _Parser(document)
    for line in lines_of(document):
        parser.line(line)
    return (parser.gathering.reading(),)


READER = Reader(tool=TOOL, recognises=recognises, read=read)


class _Parser:
    """`group` is the one whose members are being listed."""

    def __init__(self, document: SourceDocument) -> None:
        self.gathering = Gathering(TOOL, document.name)
        self.group: tuple[int, Place] | None = None
        self.last = document.text.count("\n") + 1

    def line(self, line: Line) -> None:
        head = _HEAD.match(line.text)
        match = _PATH.search(line.text) or _SCRIPT.match(line.text)
        if head:
            name = "group" if head["group"] else "of"
            self.group = int(head[name]), line.group(head, name).place
        elif match:
            place = line.group(match, "group").place
            self._keep(line, match, int(match["group"]), place)
        elif last := _GROUP_LAST.search(line.text):
            self._group_last(line, last)
        elif not line.text.strip():
            self.group = None
        else:
            self._member(line)

    def _group_last(self, line: Line, match: re.Match[str]) -> None:
        if line.number == self.last:
            self.gathering.cut_off("its last line has no end, and is not used", line.word().place)
            return
        for address, group in (("address", "group"), ("logged", "of"), ("old", "old_group")):
            if match[address]:
                place = line.group(match, group).place
                self._add(line, match, address, int(match[group]), place)

    def _member(self, line: Line) -> None:
        """A line under a heading; others are none of ours."""
        match = _MEMBER.match(line.text)
        if match and self.group:
            self._keep(line, match, *self.group)
        elif match and line.text.startswith("lrwx"):
            word = line.group(match, "address")
            expected = "below a line that names its group"
            self.gathering.not_understood("a device", word, expected)

    def _keep(self, line: Line, match: re.Match[str], group: int, place: Place) -> None:
        address = self._add(line, match, "address", group, place)
        target = _TARGET.search(line.text)
        way = [pci_address(part) for part in target[1].strip("/").split("/")] if target else []
        if target and address and len(way) > 1 and way[-1] == address and way[-2]:
            where = line.group(target, 1).place
            self.gathering.add(("device", address), "parent", way[-2], where)

    def _add(
        self, line: Line, match: re.Match[str], name: str, group: int, place: Place
    ) -> str | None:
        word = line.group(match, name)
        address = pci_address(word.text)
        if address:
            self.gathering.add(HOST, "iommu", "on", place)
            self.gathering.add(("device", address), "address", address, word.place)
            self.gathering.add(("device", address), "iommu_group", group, place)
        return address
