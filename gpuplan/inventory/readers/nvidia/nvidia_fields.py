"""What nvidia-smi says of a GPU, in whatever form: its fields, and their values as facts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Protocol

from gpuplan.inventory.facts import Field, Subject, Value, field
from gpuplan.inventory.readers.gather import Gathering
from gpuplan.inventory.readers.words import (
    Word,
    absent,
    pci_address,
    pci_id,
    size_bytes,
    watts,
    whole,
)
from gpuplan.source import Place

_UUID = re.compile(r"GPU-[0-9A-Za-z]{8}(?:-[0-9A-Za-z]{4}){3}-[0-9A-Za-z]{12}")
_WIDTH = re.compile(r"x?([0-9]{1,2})x?")
UNREACHABLE = "the driver cannot reach this GPU: reset it or look into the kernel's log"  # a help
FAULTS = re.compile(
    r"\[?(?:unknown error|gpu is lost|gpu requires reset|err!|insufficient permissions|"
    r"insufficient power|gpu access blocked.*|unable to determine.*|unknown)\]?",
    re.IGNORECASE,
)


def uuid(text: str) -> str | None:
    return text if _UUID.fullmatch(text) else None


def pcie_width(text: str) -> int | None:
    match = _WIDTH.fullmatch(text)
    return int(match[1]) if match else None


def mig(text: str) -> str | None:
    return {"enabled": "on", "disabled": "off"}.get(text.lower())


def words_of(text: str) -> str | None:
    """A state as it is: `Completed` → `completed`; one word for what a GPU is passed on as."""
    return {"vgpu": "vgpu", "host vgpu": "host vgpu"}.get(text.lower(), text.lower()) or None


def product(text: str) -> str | None:
    return text or None


FIELDS: dict[str, Field] = {
    fact.attribute: fact
    for fact in (
        field("product", product, "a name", always=True),
        field("uuid", uuid, "a UUID (GPU-…)", always=True),
        field("address", pci_address, "a PCI address", always=True),
        field("pci_id", pci_id, "a device id (0x233010DE)", always=True),
        field("memory_bytes", size_bytes, "a size in MiB", always=True),
        field("bar_bytes", size_bytes, "a size in MiB", always=True),
        field("mig", mig, "Enabled or Disabled"),
        field("module_id", whole, "a number"),
        field("watts", watts, "a power in W", always=True),
        field("pcie_generation", whole, "a number", always=True),
        field("pcie_width", pcie_width, "a width such as 16x", always=True),
        field("fabric", words_of, "a state"),
        field("virtualization", words_of, "a mode"),
        field("index", whole, "a number"),
    )
}
Attributes = Mapping[str, Word | None]


class Answers(Protocol):
    """A tree that is asked by path."""

    def value(self, path: str) -> Word | None: ...


def lookup(tree: Answers, paths: Mapping[str, tuple[str, ...]]) -> Attributes:
    """The word of each attribute: the first of its paths that says more than `N/A`, else the first
    that is there."""
    values: dict[str, Word | None] = {}
    for attribute, choices in paths.items():
        words = [word for path in choices if (word := tree.value(path)) is not None]
        said = (word for word in words if not absent(word.text))
        values[attribute] = next(said, words[0] if words else None)
    return values


def add_gpu(gathering: Gathering, subject: Subject, words: Attributes, place: Place) -> None:
    """The facts of one GPU; what a driver cannot tell of it is one problem."""
    faults: list[tuple[str, Word]] = []
    for attribute, word in words.items():
        if word is None or absent(word.text):
            continue
        kind = FIELDS[attribute]
        value = kind.convert(word.text)
        if FAULTS.fullmatch(word.text):
            faults.append((attribute, word))
        elif value is None:
            gathering.not_understood(f"the {attribute} of GPU {subject[1]}", word, kind.expected)
        else:
            gathering.add(subject, attribute, value, word.place)
    _report_faults(gathering, subject, faults)
    _report_missing(gathering, subject, words, place)


def _report_faults(gathering: Gathering, subject: Subject, faults: list[tuple[str, Word]]) -> None:
    if faults:
        names = ", ".join(name for name, _ in faults)
        gathering.not_understood(
            f"{names} of GPU {subject[1]}",
            faults[0][1],
            "a value",
            UNREACHABLE,
        )


def _report_missing(
    gathering: Gathering, subject: Subject, words: Attributes, place: Place
) -> None:
    always = [name for name in words if FIELDS[name].always]
    missing = [name for name in always if words[name] is None]
    if missing and len(missing) < len(always):
        gathering.lacks(f"{', '.join(missing)} of GPU {subject[1]}", place)


def add_identities(gathering: Gathering, subjects: Iterable[Subject]) -> None:
    """UUIDs that several GPUs share identify none of them (somebody wrote over them)."""
    seen: dict[Value, Subject] = {}
    for subject in subjects:
        fact = gathering.facts.get((subject, "uuid"))
        if fact is None:
            continue
        first = seen.setdefault(fact.value, subject)
        if first == subject:
            continue
        word = Word(text=str(fact.value), place=fact.place)
        expected = f"its own: GPU {first[1]} has the same"
        remedy = "the UUIDs are left out; do not write over them with one value"
        gathering.not_understood(f"the uuid of GPU {subject[1]}", word, expected, remedy)
        gathering.drop(subject, "uuid")
        gathering.drop(first, "uuid")


def add_count(
    gathering: Gathering, attached: Word | None, listed: list[tuple[Subject, Place]]
) -> None:
    """GPUs are numbered in the order of the output, where it lists all that are attached."""
    count = whole(attached.text) if attached else None
    if attached and count is None and not absent(attached.text):
        gathering.not_understood("the number of attached GPUs", attached, "a number")
    if attached and count is not None and count != len(listed):
        fault = f"{count} GPUs are attached, {len(listed)} are listed"
        gathering.cut_off(fault, attached.place, f"{len(listed)} GPUs")
    elif count is not None:
        for number, (subject, place) in enumerate(listed):
            gathering.add(subject, "index", number, place)
