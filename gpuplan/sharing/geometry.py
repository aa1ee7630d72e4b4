"""Which parts stand on a GPU together, and where: one rule for placement and for packing.

A part stands at one of its starts, no two overlap, and none is there more often than its maximum
(NVIDIA MIG User Guide, "Supported MIG Profiles"; NVIDIA vGPU documentation, placements of mixed
sizes). Of the media engines one instance has the extensions (`+me`); beside one that takes all of
them (`+me.all`) the others have none (`-me`). Parts of a uniform mode are all of one size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.sharing.modes import Part

MOST_STEPS = 60_000

Counts = tuple[int, ...]  # of each part
PartAt = tuple[int, int]  # the part's place in the list, and its first unit


def together(parts: Sequence[Part], counts: Counts, *, uniform: bool = False) -> bool:
    """Whether so many of each part may be on one GPU; not yet where they stand."""
    if any(n > part.maximum for n, part in zip(counts, parts, strict=True)):
        return False
    if uniform:
        return sum(n > 0 for n in counts) <= 1
    extensions = [(part.extension, n) for n, part in zip(counts, parts, strict=True) if n]
    extended = sum(n for extension, n in extensions if extension.startswith("+me"))
    if any(extension == "+me.all" for extension, _ in extensions):
        return extended == 1 and all(e in {"+me.all", "-me"} for e, _ in extensions)
    return extended <= 1


def units(part: Part, start: int) -> int:
    """The units that `part` takes from `start`, as bits."""
    return ((1 << part.size) - 1) << start


def free_starts(part: Part, taken: int) -> Iterator[int]:
    """The starts of `part` where no unit of `taken` is."""
    return (start for start in part.starts if not units(part, start) & taken)


def reachable(parts: Sequence[Part], width: int) -> dict[Counts, tuple[PartAt, ...]] | None:
    """Every number of parts that a GPU of `width` units holds, with where they stand; None where
    they are too many to list."""
    fronts: list[dict[Counts, tuple[PartAt, ...]]] = [{} for _ in range(width + 1)]
    fronts[0][(0,) * len(parts)] = ()
    steps = 0
    for unit in range(width):
        for counts, placed in fronts[unit].items():
            fronts[unit + 1].setdefault(counts, placed)
            steps += 1
            for number, more in _startable(parts, counts, unit, width):
                end = unit + parts[number].size
                fronts[end].setdefault(more, (*placed, (number, unit)))
        if steps > MOST_STEPS:
            return None
    return fronts[-1]


def _startable(
    parts: Sequence[Part], counts: Counts, unit: int, width: int
) -> Iterator[tuple[int, Counts]]:
    """Parts that may be added at `unit`, with the numbers after that."""
    for number, part in enumerate(parts):
        if unit in part.starts and unit + part.size <= width:
            more = (*counts[:number], counts[number] + 1, *counts[number + 1 :])
            if together(parts, more):
                yield number, more
