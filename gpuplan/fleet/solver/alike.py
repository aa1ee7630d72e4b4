"""Classes that differ little in cores, memory and functions, as one: rounded up, so that what is
packed fits; rounded down, so that what is proven holds. Where it is cut is a matter of the numbers
of items and classes alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from gpuplan.fleet.problem import Merged
from gpuplan.fleet.solver.chassis import Amounts
from gpuplan.fleet.solver.classes import (
    Choice,
    Class,
    Fleet,
    Vector,
    deal_groups,
    fits_empty,
    portions,
    share_of,
)
from gpuplan.fleet.solver.effort import SMALL
from gpuplan.fleet.solver.improve import Packer
from gpuplan.fleet.solver.model import without_integers
from gpuplan.fleet.solver.outline.formulate import formulate
from gpuplan.fleet.solver.state import State

CLASSES, ITEMS = 80, 100  # classes that need no merging: so many, and one more for so many items
# Of an item's share of its host that rounding may add in cores, memory and functions.
STEPS: tuple[Vector, ...] = ((0.6,) * 3, (0.02, 0.6, 0.02), (0.6, 0.02, 0.02), (0.05,) * 3)
WORTH = 0.75  # of the classes that may be left: else nothing is won
MOST_ERROR = 0.0025  # of the cost that rounding may add to the linear model

Key = tuple[int, int, int, int, int]  # a choice without its amounts
Which = Callable[[Iterable[int]], int]  # max or min


@dataclass(frozen=True, slots=True)
class Alike:
    """The fleet with fewer classes, `up` and `down`, and what is said of it."""

    up: Fleet
    down: Fleet
    said: Merged


def alike(fleet: Fleet) -> Alike | None:
    """None where classes are few, or where rounding them would cost more than little."""
    before = len(fleet.classes)
    if len(fleet.request) <= SMALL or before <= CLASSES + len(fleet.request) // ITEMS:
        return None
    for step in STEPS:
        groups = list(_groups(fleet, step))
        if len(groups) > WORTH * before:
            continue
        up, down = (_rounded(fleet, groups, which) for which in (max, min))
        least = _linear(down)
        error = _linear(up) / least - 1 if least else 0.0
        if error <= MOST_ERROR:
            added = (_added(fleet, same) for group in groups for same in _by_choice(group))
            rounded = max(map(max, added))
            said = Merged(before=before, after=len(groups), rounded=rounded, cost=max(0.0, error))
            return Alike(up, down, said)
    return None


def own(fleet: Fleet, state: State) -> Packer:
    """The packing with every item's own amounts."""
    packer = Packer(State(fleet))
    for host in state.hosts.values():
        mine = packer.state.open(host.chassis.index, host.owner, host.label)
        for item in host.items:
            where = state.where[item]
            assert where is not None, "a host lists who stands on it"
            choice, _, mask, start, pool = where
            kind = fleet.classes[fleet.class_of[item]]
            same = next(c for c in kind.choices if _key(c) == _key(choice))
            packer.state.put(item, (same, mine.id, mask, start, pool))
    return packer


def _key(choice: Choice) -> Key:
    return choice.chassis, choice.geometry, choice.part, choice.gpus, choice.option


def _groups(fleet: Fleet, step: Vector) -> Iterator[list[Class]]:
    """Classes of equal choices but for amounts: the largest of what is left, with all that rounding
    changes by no more than `step` of their share of a host, by resource."""
    families: dict[object, list[Class]] = {}
    for kind in fleet.classes:
        keys = tuple(sorted(map(_key, kind.choices)))
        families.setdefault((keys, kind.pools, kind.priority), []).append(kind)
    for family in families.values():
        left = sorted(family, key=lambda k: (-k.size, k.index))
        while left:
            group, rest = [left[0]], list[Class]()
            for kind in left[1:]:
                (group if _near(fleet, [*group, kind], step) else rest).append(kind)
            yield group
            left = rest


def _near(fleet: Fleet, group: Sequence[Class], step: Vector) -> bool:
    """Whether rounding changes each choice by little, and all still fit an empty host."""
    for same in _by_choice(group):
        largest = replace(same[0], wanted=_amounts(same, max))
        fits = fits_empty(fleet.chassis[largest.chassis], largest)
        if not fits or any(a > s for a, s in zip(_added(fleet, same), step, strict=True)):
            return False
    return True


def _added(fleet: Fleet, same: Sequence[Choice]) -> Vector:
    """What rounding adds at most of each resource, as a part of the least share of a host that any
    of it takes."""
    chassis = fleet.chassis[same[0].chassis]
    low, high = (_amounts(same, which) for which in (min, max))
    more = portions([h - n for h, n in zip(high, low, strict=True)], chassis.everything)
    least = min(choice.share for choice in same) / max(chassis.cost, 1)
    cores, memory, functions = (m / least if least else 0.0 for m in more)
    return cores, memory, functions


def _by_choice(group: Sequence[Class]) -> Iterator[tuple[Choice, ...]]:
    return zip(*(sorted(kind.choices, key=_key) for kind in group), strict=True)


def _amounts(same: Sequence[Choice], which: Which) -> Amounts:
    cores, memory, functions = (which(a) for a in zip(*(c.wanted for c in same), strict=True))
    return cores, memory, functions


def _rounded(fleet: Fleet, groups: Sequence[Sequence[Class]], which: Which) -> Fleet:
    """Each group as one class, of the most or the least that any of it wants."""
    classes, class_of = [], [*fleet.class_of]
    for index, group in enumerate(groups):
        choices = []
        for same in _by_choice(group):
            wanted, chassis = _amounts(same, which), fleet.chassis[same[0].chassis]
            choice = replace(same[0], wanted=wanted)
            share = share_of(choice, chassis, fleet.geometries)
            choices.append(replace(choice, share=share))
        choices.sort(key=lambda c: (c.share, c.chassis, c.option))
        items = [item for kind in group for item in kind.items]
        size = min(choice.share for choice in choices)
        kind = replace(group[0], index=index, choices=tuple(choices), size=size, items=items)
        classes.append(kind)
        for item in items:
            class_of[item] = index
    made = replace(fleet, classes=classes, class_of=class_of)
    deal_groups(made)
    return made


def _linear(fleet: Fleet) -> float:
    """What the linear model says that all cost."""
    demand = [len(kind.items) for kind in fleet.classes]
    available = [chassis.available for chassis in fleet.chassis]
    model = formulate(fleet, demand, available, whole=False)
    return without_integers(model.columns)
