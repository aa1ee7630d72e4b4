"""`lsblk -J -b`: NVMe drives, and what the host does with each: mounts, file systems, holders."""

from __future__ import annotations

import re
from collections.abc import Iterator

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
    # Without udev's database and without root, lsblk sees no file system anywhere.
    sees = any(d.text("fstype") for device in top.items for d in _all(device)) if top else False
    for device in top.items if top else ():
        name = device.text("name")
        match = _NVME.fullmatch(name.text) if name else None
        kind = device.text("type")
        if name and match and device.closed and (kind is None or kind.text == "disk"):
            gathering.add(("nvme", match[1]), "name", match[1], name.place)
            _drive(gathering, match[1], device)
            uses = tuple(dict.fromkeys(_uses(device)))
            if uses or (sees and _shows_uses(device)):
                gathering.add(("nvme", match[1]), "uses", uses, name.place)
    return (gathering.reading(),)


def _drive(gathering: Gathering, name: str, device: Json) -> None:
    model, size, serial = (device.text(key) for key in ("model", "size", "serial"))
    if serial and serial.text.strip():
        gathering.add(("nvme", name), "serial", serial.text.strip(), serial.place)
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


def _shows_uses(device: Json) -> bool:
    """Whether the columns were asked for that say what a drive is used for."""
    columns = device.members.keys()
    return "fstype" in columns and not columns.isdisjoint({"mountpoint", "mountpoints"})


def _all(device: Json) -> Iterator[Json]:
    """A device and all that stands on it."""
    yield device
    children = device.members.get("children")
    for child in children.items if children else ():
        yield from _all(child)


def _uses(device: Json) -> Iterator[str]:
    """What the host does with a drive: `/ (ext4)`, `swap`, `lvm`, `LVM2_member, not mounted`."""
    for part in _all(device):
        kind, system = part.text("type"), part.text("fstype")
        points = [p for p in _mount_points(part) if p]
        if kind and kind.text not in ("disk", "part"):
            yield kind.text
        for point in points:
            yield "swap" if point == "[SWAP]" else f"{point} ({system.text if system else '?'})"
        if not points and not part.members.get("children"):
            if system and system.text:
                yield f"{system.text}, not mounted"
            elif kind and kind.text == "part":
                yield "a partition"


def _mount_points(part: Json) -> Iterator[str]:
    """`mountpoints` is a list, since util-linux 2.37; `mountpoint` one of them."""
    if one := part.text("mountpoint"):
        yield one.text
    several = part.members.get("mountpoints")
    for item in several.items if several else ():
        yield str(item.data or "")


READER = Reader(tool=TOOL, recognises=_recognises, read=_read)
