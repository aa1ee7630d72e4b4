"""`lspci -mm` (a line of quoted words a device) and `lspci -vmm` (a block of `Tag:` lines)."""

from __future__ import annotations

import re

from gpuplan.inventory.facts import Reader, Reading
from gpuplan.inventory.readers.bus.lspci import CLASSES, OTHER_CLASS, product_words
from gpuplan.inventory.readers.gather import Gathering
from gpuplan.inventory.readers.pci import Function, Functions
from gpuplan.inventory.readers.words import (
    SHORT_ADDRESS,
    Line,
    Word,
    lines_of,
    pci_address,
    unwrapped,
    whole,
)
from gpuplan.source import SourceDocument

TOOL = "lspci -mm"
_TAG = re.compile(
    r"(?P<tag>[A-Za-z]+):\t+ *(?P<value>.*)|(?P<spaced>[A-Z][A-Za-z]+): +(?P<rest>.*)"
)
_SLOT = re.compile(rf"(?:Slot|Device):[ \t]+{SHORT_ADDRESS}\s*$", re.MULTILINE)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_LINE = re.compile(rf'({SHORT_ADDRESS}) +"')
_BEGINS = re.compile(rf"[A-Z][A-Za-z]+:\s|{SHORT_ADDRESS} ")
_CODE = re.compile(r"(.*?) ?\[([0-9a-f]{4})\]$|([0-9a-f]{4})$")
_USED = frozenset(("Slot", "Class", "Vendor", "Device", "NUMANode", "IOMMUGroup"))
_TAGS = _USED | {"SVendor", "SDevice", "PhySlot", "Rev", "ProgIf", "Driver", "Module", "DTNode"}
_NUMBERS = {"NUMANode": "numa_node", "IOMMUGroup": "iommu_group"}


def recognises(text: str) -> bool:
    blocks = _SLOT.search(text) is not None and re.search(r"^Class:[ \t]", text, re.M) is not None
    return blocks or any(_LINE.match(line) for line in text.splitlines())


def read(document: SourceDocument) -> tuple[Reading, ...]:
    parser = _Parser(document)
    for line in parser.lines:
        parser.line(line)
    parser.end()
    parser.functions.emit()
    return (parser.gathering.reading(),)


READER = Reader(tool=TOOL, recognises=recognises, read=read)


class _Parser:
    """`block` holds the tags of the device at hand, until a blank line or the next slot."""

    def __init__(self, document: SourceDocument) -> None:
        self.lines = unwrapped(lines_of(document), _BEGINS)
        self.gathering = Gathering(TOOL, document.name)
        self.functions = Functions(self.gathering)
        self.block: dict[str, Word] = {}

    def line(self, line: Line) -> None:
        last = line is self.lines[-1]
        tag = _TAG.fullmatch(line.text)
        if _LINE.match(line.text):
            self._quoted(line)
        elif not line.text.strip():
            self.end()
        elif last and "Slot" in self.block and (not tag or _name(tag) in _USED):
            self.gathering.cut_off("its last line has no end, and is not used", line.word().place)
        elif tag and _name(tag) in _TAGS:
            self._tag(line, tag)

    def _tag(self, line: Line, match: re.Match[str]) -> None:
        word = line.group(match, "value" if match["tag"] else "rest")
        name = _name(match)
        # `Device:` is a product; before version 2 of the format it named the slot as well.
        slot = name == "Slot" or (name == "Device" and pci_address(word.text) is not None)
        if slot:
            self.end()
        self.block.setdefault("Slot" if slot else name, word)

    def end(self) -> None:
        """Keep the block at hand."""
        block, self.block = self.block, {}
        if "Slot" not in block or "Class" not in block:
            if "Vendor" in block or "Slot" in block:
                fault = "the slot or the class of a device is missing"
                first = next(iter(block.values()))
                self.gathering.cut_off(fault, first.place)
            return
        slot = block["Slot"]
        address = pci_address(slot.text)
        if address is None:
            self.gathering.not_understood("a slot", slot, "an address like 0000:17:00.0")
            return
        function = self.functions.at(address, slot.place)
        self._describe(function, block.get("Class"), block.get("Vendor"), block.get("Device"))
        for tag, name in _NUMBERS.items():
            if tag in block:
                self._number(function, name, block[tag])

    def _number(self, function: Function, name: str, word: Word) -> None:
        value = whole(word.text)
        if value is not None:
            self.functions.say(function, name, value, word.place)
        elif word.text != "-1":
            fact = f"the {name.replace('_', ' ')} of {function.address}"
            self.gathering.not_understood(fact, word, "a number")

    def _quoted(self, line: Line) -> None:
        """`17:00.0 "3D controller" "NVIDIA Corporation" "Device 2330" -ra1 …`"""
        self.end()
        slot = line.words(SHORT_ADDRESS)[0]
        address = pci_address(slot.text)
        words = [line.group(m, 1) for m in _QUOTED.finditer(line.text)]
        if address is None or len(words) < 3:
            fault = "a device whose line has no class, vendor and product"
            self.gathering.cut_off(fault, line.word().place)
            return
        function = self.functions.at(address, slot.place)
        self._describe(function, *words[:3])

    def _describe(
        self, function: Function, kind: Word | None, vendor: Word | None, device: Word | None
    ) -> None:
        """Class, numbers and product, each as a name, a number, or a name with its number."""
        say = self.functions.say
        if kind:
            name, code = _split(kind.text)
            say(function, "class", code or CLASSES.get(name, OTHER_CLASS), kind.place)
        if not vendor or not device:
            return
        (maker, maker_id), (product, product_id) = _split(vendor.text), _split(device.text)
        if maker_id and product_id:
            say(function, "pci_id", f"{maker_id}:{product_id}", device.place)
        if maker and product and product != "Device":
            product_words(self.functions, function, f"{maker} {product}", device.place)


def _name(match: re.Match[str]) -> str:
    return match["tag"] or match["spaced"]


def _split(text: str) -> tuple[str, str]:
    """`NVIDIA Corporation [10de]` → name and number; either may be empty. What a product's name has
    in brackets (`GA100 [A100]`) is no number unless it is four hexadecimal digits."""
    text = text.replace('\\"', '"').replace("\\\\", "\\")
    match = _CODE.fullmatch(text)
    if not match:
        return text, ""
    return (match[1] or "").strip(), match[2] or match[3]
