"""Rows of the model that are added where an answer breaks them: items of a spread group stand on
different hosts, and workloads do not share a node's cores as if they were a liquid."""

from __future__ import annotations

from dataclasses import dataclass

from gpuplan.fleet.solver.classes import Class, Fleet, Pool
from gpuplan.fleet.solver.effort import CUT_ROUNDS, CUT_SMALL
from gpuplan.fleet.solver.model import Relaxation
from gpuplan.fleet.solver.outline.formulate import Load, Model, slot_list

Items = dict[int, list[int]]
Own = tuple[int, Load]  # a column of a class, and what it means
OnGpus = tuple[int, Pool, int, int]  # chassis, pool, geometry, part


@dataclass(frozen=True, slots=True)
class Limit:
    """Items of a class on hosts of a type, or on their GPUs: `alone` of no group, and groups of
    these `sizes`."""

    loads: list[int]
    hosts: list[int]
    alone: int
    sizes: list[int]

    def most(self, hosts: int) -> int:
        return self.alone + sum(min(size, hosts) for size in self.sizes)

    def slope(self, hosts: int) -> int:
        return sum(size > hosts for size in self.sizes)


def group_sizes(fleet: Fleet, items: list[int]) -> list[int]:
    sizes: dict[int, int] = {}
    for item in items:
        if fleet.spread[item] >= 0:
            sizes[fleet.spread[item]] = sizes.get(fleet.spread[item], 0) + 1
    return sorted(sizes.values())


def tighten(model: Model, items: Items) -> None:
    """Add the rows that the model's linear answers break, until none does; all rows of spread
    groups to a small model, whose answers are whole."""
    limits, loads, gpus = [], _loads(model), _gpus(model)
    for kind in model.fleet.classes:
        sizes = group_sizes(model.fleet, items.get(kind.index, []))
        if sizes and sizes[-1] > 1:
            alone, own = len(items[kind.index]) - sum(sizes), loads.get(kind.index, [])
            limits += _limits(model, kind, own, alone, sizes)
            limits += _on_gpus(own, gpus, alone, sizes)
    if sum(model.demand) <= CUT_SMALL:
        for limit in limits:
            for hosts in range(limit.sizes[-1]):
                _tangent(model, limit, hosts)
        limits = []
    if limits or model.duals:
        _cut_all(model, limits)


def _cut_all(model: Model, limits: list[Limit]) -> None:
    relaxed = Relaxation(model.columns)
    for _ in range(CUT_ROUNDS):
        values = relaxed.values()
        if not sum(_cut(model, limit, values) for limit in limits) + _cut_nodes(model, values):
            return


def _loads(model: Model) -> dict[int, list[Own]]:
    """The columns of each class."""
    by_class: dict[int, list[Own]] = {}
    for column, load in model.loads.items():
        by_class.setdefault(load.kind.index, []).append((column, load))
    return by_class


def _gpus(model: Model) -> dict[OnGpus, list[int]]:
    """The columns of the layouts that have a part."""
    gpus: dict[OnGpus, list[int]] = {}
    for column, ((chassis, pool, _, geometry), layout) in model.layouts.items():
        for part in dict.fromkeys(p for p, _ in slot_list(model.fleet, geometry, layout)):
            gpus.setdefault((chassis, pool, geometry, part), []).append(column)
    return gpus


def _limits(model: Model, kind: Class, own: list[Own], alone: int, sizes: list[int]) -> list[Limit]:
    """One for each host type; and of all hosts there must be as many as the largest group has."""
    limits, everywhere = [], {}
    for chassis in model.fleet.chassis:
        loads = {
            column: load.pool[0] for column, load in own if load.choice.chassis == chassis.index
        }
        hosts = [model.hosts[chassis.index, owner] for owner in dict.fromkeys(loads.values())]
        everywhere.update(dict.fromkeys(hosts, 1.0))
        if loads:
            limits.append(Limit(list(loads), hosts, alone, sizes))
    short = {model.short[kind.index]: 1.0}
    model.columns.row(sizes[-1], float("inf"), {**everywhere, **short})
    return limits


def _on_gpus(
    own: list[Own], gpus: dict[OnGpus, list[int]], alone: int, sizes: list[int]
) -> list[Limit]:
    """One for each part and pool: a GPU is on one host, so there are at most as many hosts as GPUs
    in a layout with the part."""
    loads: dict[OnGpus, list[int]] = {}
    for column, load in own:
        if not load.choice.whole:
            key = (load.choice.chassis, load.pool, load.choice.geometry, load.choice.part)
            loads.setdefault(key, []).append(column)
    return [Limit(loads[key], gpus[key], alone, sizes) for key in loads if key in gpus]


def _cut_nodes(model: Model, values: list[float]) -> int:
    """The dual rows that are broken move from those that may cut to the model's rows."""
    broken = [t for t in model.duals if sum(v * values[c] for c, v in t.items()) > 1e-6]
    for terms in broken:
        model.columns.row(-float("inf"), 0, terms)
        model.duals.remove(terms)
    return len(broken)


def _cut(model: Model, limit: Limit, values: list[float]) -> bool:
    """The tangent at the answer's number of hosts, if more items stand there than can."""
    hosts = int(sum(values[c] for c in limit.hosts) + 1e-6)
    slope = limit.slope(hosts)
    most = limit.most(hosts) + slope * (sum(values[c] for c in limit.hosts) - hosts)
    if sum(values[c] for c in limit.loads) <= most + 1e-6:
        return False
    _tangent(model, limit, hosts)
    return True


def _tangent(model: Model, limit: Limit, hosts: int) -> None:
    slope = limit.slope(hosts)
    terms = {**dict.fromkeys(limit.loads, 1.0), **dict.fromkeys(limit.hosts, -float(slope))}
    model.columns.row(-float("inf"), limit.most(hosts) - slope * hosts, terms)
