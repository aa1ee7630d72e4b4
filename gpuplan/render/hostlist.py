"""Lists of hosts as Slurm writes them: `a-[01-03,07],login`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

MOST = 65536  # names of one list; what is longer is no list of a cluster's nodes
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})")
_PART = re.compile(r"(?P<prefix>[^,\[\]]*)(?:\[(?P<ranges>[0-9,-]+)\])?(?P<rest>[^,\[\]]*)(?:,|$)")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def hostlist(names: Iterable[str]) -> str:
    """The lines of a large cluster would be longer than Slurm reads."""
    families: dict[tuple[str, int], list[str]] = {}
    for name in sorted(names):
        families.setdefault(_family(name), []).append(name)
    return ",".join(_series(family, members) for family, members in families.items())


def hosts(text: str, most: int = MOST) -> tuple[str, ...] | None:
    """The names of a list in its order; None where it is not one, or has more than `most`."""
    names: list[str] = []
    at = 0
    while at < len(text):
        match = _PART.match(text, at)
        if match is None or match.end() == at:
            return None
        numbers = [""] if match["ranges"] is None else _numbers(match["ranges"])
        if numbers is None or len(names) + len(numbers) > most:
            return None
        names += [f"{match['prefix']}{n}{match['rest']}" for n in numbers]
        at = match.end()
    return tuple(names) if all(names) else None


def _numbers(text: str) -> list[str] | None:
    """`01-03,07` → 01, 02, 03, 07."""
    numbers: list[str] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            return None
        first, last = int(match[1]), int(match[2] or match[1])
        if not 0 <= last - first < MOST - len(numbers):
            return None
        numbers += [f"{n:0{len(match[1])}}" for n in range(first, last + 1)]
    return numbers


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
