"""Layouts of the fewest GPUs that hold given counts of MIG instances.

Mixed layouts matter: three 2g and two 3g instances are one and a half GPUs' worth each on their
own, but 3g + 2g + 2g share one. The search is exact up to `MOST_STEPS` steps; beyond, whole copies
of the layout that takes most are set aside until what is left is small.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from gpuplan.catalog.model import MigProfile
from gpuplan.plan.records import record
from gpuplan.sharing.mig import layout

MOST_STEPS = 5_000
EXACT_GPUS = 16  # above, copies are set aside first

Counts = tuple[int, ...]


@record
class _Case:
    """Profiles, the biggest first; legal counts of them on one GPU, the fullest first."""

    slices: Counts
    legal: tuple[Counts, ...]

    def weight(self, counts: Sequence[int]) -> int:
        return sum(n * s for n, s in zip(counts, self.slices, strict=True))


def cover(need: Mapping[str, int], profiles: Sequence[MigProfile]) -> list[dict[str, int]]:
    """How each GPU is cut so that together they hold `need` (instances by profile), the fullest
    first. Every profile in `need` is one of `profiles`."""
    ordered = sorted(
        (p for p in profiles if need.get(p.name)),
        key=lambda p: (-p.memory_slices, -p.compute_slices, p.name),
    )
    if not ordered:
        return []
    case = _case(tuple(ordered))
    left = tuple(need[p.name] for p in ordered)
    aside: list[Counts] = []
    while _at_least(case, left) > EXACT_GPUS:
        most = max(case.legal, key=lambda one: (case.weight(_clipped(one, left)), one))
        copies = max(1, min(n // m for n, m in zip(left, most, strict=True) if m))
        taken = _clipped(most, left)
        aside += [taken] * copies
        left = tuple(max(0, n - copies * t) for n, t in zip(left, taken, strict=True))
    found = [*aside, *_exact(case, left)]
    names = [p.name for p in ordered]
    return [{n: c for n, c in zip(names, one, strict=True) if c} for one in found]


@lru_cache(maxsize=256)
def _case(profiles: tuple[MigProfile, ...]) -> _Case:
    slices = tuple(p.memory_slices for p in profiles)
    legal = sorted(
        _legal(profiles, ()),
        key=lambda one: (-sum(n * s for n, s in zip(one, slices, strict=True)), one),
    )
    return _Case(slices=slices, legal=tuple(c for c in legal if any(c)))


def _legal(profiles: tuple[MigProfile, ...], chosen: Counts) -> Iterator[Counts]:
    """Every legal count of each profile on one GPU."""
    if len(chosen) == len(profiles):
        yield chosen
        return
    for count in range(profiles[len(chosen)].maximum + 1):
        counts = (*chosen, count)
        pairs = zip(profiles, counts, strict=False)
        if layout([p for p, n in pairs for _ in range(n)]) is None:
            return
        yield from _legal(profiles, counts)


def _clipped(one: Counts, left: Counts) -> Counts:
    return tuple(map(min, one, left))


def _at_least(case: _Case, left: Counts) -> int:
    """GPUs that no layout can do without: for each profile alone, and for all by their slices."""
    fullest = case.weight(case.legal[0])
    alone = (-(-n // max(c[i] for c in case.legal)) for i, n in enumerate(left) if n)
    return max(-(-case.weight(left) // fullest), *alone, 0)


def _exact(case: _Case, left: Counts) -> list[Counts]:
    """The fewest GPUs, by deepening; what was found first when the steps run out."""
    best = _greedy(case, left)
    steps = Counter[str]()
    for gpus in range(_at_least(case, left), len(best)):
        found = _search(case, left, gpus, steps, set())
        if found is not None:
            return found
    return best


def _greedy(case: _Case, left: Counts) -> list[Counts]:
    found: list[Counts] = []
    while any(left):
        taken = max((_clipped(c, left) for c in case.legal), key=lambda c: (case.weight(c), c))
        found.append(taken)
        left = tuple(n - t for n, t in zip(left, taken, strict=True))
    return found


def _search(
    case: _Case, left: Counts, gpus: int, steps: Counter[str], dead: set[tuple[Counts, int]]
) -> list[Counts] | None:
    """Layouts of `gpus` GPUs that hold `left`, or None."""
    if not any(left):
        return []
    steps["taken"] += 1
    if (left, gpus) in dead or _at_least(case, left) > gpus or steps["taken"] > MOST_STEPS:
        return None
    first = next(i for i, n in enumerate(left) if n)
    tried = dict.fromkeys(_clipped(c, left) for c in case.legal if c[first])
    for taken in sorted(tried, key=lambda c: (-case.weight(c), c)):
        rest = tuple(n - t for n, t in zip(left, taken, strict=True))
        found = _search(case, rest, gpus - 1, steps, dead)
        if found is not None:
            return [taken, *found]
    dead.add((left, gpus))
    return None
