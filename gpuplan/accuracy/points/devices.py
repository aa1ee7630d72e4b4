"""The GPU that a measurement names, however it is written there.

A name is read as a family ("h100", "rtx-4090") with a form ("sxm") and a memory size where it tells
them; what fits exactly one GPU of the catalogue is that GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from gpuplan.catalog.load import load_catalog
from gpuplan.catalog.model import Gpu
from gpuplan.plan.model import record

FORMS = {"sxm": "sxm", "pcie": "pcie", "pci": "pcie", "nvl": "nvl"}
VARIANTS = ("server", "workstation", "max-q")
NOISE = re.compile(
    r"nvidia|amd|intel|maxsun|ms|turbo|r|tm|geforce|tesla|instinct|radeon|quadro|gpus?|"
    r"accelerator|tensor|core|generation|"
    r"edition|lovelace|grace|superchip|graphics|card|oam|ac|"
    r"hbm[23]?e?|gddr\dx?|spx|nps1|smc|emulated|"
    r"\d+w|nvl\d\d"  # a power limit, a rack
)
_MEMORY = re.compile(r"(\d{1,5})(?:g|gb|gib)")
_FORM = re.compile(r"(sxm|pcie|pci|nvl)[2-6]?")
_JOINED = re.compile(r"(?<=rtx)(?=\d|a\d)|(?<=\d{4})(?=ti|super)")
_WORDS = re.compile(r"[^a-z0-9]+")


@record
class Name:
    """What a name tells. `memory` is in gigabytes, 0 where it is not told."""

    family: str
    form: str
    variant: str
    memory: int

    def fits(self, other: Name) -> bool:
        """Whether all that this name tells is true of `other`. Reported sizes are up to a tenth
        off the nominal ones."""
        near = abs(self.memory - other.memory) <= 0.1 * max(self.memory, other.memory)
        return (
            self.family == other.family
            and self.form in ("", other.form)
            and self.variant in ("", other.variant)
            and (near or 0 in (self.memory, other.memory))
        )


@record
class Devices:
    """So many GPUs that a name calls one."""

    gpu: Gpu
    count: int


@cache
def find_devices(name: str) -> Devices | str:
    """The GPU, and how many of it the name means, or why it does not tell which."""
    label, stated = _label(name), read(name)
    cards = [card for card in _known() if label in card.labels]
    cards = cards or [card for card in _known() if stated.family and stated.fits(card.name)]
    if len(cards) > 1:
        cards = [card for card in cards if stated.family in card.families] or cards
    if len(cards) == 1:
        return Devices(gpu=cards[0].gpu, count=cards[0].count)
    if cards:
        listed = ", ".join(card.listed for card in cards)
        return f"GPU '{name}' may be any of {listed}"
    return f"GPU '{name}' is not in the catalogue"


def read(name: str) -> Name:
    """A GPU's name taken apart."""
    family, form, variant, memory = "", "", "", 0
    words = iter(_words(name))
    for word in words:
        if size := _MEMORY.fullmatch(word):
            memory = int(size[1])
        elif shape := _FORM.fullmatch(word):
            form = FORMS[shape[1]]
        elif word in VARIANTS:
            variant = word
        elif not (NOISE.fullmatch(word) or word in _generations()):
            family += f"-{word}" if family else word
    if re.fullmatch(r"a[4-6]000|\d{4}(-\S+)?|pro-\d{4}", family):
        family = f"rtx-{family}"
    return Name(family=family, form=form, variant=variant, memory=memory)


def _words(name: str) -> Iterator[str]:
    text = _JOINED.sub("-", name.lower())
    words = [w for w in _WORDS.split(text) if w]
    for place, word in enumerate(words):
        if word == "maxq" or (word == "max" and words[place + 1 : place + 2] == ["q"]):
            yield "max-q"
        elif not (word == "q" and words[place - 1] == "max"):
            yield word


@record
class Card:
    """A GPU of the catalogue, or the module on which `count` of it stand; `labels` name it exactly,
    `families` leave others open and mean this one."""

    gpu: Gpu
    name: Name
    labels: frozenset[str]
    families: frozenset[str] = frozenset()
    count: int = 1

    @property
    def listed(self) -> str:
        return f"{self.count} x {self.gpu.identifier}" if self.count > 1 else self.gpu.identifier


def _label(name: str) -> str:
    """One spelling of a product's name, without the maker's."""
    return "-".join(word for word in _words(name) if word != "nvidia")


@cache
def _gpus() -> tuple[Gpu, ...]:
    catalog = load_catalog()
    return tuple(gpu for gpu in map(catalog.gpu, catalog.gpu_ids) if gpu)


@cache
def _generations() -> frozenset[str]:
    """Those that tell no two GPUs apart, as `ada` does."""
    telling = {word for gpu in _gpus() for word in gpu.identifier.split("-")}
    return frozenset(gpu.architecture for gpu in _gpus()) - telling


@cache
def _known() -> tuple[Card, ...]:
    return tuple(card for gpu in _gpus() for card in _cards(gpu))


def _cards(gpu: Gpu) -> Iterator[Card]:
    name = read(gpu.identifier)
    memory = name.memory or round(gpu.memory_bytes.value / 1e9)
    labels = map(_label, (gpu.identifier, gpu.product or "", *gpu.product_names))
    yield Card(
        gpu=gpu,
        name=replace(name, memory=memory),
        labels=frozenset(label for label in labels if label),
        families=frozenset(read(alias).family for alias in gpu.aliases),
    )
    if module := gpu.module:
        whole = replace(read(module.names[0]), memory=memory * module.devices)
        names = frozenset(map(_label, module.names))
        yield Card(gpu=gpu, name=whole, labels=names, count=module.devices)
