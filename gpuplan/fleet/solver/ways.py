"""Workloads that may run in several ways: which, so that all together cost least.

One model has all of them (`formulate.py`), and its bound is one of every packing in any of the
ways. Equal workloads are counted, not named. The ways that it says are packed, and those that are
cheapest for each workload alone; where a few workloads have few others, single changes follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpuplan.fleet.problem import Placed, Problem, Request, Result, Ways
from gpuplan.fleet.solver.classes import compile_fleet
from gpuplan.fleet.solver.effort import MOST_CHANGES
from gpuplan.fleet.solver.outline.formulate import Group
from gpuplan.fleet.solver.outline.master import Outline, fewest_hosts, outline_of_ways
from gpuplan.fleet.solver.run import pack

Selection = tuple[int, ...]  # of each workload the number of its way
AlikeRequests = dict[tuple[object, ...], list[int]]


def pack_ways(problem: Problem) -> tuple[Problem, Result]:
    """The problem with the ways that were taken, and the packing of it. What stands keeps its
    way."""
    if not problem.ways:
        return problem, pack(problem)
    if problem.kept:
        frozen = chosen(problem, standing(problem))
        return frozen, pack(frozen)
    alike = _alike(problem)
    outline = _outline(problem, alike)
    trials = _Trials(problem)
    trials.look(_named(outline, alike, len(problem.ways)))
    trials.look((0,) * len(problem.ways))
    for selection in _changes(problem, trials.best):
        if trials.packed[trials.best].cost > outline.bound:
            trials.look(selection)
    best = chosen(problem, trials.best)
    result = trials.packed[trials.best]
    if result.cost > max(result.bound, outline.bound) or result.refused:
        result = pack(best)
    return best, _bounded(result, outline)


def _bounded(result: Result, outline: Outline) -> Result:
    """With what is proven of all ways."""
    if result.refused:
        return result
    hosts = min(result.bound_hosts, fewest_hosts(outline))
    return replace(result, bound=min(result.bound, outline.bound), bound_hosts=hosts)


class _Trials:
    """What became of the selections that were packed."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.packed: dict[Selection, Result] = {}

    def look(self, selection: Selection) -> None:
        if selection not in self.packed:
            self.packed[selection] = pack(chosen(self.problem, selection), contents=False)

    @property
    def best(self) -> Selection:
        packed = self.packed
        return min(packed, key=lambda s: (_left(packed[s]), packed[s].cost, s))


def chosen(problem: Problem, selection: Selection) -> Problem:
    """The problem with one way of each workload, and no other."""
    taken: dict[str, tuple[Request, ...]] = {}
    gone: set[str] = set()
    for ways, number in zip(problem.ways, selection, strict=True):
        first, *others = (r.name for r in ways.ways[0])
        taken[first] = ways.ways[number]
        gone.update(others)
    requests: list[Request] = []
    for request in problem.requests:
        if request.name not in gone:
            requests += taken.get(request.name, (request,))
    return replace(problem, requests=tuple(requests), ways=())


def standing(problem: Problem) -> Selection:
    """The ways that have most of what stands now; of equals the first."""
    return tuple(
        max(range(len(w.ways)), key=lambda n: _kept(w.ways[n], problem.kept)) for w in problem.ways
    )


def _kept(way: Sequence[Request], kept: Sequence[Placed]) -> tuple[int, int]:
    """Items that stand so; of as many the way that has fewer beside them."""
    wanted = {r.name: r for r in way}
    stand = sum(
        any(
            (o.mode, o.part) == (p.mode, p.part) and (o.part or o.gpus == len(p.gpus))
            for o in wanted[p.request].options
        )
        for p in kept
        if p.request in wanted and p.number < wanted[p.request].count
    )
    return stand, -sum(r.count for r in way)


def _left(result: Result) -> int:
    return sum(len(r.numbers) for r in result.refused)


def _changes(problem: Problem, at: Selection) -> Iterator[Selection]:
    """Single changes, while they are few."""
    made = [
        (*at[:place], number, *at[place + 1 :])
        for place, ways in enumerate(problem.ways)
        for number in range(len(ways.ways))
        if number != at[place]
    ]
    if len(made) <= MOST_CHANGES:
        yield from made


def _alike(problem: Problem) -> AlikeRequests:
    """The workloads that differ in nothing but their names."""
    alike: AlikeRequests = {}
    for place, ways in enumerate(problem.ways):
        alike.setdefault(_look(ways), []).append(place)
    return alike


def _look(ways: Ways) -> tuple[object, ...]:
    first = ways.ways[0][0]
    sizes = tuple(
        (len(way), tuple((r.count, r.growth, r.spread is not None, id(r.options)) for r in way))
        for way in ways.ways
    )
    return first.tenant, first.isolation, sizes


def _outline(problem: Problem, alike: AlikeRequests) -> Outline:
    """The model of all ways, each of its requests under a name of its own. Of equal workloads the
    first stands for all."""
    owned = {r.name for ways in problem.ways for r in ways.ways[0]}
    plain = [r for r in problem.requests if r.name not in owned]
    numbered: list[Request] = []
    members: list[list[list[str]]] = []
    for places in alike.values():
        members.append([])
        for way in problem.ways[places[0]].ways:
            names = []
            for request in way:
                names.append(f"{len(numbered)} {request.name}")
                numbered.append(replace(request, name=names[-1], spread=None))
            members[-1].append(names)
    fleet = compile_fleet(replace(problem, requests=(*plain, *numbered), ways=()))
    demand = [0] * len(fleet.classes)
    counts: dict[str, dict[int, int]] = {}
    for item, r in enumerate(fleet.request):
        kind = fleet.class_of[item]
        if r < len(plain):
            demand[kind] += kind >= 0
        else:
            of = counts.setdefault(fleet.problem.requests[r].name, {})
            of[kind] = of.get(kind, 0) + 1
    groups = [
        Group(len(places), tuple(_summed([counts.get(n, {}) for n in names]) for names in of))
        for places, of in zip(alike.values(), members, strict=True)
    ]
    return outline_of_ways(fleet, demand, groups)


def _summed(counts: Sequence[dict[int, int]]) -> dict[int, int]:
    total: dict[int, int] = {}
    for each in counts:
        for kind, number in each.items():
            total[kind] = total.get(kind, 0) + number
    return total


def _named(outline: Outline, alike: AlikeRequests, number: int) -> Selection:
    """The ways that the model says, dealt to equal workloads in their order."""
    selection = [0] * number
    for places, counts in zip(alike.values(), outline.ways, strict=True):
        ways = [way for way, count in enumerate(counts) for _ in range(count)]
        for place, way in zip(places, ways, strict=False):
            selection[place] = way
    return tuple(selection)
