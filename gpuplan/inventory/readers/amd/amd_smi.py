"""`amd-smi static` and `amd-smi list`, as text and with `--json`.

Source: AMD SMI CLI tool usage (rocm.docs.amd.com/projects/amdsmi), example outputs, 2026-11-23."""

from __future__ import annotations

import re

from gpuplan.inventory.facts import Reader, Reading
from gpuplan.inventory.readers.amd.amd_fields import (
    ADDRESS,
    DEVICE,
    GENERATION,
    MEMORY,
    NODE,
    PRODUCT,
    WATTS,
    WIDTH,
    add_driver,
    add_gpu,
)
from gpuplan.inventory.readers.gather import Gathering
from gpuplan.inventory.readers.jsonread import Json, parse
from gpuplan.inventory.readers.words import Word, lines_of, whole
from gpuplan.source import SourceDocument

TOOL = "amd-smi"
FIELDS = {
    "asic/market_name": PRODUCT,
    "asic/device_id": DEVICE,
    "bus/bdf": ADDRESS,
    "bdf": ADDRESS,
    "bus/max_pcie_width": WIDTH,
    "bus/pcie_interface_version": GENERATION,
    "vram/size": MEMORY,
    "vram/vram_size": MEMORY,
    "limit/ppt0/max_power_limit": WATTS,
    "limit/max_power": WATTS,
    "numa/node": NODE,
}
DRIVERS = ("driver/version", "driver/driver_version")
_GPU = re.compile(r"GPU: ([0-9]{1,4})\s*")
_PAIR = re.compile(r"( *)([A-Za-z][A-Za-z0-9_ ]*):(?:\s+(\S.*))?")
_KNOWN = re.compile(r"^ +(?:BDF|MARKET_NAME): ", re.MULTILINE)
_JSON = re.compile(r'"gpu":\s*[0-9]')
_JSON_START = r"[\[{]\s*[{\"]"

Words = dict[str, Word]


def recognises(text: str) -> bool:
    lines = _KNOWN.search(text) is not None and any(map(_GPU.fullmatch, text.split("\n")))
    return lines or (_JSON.search(text) is not None and '"bdf"' in text)


def read(document: SourceDocument) -> tuple[Reading, ...]:
    gathering = Gathering(TOOL, document.name)
    gpus = _json(gathering, document) if _JSON.search(document.text) else _text(document)
    for number, words in gpus:
        add_gpu(gathering, number, words, FIELDS)
        add_driver(gathering, next((words[d] for d in DRIVERS if d in words), None))
    return (gathering.reading(),)


READER = Reader(tool=TOOL, recognises=recognises, read=read)


def _text(document: SourceDocument) -> list[tuple[Word, Words]]:
    """Each GPU with its words by path. A line's depth is that of its blanks."""
    gpus: list[tuple[Word, Words]] = []
    above: list[tuple[int, str]] = []
    inside = False
    for line in lines_of(document):
        start, match = _GPU.fullmatch(line.text), _PAIR.fullmatch(line.text.rstrip())
        if start:
            inside, above = True, []
            gpus.append((line.group(start, 1), {}))
        elif line.text[:1].strip():
            inside = False  # a CPU, or another command
        elif inside and match:
            depth, name = len(match[1]), match[2].casefold()
            above = [(d, n) for d, n in above if d < depth]
            if match[3]:
                path = "/".join((*(n for _, n in above), name))
                gpus[-1][1].setdefault(path, line.group(match, 3))
            else:
                above.append((depth, name))
    return gpus


def _json(gathering: Gathering, document: SourceDocument) -> list[tuple[Word, Words]]:
    parsed = parse(document, _JSON_START)
    if parsed.fault:
        gathering.cut_off("its JSON has no end", parsed.fault.place)
    root = parsed.value
    listed = root.members.get("gpu_data", root) if root else None
    gpus: list[tuple[Word, Words]] = []
    for gpu in listed.items if listed else []:
        number, words = gpu.text("gpu"), Words()
        _members(words, gpu, "")
        if number and whole(number.text) is not None and gpu.closed:
            gpus.append((number, words))
    return gpus


def _members(words: Words, value: Json, path: str) -> None:
    """Words by path; `{"value": 196592, "unit": "MB"}` is one."""
    amount, unit = value.text("value"), value.text("unit")
    if amount and unit:
        words[path] = Word(text=f"{amount.text} {unit.text}", place=amount.place)
        return
    for name, member in value.members.items():
        below = f"{path}/{name}".lstrip("/")
        if member.kind == "object":
            _members(words, member, below)
        elif word := value.text(name):
            words[below] = word
