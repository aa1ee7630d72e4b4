"""Layouts of the fewest GPUs that hold given counts of MIG instances.

Mixed layouts matter: three 2g and two 3g instances are one and a half GPUs' worth each on their
own, but 3g + 2g + 2g share one. The search is exact up to `MOST_STEPS` steps; beyond, whole copies
of the layout that takes most are set aside until what is left is small.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from gpuplan.catalog.model import MigProfile
from gpuplan.frozen import record
from gpuplan.sharing.geometry import Counts, reachable
from gpuplan.sharing.mig import ProfileCounts
from gpuplan.sharing.modes import mig_part

MOST_STEPS = 5_000
EXACT_GPUS = 16  # above, copies are set aside first


@record
class _Case:
    """Profiles, the biggest first; legal counts of them on one GPU, the fullest first."""

    slices: Counts
    legal: tuple[Counts, ...]

    def weight(self, counts: Sequence[int]) -> int:
        return sum(n * s for n, s in zip(counts, self.slices, strict=True))


def cover(needed: ProfileCounts) -> list[ProfileCounts]:
    """How each GPU is cut so that together they hold `needed`, the fullest first."""
    ordered = sorted(
        (pair for pair in needed if pair[1]),
        key=lambda pair: (-pair[0].memory_slices, -pair[0].compute_slices, pair[0].name),
    )
    if not ordered:
        return []
    profiles = tuple(profile for profile, _ in ordered)
    case = _case(profiles)
    left = tuple(n for _, n in ordered)
    aside: list[Counts] = []
    while _at_least(case, left) > EXACT_GPUS:
        most = max(case.legal, key=lambda counts: (case.weight(_clipped(counts, left)), counts))
        copies = max(1, min(n // m for n, m in zip(left, most, strict=True) if m))
        taken = _clipped(most, left)
        aside += [taken] * copies
        left = tuple(max(0, n - copies * t) for n, t in zip(left, taken, strict=True))
    return [
        tuple((p, n) for p, n in zip(profiles, counts, strict=True) if n)
        for counts in (*aside, *_exact(case, left))
    ]


@lru_cache(maxsize=256)
def _case(profiles: tuple[MigProfile, ...]) -> _Case:
    slices = tuple(p.memory_slices for p in profiles)
    parts = [mig_part(p) for p in profiles]
    legal = reachable(parts, max(p.starts[-1] + p.size for p in parts))
    assert legal is not None, "MIG has few layouts"
    fullest_first = sorted(
        filter(any, legal),
        key=lambda counts: (-sum(n * s for n, s in zip(counts, slices, strict=True)), counts),
    )
    return _Case(slices=slices, legal=tuple(fullest_first))


def _clipped(counts: Counts, left: Counts) -> Counts:
    return tuple(map(min, counts, left))


def _at_least(case: _Case, left: Counts) -> int:
    """GPUs that no layout can do without: for each profile alone, and for all by their slices."""
    fullest = case.weight(case.legal[0])
    alone = (-(-n // max(c[i] for c in case.legal)) for i, n in enumerate(left) if n)
    return max(-(-case.weight(left) // fullest), *alone, 0)


def _exact(case: _Case, left: Counts) -> list[Counts]:
    """The fewest GPUs, by deepening; the greedy answer when the steps run out."""
    best = _greedy(case, left)
    steps = Counter[str]()
    for gpus in range(_at_least(case, left), len(best)):
        layouts = _search(case, left, gpus, steps, set())
        if layouts is not None:
            return layouts
    return best


def _greedy(case: _Case, left: Counts) -> list[Counts]:
    layouts: list[Counts] = []
    while any(left):
        taken = max((_clipped(c, left) for c in case.legal), key=lambda c: (case.weight(c), c))
        layouts.append(taken)
        left = tuple(n - t for n, t in zip(left, taken, strict=True))
    return layouts


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
        layouts = _search(case, rest, gpus - 1, steps, dead)
        if layouts is not None:
            return [taken, *layouts]
    dead.add((left, gpus))
    return None
