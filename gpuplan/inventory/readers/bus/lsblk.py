"""`lsblk -J -b`: NVMe drives."""

from __future__ import annotations

import re

from gpuplan.inventory.facts import Reader, Reading
from gpuplan.inventory.readers.gather import Gathering
from gpuplan.inventory.readers.jsonread import Json, parse
from gpuplan.inventory.readers.words import size_bytes, whole
from gpuplan.source import SourceDocument

TOOL = "lsblk -J"
_START = r'\{\s*"blockdevices"\s*:\s*\['
_NVME = re.compile(r"(?:/dev/)?(nvme\d+(?:c\d+)?n\d+)")


def _recognises(text: str) -> bool:
    return re.search(_START, text) is not None


def _read(document: SourceDocument) -> tuple[Reading, ...]:
    gathering = Gathering(TOOL, document.name)
    parsed = parse(document, _START)
    if parsed.fault:
        fault = f"its JSON ends or breaks at '{parsed.fault.text[:20]}'"
        gathering.cut_off(fault, parsed.fault.place, "what stands before")
    top = parsed.value.members.get("blockdevices") if parsed.value else None
    for device in top.items if top else ():
        name = device.text("name")
        match = _NVME.fullmatch(name.text) if name else None
        kind = device.text("type")
        if name and match and device.closed and (kind is None or kind.text == "disk"):
            gathering.add(("nvme", match[1]), "name", match[1], name.place)
            _drive(gathering, match[1], device)
    return (gathering.reading(),)


def _drive(gathering: Gathering, name: str, device: Json) -> None:
    model, size = device.text("model"), device.text("size")
    if model and model.text:
        gathering.add(("nvme", name), "product", model.text.strip(), model.place)
    if size is None:
        gathering.lacks(f"size of {name}", device.word.place)
        return
    number = whole(size.text)
    if number:
        gathering.add(("nvme", name), "size_bytes", number, size.place)
    elif size_bytes(size.text.replace(",", ".")):
        left = "it is rounded and left out"
        gathering.several(f"the size of {name}", size, left, "lsblk -J -b")
    else:
        gathering.not_understood(f"the size of {name}", size, "a number of bytes")


READER = Reader(tool=TOOL, recognises=_recognises, read=_read)
