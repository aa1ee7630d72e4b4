"""The GPU that a measurement names, however it is written there.

A name is read as a family ("h100", "rtx-4090") with a form ("sxm") and a memory size where it tells
them; what fits exactly one GPU of the catalogue is that GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from gpuplan.catalog.load import load_catalog
from gpuplan.catalog.model import Gpu
from gpuplan.plan.model import record

FORMS = {"sxm": "sxm", "pcie": "pcie", "pci": "pcie", "nvl": "nvl"}
VARIANTS = ("server", "workstation", "max-q")
# Families that a bare name leaves open, and the one that measurements mean by it.
USUAL = {"rtx-pro-6000": "rtx-pro-6000-server"}
# GH200 is sold by the memory of its CPU: 120 and 480 GB come with 96 GB on the GPU.
SUPERCHIP = {("gh200", 120): 96, ("gh200", 480): 96}
NOISE = re.compile(
    r"nvidia|amd|geforce|tesla|instinct|radeon|quadro|gpus?|accelerator|tensor|core|generation|"
    r"edition|blackwell|hopper|ampere|volta|turing|lovelace|grace|superchip|graphics|card|oam|ac|"
    r"hbm[23]?e?|gddr\dx?|spx|nps1|smc|emulated|"
    r"\d+w|nvl\d\d"  # a power limit, a rack
)
_MEMORY = re.compile(r"(\d+)(?:g|gb|gib)")
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


@cache
def find_gpu(name: str) -> Gpu | str:
    """The GPU, or why `name` does not tell which."""
    label = "-".join(w for w in _words(name) if w != "nvidia")
    exact = [g for g, product, _ in _known() if label and label in (product, g.identifier)]
    told = read(name)
    found = exact or [g for g, _, known in _known() if told.family and told.fits(known)]
    if len(found) > 1 and (usual := USUAL.get(told.family)):
        found = [g for g in found if g.identifier == usual] or found
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(g.identifier for g in found)
        return f"GPU '{name}' may be any of {listed}"
    return f"GPU '{name}' is not in the catalogue"


def read(name: str) -> Name:
    """A GPU's name taken apart."""
    family, form, variant, memory, high = "", "", "", 0, False
    words = iter(_words(name))
    for word in words:
        if size := _MEMORY.fullmatch(word):
            memory = int(size[1])
        elif shape := _FORM.fullmatch(word):
            form = FORMS[shape[1]]
        elif word in VARIANTS:
            variant = word
        elif not NOISE.fullmatch(word):
            family += f"-{word}" if family else word
        high = high or word == "hbm3"
    if family == "h100" and high and not form and memory == 80:
        form = "sxm"  # the PCIe card has HBM2e
    if re.fullmatch(r"a[4-6]000|\d{4}(-\S+)?|pro-\d{4}", family):
        family = f"rtx-{family}"
    memory = SUPERCHIP.get((family, memory), memory)
    return Name(family=family, form=form, variant=variant, memory=memory)


def _words(name: str) -> Iterator[str]:
    text = _JOINED.sub("-", name.lower())
    words = [w for w in _WORDS.split(text) if w]
    for place, word in enumerate(words):
        if word == "maxq" or (word == "max" and words[place + 1 : place + 2] == ["q"]):
            yield "max-q"
        elif not (word == "q" and words[place - 1] == "max"):
            yield word


@cache
def _known() -> tuple[tuple[Gpu, str, Name], ...]:
    """Every GPU of the catalogue with its product's name, without vendor, and its own name."""
    catalog = load_catalog()
    gpus = [g for g in map(catalog.gpu, catalog.gpu_ids) if g]
    return tuple((g, (g.product or "").lower().removeprefix("nvidia-"), _own(g)) for g in gpus)


def _own(gpu: Gpu) -> Name:
    told = read(gpu.identifier)
    memory = told.memory or round(gpu.memory_bytes.value / 1e9)
    return Name(family=told.family, form=told.form, variant=told.variant, memory=memory)
