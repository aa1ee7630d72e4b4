"""`free -b` (and -k, -m, -g, -h) and `/proc/meminfo`: the memory that the kernel has."""

from __future__ import annotations

import re

from gpuplan.inventory.facts import Reader, Reading
from gpuplan.inventory.readers.gather import HOST, Gathering
from gpuplan.inventory.readers.words import Line, Word, lines_of, size_bytes, whole
from gpuplan.source import SourceDocument

TOOL = "free"
_TOTAL = re.compile(r"(?:^|\s)MemTotal:\s*(?P<value>.*?)\s*$")
_HEAD = re.compile(r"\btotal +used +free\b")
_MEMORY = re.compile(r"(?:^|\s)Mem:\s+(?P<value>\S+)")


def _recognises(text: str) -> bool:
    if "MemTotal:" in text and ("MemFree:" in text or "MemAvailable:" in text):
        return True
    return bool(_HEAD.search(text) and _MEMORY.search(text))


def _read(document: SourceDocument) -> tuple[Reading, ...]:
    gathering = Gathering(TOOL, document.name)
    for line in lines_of(document):
        if match := _TOTAL.search(line.text):
            _total(gathering, line.group(match, "value"))
        elif match := _MEMORY.search(line.text):
            _free(gathering, line, match)
    return (gathering.reading(),)


def _total(gathering: Gathering, word: Word) -> None:
    """`MemTotal:  24684096 kB`."""
    size = size_bytes(word.text) if word.text.endswith("kB") else None
    if size is None:
        gathering.cut_off("MemTotal has no size in kB", word.place)
    else:
        gathering.add(HOST, "memory_bytes", size, word.place)


def _free(gathering: Gathering, line: Line, match: re.Match[str]) -> None:
    """Numbers without a unit are bytes only where they are too large for kB of any host."""
    word = line.group(match, "value")
    number, size = whole(word.text), size_bytes(word.text)
    if number is not None and number >= 2**33:  # 8 GiB in bytes, 8 TiB in kB
        gathering.add(HOST, "memory_bytes", number, word.place)
    elif number is not None or size is not None:
        left = "it is rounded, or has no unit, and is left out"
        gathering.several("the memory", word, left, "free -b")
    else:
        gathering.not_understood("the memory", word, "a size")


READER = Reader(tool=TOOL, recognises=_recognises, read=_read)
