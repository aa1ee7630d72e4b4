"""`nvidia-smi -q`: the same facts as the XML has, in sections by indentation."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gpuplan.inventory.facts import Reader, Reading, Subject
from gpuplan.inventory.readers.gather import (
    HOST,
    Gathering,
    named,
)
from gpuplan.inventory.readers.nvidia.nvidia_fields import (
    add_count,
    add_gpu,
    add_identities,
    lookup,
)
from gpuplan.inventory.readers.words import (
    Line,
    Word,
    absent,
    lines_of,
    pci_address,
    size_bytes,
)
from gpuplan.source import Place, SourceDocument

TOOL = "nvidia-smi -q"
_HEAD = re.compile(r"=\s*NVSMI LOG\s*=")
_GPU = re.compile(r"^(?P<lead>.*?)GPU (?P<address>[0-9A-Fa-f:.]{7,})\s*$")
_LAST = "Processes"  # with it every driver closes what it says of a GPU
_PATHS: dict[str, tuple[str, ...]] = {
    "product": ("Product Name",),
    "uuid": ("GPU UUID",),
    "address": ("PCI/Bus Id",),
    "pci_id": ("PCI/Device Id",),
    "memory_bytes": ("FB Memory Usage/Total", "Memory Usage/Total"),
    "bar_bytes": ("BAR1 Memory Usage/Total",),
    "mig": ("MIG Mode/Current",),
    "module_id": ("Platform Info/Module Id", "Platform Info/Module ID", "Module ID", "Module Id"),
    "watts": (
        "GPU Power Readings/Current Power Limit",
        "GPU Power Readings/GPU Ceiling Power Limit/Current Power Limit",  # since 610
        "Power Readings/Enforced Power Limit",
        "Power Readings/Current Power Limit",
        "Power Readings/Power Limit",
    ),
    "pcie_generation": ("PCI/GPU Link Info/PCIe Generation/Max",),
    "pcie_width": ("PCI/GPU Link Info/Link Width/Max",),
    "fabric": ("Fabric/State",),
    "virtualization": ("GPU Virtualization Mode/Virtualization Mode",),
}


@dataclass(slots=True)
class _Block:
    """A line and those that are indented below it."""

    key: Word
    indent: int
    word: Word | None = None
    children: list[_Block] = field(default_factory=list)

    def all(self, path: str) -> list[_Block]:
        blocks = [self]
        for key in path.split("/"):
            blocks = [c for block in blocks for c in block.children if c.key.text == key]
        return blocks

    def value(self, path: str) -> Word | None:
        return next((block.word for block in self.all(path) if block.word), None)


def _recognises(text: str) -> bool:
    return _HEAD.search(text) is not None or (
        re.search(r"^[ \t]*GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f.]+[ \t\r]*$", text, re.M)
        is not None
        and re.search(r"^ +(Product Name|GPU UUID|FB Memory Usage) *(:|$)", text, re.M) is not None
    )


def _read(document: SourceDocument) -> tuple[Reading, ...]:
    """A reading for each log in the text."""
    readings: list[list[Line]] = [[]]
    listing = False
    for line in lines_of(document):
        if listing and _HEAD.search(line.text):
            readings.append([])
            listing = False
        listing = listing or _GPU.match(line.text) is not None
        readings[-1].append(line)
    return tuple(_reading(document, lines) for lines in readings)


def _reading(document: SourceDocument, lines: list[Line]) -> Reading:
    gathering = Gathering(TOOL, document.name)
    head, gpus = _blocks(lines)
    for block in head:
        if block.key.text == "Driver Version" and block.word and not absent(block.word.text):
            gathering.add(HOST, "driver_version", block.word.text, block.word.place)
    _cut(gathering, gpus, lines[-1])
    listed = [gpu for block in gpus if (gpu := _gpu(gathering, block)) is not None]
    if not gpus:
        last = lines[0].word()
        gathering.cut_off("it lists no GPU", last.place)
    add_identities(gathering, [subject for subject, _ in listed])
    attached = next((b.word for b in head if b.key.text == "Attached GPUs"), None)
    if len(listed) == len(gpus):
        add_count(gathering, attached, listed)
    return gathering.reading()


def _blocks(lines: list[Line]) -> tuple[list[_Block], list[_Block]]:
    """What stands before the first GPU, and the GPUs."""
    head: list[_Block] = []
    gpus: list[_Block] = []
    stack: list[_Block] = []
    for line in lines:
        start = _GPU.match(line.text)
        if start and pci_address(start["address"]):
            gpus.append(_Block(line.group(start, "address"), len(start["lead"])))
            stack = [gpus[-1]]
            continue
        block = _block(line)
        if block is None:
            continue
        if not stack:
            head.append(block)
            continue
        while len(stack) > 1 and stack[-1].indent >= block.indent:
            stack.pop()
        stack[-1].children.append(block)
        stack.append(block)
    return head, gpus


def _block(line: Line) -> _Block | None:
    """`Key   : value`, or an indented `Section`. A colon may stand in a value, not in a key."""
    text = line.text.rstrip()
    indent = len(text) - len(text.lstrip())
    at = text.find(" :")
    if not text[indent : indent + 1].isupper() or ":" in text[indent : max(at, 0)]:
        return None
    if at >= 0:
        key = line.word(indent, at)
        value = line.word(at + 2)
        return _Block(key, indent, value if value.text else Word(text="", place=key.place))
    return _Block(line.word(), indent) if indent and ":" not in text else None


def _cut(gathering: Gathering, gpus: list[_Block], last: Line) -> None:
    """An output that ends inside its last GPU: a value on its very last line may be half of one."""
    if not gpus or gpus[-1].all(_LAST) or not gpus[-1].all("Product Name"):
        return
    block = gpus[-1]
    while block.children:
        block = block.children[-1]
    if block.key.place.span.line == last.number:
        block.word = None
    fault = f"it ends inside GPU {gpus[-1].key.text}, at '{block.key.text}'"
    gathering.cut_off(fault, block.key.place, "what stands before")


def _gpu(gathering: Gathering, block: _Block) -> tuple[Subject, Place] | None:
    address = pci_address(block.key.text)
    assert address  # a block starts with one
    subject = "gpu", address
    if subject in gathering.subjects:
        expected = "another GPU's: it is listed twice"
        gathering.not_understood("the address of a GPU", block.key, expected)
        return None
    gathering.add(subject, "address", address, block.key.place)
    words = dict(lookup(block, _PATHS))
    for attribute, paths in _PATHS.items():
        _twice(gathering, subject, attribute, block, paths)
    if not block.all(_LAST):  # a selection of sections, or cut off, which is reported
        words = {name: word for name, word in words.items() if word is not None}
    add_gpu(gathering, subject, words, block.key.place)
    _mig_devices(gathering, subject, block)
    return subject, block.key.place


def _twice(
    gathering: Gathering, subject: Subject, attribute: str, block: _Block, paths: tuple[str, ...]
) -> None:
    """One path with two values: a line that starts a section is lost."""
    for path in paths:
        words = [child.word for child in block.all(path) if child.word]
        second = next((w for w in words if w.text != words[0].text), None)
        if second:
            both = words[0].text, second.text
            places = words[0].place, second.place
            gathering.contradiction(named(subject, attribute), both, places)
            gathering.drop(subject, attribute)


def _mig_devices(gathering: Gathering, subject: Subject, block: _Block) -> None:
    words = [
        device.value("FB Memory Usage/Total") or device.value("Shared FB Memory Usage/Total")
        for device in block.all("MIG Device")
    ]
    sizes = [size_bytes(word.text) if word else None for word in words]
    if sizes and None not in sizes:
        place = block.all("MIG Device")[0].key.place
        kept = tuple(size for size in sizes if size is not None)
        gathering.add(subject, "mig_memory_bytes", kept, place)
    elif sizes:
        place = block.all("MIG Device")[sizes.index(None)].key.place
        gathering.cut_off(f"a MIG device of GPU {subject[1]} has no memory", place)


READER = Reader(tool=TOOL, recognises=_recognises, read=_read)
