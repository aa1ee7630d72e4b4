"""What AMD's tools say of a GPU, in whatever form, as facts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpuplan.inventory.facts import Field, Subject, field
from gpuplan.inventory.readers.gather import HOST, Gathering
from gpuplan.inventory.readers.words import Word, absent, pci_address, size_bytes, watts, whole

VENDOR = "1002"
_DEVICE = re.compile(r"0x([0-9A-Fa-f]{4})")
_GENERATION = re.compile(r"Gen ([1-9])")
# What follows the product's own name: a virtual function of it, and the power of a variant.
_BEHIND = re.compile(r" VF$|: .*$")


def product(text: str) -> str | None:
    """A name; older tools write the device's number where they know none."""
    return None if _DEVICE.fullmatch(text) else _BEHIND.sub("", text) or None


def device(text: str) -> str | None:
    match = _DEVICE.fullmatch(text)
    return f"{VENDOR}:{match[1].lower()}" if match else None


def generation(text: str) -> int | None:
    match = _GENERATION.fullmatch(text)
    return int(match[1]) if match else None


PRODUCT = field("product", product, "a name")
DEVICE = field("pci_id", device, "a device id (0x74a1)")
ADDRESS = field("address", pci_address, "a PCI address")
MEMORY = field("memory_bytes", size_bytes, "a size")
WATTS = field("watts", watts, "a power in W")
NODE = field("numa_node", whole, "a number")
GENERATION = field("pcie_generation", generation, "Gen and a number")
WIDTH = field("pcie_width", whole, "a number of lanes")


def add_gpu(
    gathering: Gathering, number: Word, words: Mapping[str, Word], fields: Mapping[str, Field]
) -> None:
    """The facts of the GPU `number`. `words` are by the tool's own names, of which `fields` has
    those that are facts, the better one of the same fact first."""
    subject: Subject = "gpu", f"GPU{int(number.text)}"
    gathering.add(subject, "index", int(number.text), number.place)
    done: set[str] = set()
    for name, kind in fields.items():
        word = words.get(name)
        if word is None or absent(word.text) or kind.attribute in done:
            continue
        value = kind.convert(word.text)
        if value is not None:
            gathering.add(subject, kind.attribute, value, word.place)
            done.add(kind.attribute)
        elif kind is not PRODUCT:
            fact = f"the {kind.attribute} of GPU {number.text}"
            gathering.not_understood(fact, word, kind.expected)


def add_driver(gathering: Gathering, word: Word | None) -> None:
    if word and not absent(word.text):
        gathering.add(HOST, "driver_version", word.text, word.place)
