"""What the model says: how many hosts, which layouts on them, and which class goes where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, gcd

from gpuplan.fleet.solver.classes import Fleet
from gpuplan.fleet.solver.effort import SMALL, searched
from gpuplan.fleet.solver.model import CUT_SHORT, Solved, solve, without_integers
from gpuplan.fleet.solver.outline.formulate import (
    EPSILON,
    SCALE,
    Group,
    Load,
    Model,
    Slots,
    by_number,
    formulate,
)
from gpuplan.fleet.solver.outline.tighten import tighten

SLACK = 1e-7  # of the solver's bound, for its tolerances


@dataclass(slots=True)
class Outline:
    """Fractional numbers of items by load, of GPUs by layout, and whole hosts; how many workloads
    of each group run in each of its ways."""

    model: Model
    hosts: dict[tuple[int, str | None], int] = field(default_factory=dict)
    loads: list[tuple[Load, float]] = field(default_factory=list)
    layouts: list[tuple[Slots, int, float]] = field(default_factory=list)
    ways: list[list[int]] = field(default_factory=list)
    bound: int = 0
    cut_short: str = ""


def outline(
    fleet: Fleet,
    items: dict[int, list[int]],
    available: list[int | None],
    *,
    whole: bool = False,
) -> Outline:
    """The answer for these items of each class, and a bound of what hosts for them cost."""
    demand = [len(items.get(kind.index, ())) for kind in fleet.classes]
    model = formulate(fleet, demand, available, whole=whole)
    tighten(model, items)
    gap, nodes = searched(whole=whole)
    solved = solve(model.columns, gap=gap, nodes=nodes)
    return _read(model, solved)


def outline_of_ways(fleet: Fleet, demand: list[int], groups: Sequence[Group]) -> Outline:
    """The answer over all ways that workloads may run in, on top of `demand` of each class."""
    available = [chassis.available for chassis in fleet.chassis]
    items = sum(demand) + sum(g.number * max(sum(w.values()) for w in g.ways) for g in groups)
    whole = items <= SMALL
    model = formulate(fleet, demand, available, whole=whole, groups=groups)
    gap, nodes = searched(whole=whole, ways=True)
    solved = solve(model.columns, gap=gap, nodes=nodes)
    return _read(model, solved)


def whole_outline(fleet: Fleet, *, whole: bool = False) -> Outline:
    """The answer for all items."""
    items = {kind.index: kind.items for kind in fleet.classes}
    available = [chassis.available for chassis in fleet.chassis]
    return outline(fleet, items, available, whole=whole)


def _read(model: Model, solved: Solved) -> Outline:
    answer = Outline(model, bound=_money(model, solved.bound))
    if solved.status in CUT_SHORT:
        answer.cut_short = "HiGHS"
    values = solved.values
    answer.ways = [[round(values[c]) for c in columns] for columns in model.ways]
    for key, column in model.hosts.items():
        answer.hosts[key] = ceil(values[column] - 1e-6)
    for column, load in model.loads.items():
        if values[column] > 1e-9:
            answer.loads.append((load, values[column]))
    for column, (slots, layout) in model.layouts.items():
        if values[column] > 1e-9:
            answer.layouts.append((slots, layout, values[column]))
    return answer


def _money(model: Model, bound: float) -> int:
    """The solver's bound without its tie-break, in micro-USD; costs are multiples of one amount."""
    extra = 0.0
    for kind in model.fleet.classes:
        costs = [
            max(choice.gpus, 1) * model.fleet.chassis[choice.chassis].cost
            / model.fleet.chassis[choice.chassis].gpus
            for choice in kind.choices
        ]  # fmt: skip
        extra += model.demand[kind.index] * max(costs) * EPSILON
    step = gcd(*(chassis.cost for chassis in model.fleet.chassis)) or 1
    return max(0, ceil((bound * SCALE * (1 - SLACK) - extra) / step) * step)


def fewest_hosts(outline: Outline) -> int:
    """No packing of the same items takes fewer hosts."""
    return ceil(without_integers(by_number(outline.model)) - 1e-6)
