"""`ls -l /sys/class/infiniband /sys/class/net /sys/class/nvme`: the names that the kernel gives to
cards and drives, with the address and the bridge of each."""

from __future__ import annotations

import re

from gpuplan.inventory.facts import Reader, Reading
from gpuplan.inventory.readers.gather import Gathering
from gpuplan.inventory.readers.words import ADDRESS, Line, lines_of, pci_address
from gpuplan.source import SourceDocument

TOOL = "/sys/class"
_LINK = re.compile(
    r"(?:^|[\s/])(?P<name>[^\s/]{1,64}) -> (?:\.\./|/sys/)\S*?/pci[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}/"
    rf"(?P<path>(?:{ADDRESS}/)+)(?P<kind>infiniband|net|nvme)/(?P<same>[^\s/]+)\s*$"
)
_KINDS = {"infiniband": "nic", "net": "nic", "nvme": "nvme"}


def _link(line: Line) -> re.Match[str] | None:
    match = _LINK.search(line.text)
    return match if match and match["name"] == match["same"] else None


def recognises(text: str) -> bool:
    return " -> " in text and any(map(_link, lines_of(SourceDocument("", text))))


def read(document: SourceDocument) -> tuple[Reading, ...]:
    gathering = Gathering(TOOL, document.name)
    for line in lines_of(document):
        match = _link(line)
        path = [pci_address(part) for part in match["path"].split("/")] if match else []
        addresses = [address for address in path if address]
        if match and addresses:
            subject = _KINDS[match["kind"]], match["name"]
            place = line.group(match, "name").place
            gathering.add(subject, "name", match["name"], place)
            gathering.add(subject, "address", addresses[-1], line.group(match, "path").place)
            if len(addresses) > 1:
                gathering.add(subject, "parent", addresses[-2], line.group(match, "path").place)
    return (gathering.reading(),)


READER = Reader(tool=TOOL, recognises=recognises, read=read)
