"""`/proc/mdstat`, `/proc/swaps` and `zpool status -LP`: drives that the host holds."""

from __future__ import annotations

import re
from functools import partial

from gpuplan.inventory.facts import Reader, Reading
from gpuplan.inventory.readers.gather import Gathering
from gpuplan.inventory.readers.words import lines_of
from gpuplan.source import SourceDocument

_NVME = re.compile(r"(?:^|[\s/])(nvme\d+n\d+)(?:p\d+)?(?=[\[\s(]|$)")
# Holder, tool, and lines that no other tool's output has all of.
_TOOLS = (
    ("md", "/proc/mdstat", (r"^Personalities :",)),
    ("swap", "/proc/swaps", (r"^Filename[ \t]+Type[ \t]+Size[ \t]+Used[ \t]+Priority",)),
    ("zfs", "zpool status", (r"^[ \t]*pool: ", r"^[ \t]*config:")),
)


def _recognises(lines: tuple[str, ...], text: str) -> bool:
    return all(re.search(line, text, re.MULTILINE) for line in lines)


def _read(holder: str, tool: str, document: SourceDocument) -> tuple[Reading, ...]:
    gathering = Gathering(tool, document.name)
    for line in lines_of(document):
        for match in _NVME.finditer(line.text):
            place = line.group(match, 1).place
            gathering.add(("nvme", match[1]), "name", match[1], place)
            gathering.add(("nvme", match[1]), "holders", (holder,), place)
    return (gathering.reading(),)


READERS = tuple(
    Reader(tool=tool, recognises=partial(_recognises, lines), read=partial(_read, holder, tool))
    for holder, tool, lines in _TOOLS
)
