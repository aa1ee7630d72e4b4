"""The indented lines of `lspci -v` to `-vvv` that say what an inventory holds."""

from __future__ import annotations

import re
from collections.abc import Callable

from gpuplan.inventory.readers.pci import GENERATIONS, Function, Functions
from gpuplan.inventory.readers.words import Line, size_bytes, whole

Take = Callable[[Functions, Function, Line, re.Match[str]], None]


def _number(name: str, base: int = 10) -> Take:
    """A number called `name`. NUMA node -1 is the kernel's word for none."""

    def take(functions: Functions, function: Function, line: Line, match: re.Match[str]) -> None:
        word = line.group(match, "value")
        value = _based(word.text, base)
        if value is not None:
            functions.say(function, name, value, word.place)
        elif word.text != "-1":
            fact = f"the {name.replace('_', ' ')} of {function.address}"
            functions.gathering.not_understood(fact, word, "a number")

    return take


def _based(text: str, base: int) -> int | None:
    if base == 10:
        return whole(text)
    return int(text, 16) if re.fullmatch(r"[0-9a-fA-F]{1,4}", text) else None


def _link(functions: Functions, function: Function, line: Line, match: re.Match[str]) -> None:
    """Speed and width of `LnkCap`; virtual devices say `unknown` and x0."""
    generation, width = GENERATIONS.get(match["speed"]), int(match["width"])
    if generation:
        functions.say(function, "generation", generation, line.group(match, "speed").place)
    if width:
        functions.say(function, "width", width, line.group(match, "width").place)


def _driver(functions: Functions, function: Function, line: Line, match: re.Match[str]) -> None:
    functions.say(function, "driver", match["driver"], line.group(match, "driver").place)


def _region(_: Functions, function: Function, line: Line, match: re.Match[str]) -> None:
    """The largest memory region is what a guest must map."""
    size = size_bytes(match["size"])
    if size and size > (function.number("region") or 0):
        function.words["region"] = size, line.group(match, "size").place


def _regions(functions: Functions, function: Function, _: Line, __: re.Match[str]) -> None:
    """What follows the regions: they are all read."""
    if "region" in function.words:
        functions.say(function, "bar_bytes", *function.words["region"])


def _value(text: str) -> re.Pattern[str]:
    return re.compile(rf"\b{text}(?P<value>[^\s,]+)")


_LINK = re.compile(
    r"\bLnkCap:.*?Speed (?P<speed>[0-9.]+|unknown)(?:GT/s)?, Width x(?P<width>[0-9]{1,2}),"
)
_REGION = re.compile(r"\bMemory at .*prefetchable\).*\[size=(?P<size>[0-9]+[KMGTP]?)\]")
DETAILS: dict[str, tuple[re.Pattern[str], Take]] = {
    "numa": (_value("NUMA node:? "), _number("numa_node")),
    "iommu": (_value("IOMMU group:? "), _number("iommu_group")),
    "secondary": (_value("secondary="), _number("secondary", 16)),
    "total": (_value("Total VFs: "), _number("total_functions")),
    "functions": (_value("Number of VFs: "), _number("functions")),
    "offset": (_value("VF offset: "), _number("offset")),
    "stride": (_value("VF offset:.* stride: "), _number("stride")),
    "link": (_LINK, _link),
    "region": (_REGION, _region),
    "driver": (re.compile(r"^\s+Kernel driver in use: (?P<driver>\S+)"), _driver),
    "regions": (re.compile(r"^\s+(?:Capabilities|Kernel driver in use|Kernel modules):"), _regions),
}
