"""`/proc/cmdline`: the kernel's parameters, and what they say of the IOMMU."""

from __future__ import annotations

import re

from gpuplan.inventory.facts import Reader, Reading
from gpuplan.inventory.readers.gather import HOST, Gathering
from gpuplan.inventory.readers.words import Line, Word, lines_of
from gpuplan.source import SourceDocument

TOOL = "/proc/cmdline"
_START = re.compile(r"(?:^|\s)(?P<first>BOOT_IMAGE=|initrd=|root=\S|ro\s|quiet\s|vmlinuz\S*\s)")
LONGEST = 16_384  # characters; the kernel takes 4,096 at most
_WORD = re.compile(r'(?:[^\s"]|"[^"]*")+')
_ON = (
    "intel_iommu=on",
    "amd_iommu=on",
    "amd_iommu=force_enable",
    "iommu=force",
)  # pt says only how
_OFF = ("intel_iommu=off", "amd_iommu=off", "iommu=off")


def _parameters(line: Line) -> tuple[Word, ...]:
    """The words of the line, from where the parameters start."""
    match = _START.search(line.text)
    if not match or (":" in line.text[: match.start()]) or "=" not in line.text:
        return ()
    words = line.words(_WORD.pattern)
    start = next(
        (i for i, word in enumerate(words) if word.text.startswith(match["first"].strip())), 0
    )
    return words[start:]


def _recognises(text: str) -> bool:
    if len(text) > LONGEST:
        return False
    filled = [line for line in lines_of(SourceDocument("", text)) if line.text.strip()]
    lines = [line for line in filled if not re.match(r"\s*[\w@.~:/-]*[$#]\s", line.text)]
    return len(lines) == 1 and len(filled) <= 3 and bool(_parameters(lines[0]))


def _read(document: SourceDocument) -> tuple[Reading, ...]:
    gathering = Gathering(TOOL, document.name)
    words = next((w for line in lines_of(document) if (w := _parameters(line))), ())
    if words:
        first, last = words[0].place, words[-1].place
        place = type(first)(
            first.document,
            type(first.span)(
                first.span.line, first.span.column, last.span.end_line, last.span.end_column
            ),
        )
        text = tuple(word.text for word in words)
        gathering.add(HOST, "kernel_parameters", text, place)
    for word in words:
        if word.text.split(",")[0] in (*_ON, *_OFF):
            state = "on" if word.text.split(",")[0] in _ON else "off"
            gathering.add(HOST, "iommu", state, word.place)
    return (gathering.reading(),)


READER = Reader(tool=TOOL, recognises=_recognises, read=_read)
