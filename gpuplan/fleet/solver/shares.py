"""Whole numbers of an outline's fractions: who goes by which load, and how many GPUs by which
layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuplan.fleet.solver.chassis import Chassis
from gpuplan.fleet.solver.classes import Choice, Fleet, Pool, Vector, portions
from gpuplan.fleet.solver.outline.formulate import Load, NodeGroup, Slots, slot_list, takes_nodes

Dealt = tuple[Load, list[int]]
LayoutCount = tuple[Slots, int, float]


@dataclass(frozen=True, slots=True)
class Unit:
    """One workload on GPUs of a node (`choice`), or one GPU in a layout (`slots`)."""

    gpus: int
    load: Vector
    pool: Pool
    item: int = -1
    choice: Choice | None = None
    slots: Slots | None = None
    layout: int = -1


def split(loads: Sequence[tuple[Load, float]], items: dict[int, list[int]]) -> list[Dealt]:
    """Whole numbers of each load; the largest remainders are rounded up, as many as there are."""
    by_class: dict[int, list[tuple[Load, float]]] = {}
    for load, value in loads:
        by_class.setdefault(load.kind.index, []).append((load, value))
    shares = []
    for index, group in by_class.items():
        wanted = min(len(items.get(index, ())), round(sum(value for _, value in group)))
        numbers = _round([value for _, value in group], wanted)
        start = 0
        for (load, _), number in zip(group, numbers, strict=True):
            shares.append((load, items[index][start : start + number]))
            start += number
    return shares


def _round(values: list[float], wanted: int) -> list[int]:
    numbers = [int(value + 1e-6) for value in values]
    order = sorted(range(len(values)), key=lambda n: (numbers[n] - values[n], n))
    for n in order[: max(0, wanted - sum(numbers))]:
        numbers[n] += values[n] - numbers[n] > 1e-6
    return numbers


def fills(fleet: Fleet, load: Load) -> bool:
    """Whether a load takes whole nodes, or several."""
    chassis = fleet.chassis[load.choice.chassis]
    pairs = zip(chassis.kinds, load.shape, strict=True)
    return load.spans or any(takes_nodes(kind, n, spans=False) for kind, n in pairs if n)


def vector(chassis: Chassis, node: int, choice: Choice) -> Vector:
    """The part of a node of a kind that an item takes."""
    return portions(choice.wanted, chassis.kinds[node].room)


def whole_units(fleet: Fleet, shares: list[Dealt]) -> dict[NodeGroup, list[Unit]]:
    """Workloads on GPUs of a node that others share."""
    units: dict[NodeGroup, list[Unit]] = {}
    for load, chosen in shares:
        choice, chassis = load.choice, fleet.chassis[load.choice.chassis]
        if choice.whole and not fills(fleet, load):
            amount = vector(chassis, load.node, choice)
            units.setdefault((chassis.index, load.pool[0], load.node), []).extend(
                Unit(choice.gpus, amount, load.pool, item, choice) for item in chosen
            )
    return units


def means(fleet: Fleet, shares: list[Dealt]) -> dict[tuple[Slots, int], Vector]:
    """What an item in a slot takes of its node, on average."""
    sums: dict[tuple[Slots, int], list[float]] = {}
    for load, chosen in shares:
        if chosen and not load.choice.whole:
            chassis = fleet.chassis[load.choice.chassis]
            total = sums.setdefault((slots_of(load), load.choice.part), [0.0] * 4)
            for n, amount in enumerate((*vector(chassis, load.node, load.choice), 1.0)):
                total[n] += amount * len(chosen)
    return {key: (s[0] / s[3], s[1] / s[3], s[2] / s[3]) for key, s in sums.items()}


def slots_of(load: Load) -> Slots:
    return load.choice.chassis, load.pool, load.node, load.choice.geometry


def layout_units(
    fleet: Fleet, layouts: list[LayoutCount], typical: dict[tuple[Slots, int], Vector], free: int
) -> list[Unit]:
    """So many GPUs in each layout: rounded down, then up while GPUs are free."""
    values = [value for _, _, value in layouts]
    units = []
    for (slots, layout, _), number in zip(layouts, _round(values, free), strict=True):
        parts = slot_list(fleet, slots[3], layout)
        vectors = [typical.get((slots, part), (0.0, 0.0, 0.0)) for part, _ in parts]
        load = sum(v[0] for v in vectors), sum(v[1] for v in vectors), sum(v[2] for v in vectors)
        units += [Unit(1, load, slots[1], slots=slots, layout=layout) for _ in range(number)]
    return units
