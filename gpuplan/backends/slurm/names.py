"""Names as Slurm reads them: lists of hosts, GPU types, features, times."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})")
_NOT_OF_A_WORD = re.compile(r"[^a-z0-9]+")
UNLIMITED = "UNLIMITED"


def hostlist(names: Iterable[str]) -> str:
    """`a-[01-03,07],login`: the lines of a large cluster would be longer than Slurm reads."""
    families: dict[tuple[str, int], list[str]] = {}
    for name in sorted(names):
        families.setdefault(_family(name), []).append(name)
    return ",".join(_series(family, members) for family, members in families.items())


def _family(name: str) -> tuple[str, int]:
    """Names that differ in a last number of as many digits are one series."""
    match = _NUMBERED.fullmatch(name)
    return (match[1], len(match[2])) if match else (name, 0)


def _series(family: tuple[str, int], names: Sequence[str]) -> str:
    prefix, digits = family
    if not digits or len(names) == 1:
        return names[0]
    numbers = sorted(int(name[len(prefix) :]) for name in names)
    return f"{prefix}[{','.join(_ranges(numbers, digits))}]"


def _ranges(numbers: Sequence[int], digits: int) -> Iterator[str]:
    for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        among = [number for _, number in run]
        first, last = f"{among[0]:0{digits}}", f"{among[-1]:0{digits}}"
        yield first if first == last else f"{first}-{last}"


def word(text: str) -> str:
    """A free text as a feature's name; empty where nothing of it can stand in one."""
    return _NOT_OF_A_WORD.sub("_", text.casefold()).strip("_")


def gpu_type(identifier: str, product: str) -> str:
    """What jobs ask for: `h100`, `rtx_pro_6000`. The first words of the catalogue's name that stand
    together in the product's too, so that Slurm finds the type in the name NVML gives."""
    words, there = word(identifier).split("_"), f"_{word(product)}_"
    for count in range(len(words), 0, -1):
        start = "_".join(words[:count])
        if f"_{start}_" in there:
            return start
    return "_".join(words)


def minutes(seconds: float) -> str:
    """A time limit of at least so long: `1-02:03:00`."""
    days, rest = divmod(math.ceil(seconds / 60), 24 * 60)
    clock = f"{rest // 60:02}:{rest % 60:02}:00"
    return f"{days}-{clock}" if days else clock
