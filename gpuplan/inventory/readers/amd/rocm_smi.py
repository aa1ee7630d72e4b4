"""`rocm-smi` with its `--show…` options: a line `GPU[0] : NAME: VALUE` each.

Source: ROCm blogs and the tool's documentation (rocm.docs.amd.com), example outputs, 2026-11-23."""

from __future__ import annotations

import re

from gpuplan.inventory.facts import Reader, Reading
from gpuplan.inventory.readers.amd.amd_fields import (
    ADDRESS,
    DEVICE,
    MEMORY,
    NODE,
    PRODUCT,
    WATTS,
    add_driver,
    add_gpu,
)
from gpuplan.inventory.readers.gather import Gathering
from gpuplan.inventory.readers.words import Word, lines_of
from gpuplan.source import SourceDocument

TOOL = "rocm-smi"
FIELDS = {
    "card series": PRODUCT,
    "card model": DEVICE,
    "device id": DEVICE,
    "pci bus": ADDRESS,
    "vram total memory (b)": MEMORY,
    "max graphics package power (w)": WATTS,
    "(topology) numa node": NODE,
}
_LINE = re.compile(r"GPU\[([0-9]{1,4})\]\s*: (\(?[A-Za-z][^:]{1,60}):\s+(\S.*)")
_DRIVER = re.compile(r"Driver version:\s+(\S.*)")


def recognises(text: str) -> bool:
    rows = (match for row in text.split("\n") if (match := _LINE.fullmatch(row.rstrip())))
    return any(match[2].casefold() in FIELDS for match in rows)


def read(document: SourceDocument) -> tuple[Reading, ...]:
    gathering = Gathering(TOOL, document.name)
    gpus: dict[str, tuple[Word, dict[str, Word]]] = {}
    for line in lines_of(document):
        match, driver = _LINE.fullmatch(line.text.rstrip()), _DRIVER.fullmatch(line.text.rstrip())
        if match:
            _, words = gpus.setdefault(match[1], (line.group(match, 1), {}))
            words.setdefault(match[2].casefold(), line.group(match, 3))
        elif driver:
            add_driver(gathering, line.group(driver, 1))
    for number, words in gpus.values():
        add_gpu(gathering, number, words, FIELDS)
    return (gathering.reading(),)


READER = Reader(tool=TOOL, recognises=recognises, read=read)
