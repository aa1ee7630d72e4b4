"""Hosts that are rented in one place, as those of a cluster are, where the cheapest are in more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gpuplan.catalog.load import Catalog
from gpuplan.catalog.shapes import Place, rates_by_place
from gpuplan.fleet import messages
from gpuplan.fleet.build import Asked, Built, build, sellers
from gpuplan.fleet.owned import own_first
from gpuplan.fleet.problem import HostType, Problem, Result
from gpuplan.fleet.requests.reading import Wanted
from gpuplan.fleet.solver import pack_ways

MOST_TRIED = 4  # places with all types that are used, those first where they cost least
Rates = Mapping[Place, Mapping[str, float]]  # of a GPU of each type that is rented there


def pack_in_one_place(
    built: Built, wanted: Wanted, asked: Asked, catalog: Catalog
) -> tuple[Built, Result]:
    """The answer, and `built` with the problem that it answers. Where no place that is tried holds
    as much, or has the hosts of what stands, it is the cheapest of all and a warning says so."""
    assert built.problem is not None
    free = _packed(built.problem)
    used = _bought(*free)
    places = {kind.place for kind in used}
    if len(places) < 2:
        return _with(built, free)
    best: tuple[Built, tuple[Problem, Result]] | None = None
    rented = sorted({k.gpu for k in built.problem.hosts if k.place is not None})
    rates = rates_by_place(catalog, rented, sellers(wanted))
    for place in _tried(built.problem, used, rates):
        local = build(wanted, replace(asked, place=place), catalog)
        if local.problem is None:
            continue
        packed = _packed(local.problem)
        lost = _refused(packed[1]) > _refused(free[1])
        if not lost and (best is None or packed[1].cost < best[1][1].cost):
            local.diagnostics.append(messages.one_place(place, free[1].cost, packed[1].cost))
            best = local, packed
    if best is None:
        named = sorted(f"{k.name} ({', '.join(k.place)})" for k in used if k.place)
        built.diagnostics.append(messages.several_places(named))
        return _with(built, free)
    return _with(*best)


def _packed(problem: Problem) -> tuple[Problem, Result]:
    settled, result = pack_ways(problem)
    return settled, own_first(settled, result)


def _with(built: Built, answer: tuple[Problem, Result]) -> tuple[Built, Result]:
    return replace(built, problem=answer[0]), answer[1]


def _bought(problem: Problem, result: Result) -> Mapping[HostType, int]:
    """The hosts that are rented for the answer."""
    counts = dict(result.hosts)
    return {k: counts[k.name] for k in problem.hosts if k.place is not None and k.name in counts}


def _refused(result: Result) -> int:
    return sum(len(r.numbers) for r in result.refused)


def _tried(problem: Problem, used: Mapping[HostType, int], by_place: Rates) -> list[Place]:
    """Where as many GPUs of the same types cost least, and where each type that may be rented costs
    least: what is packed may need one alone."""
    gpus = {kind.gpu: sum(len(n.gpus) for n in kind.nodes) * n for kind, n in used.items()}

    def cost(place: Place) -> tuple[float, Place]:
        prices = by_place[place]
        dearest = max(prices.values())  # in place of a type that is not there
        return sum(count * prices.get(gpu, dearest) for gpu, count in gpus.items()), place

    whole = sorted(p for p, rates in by_place.items() if gpus.keys() <= rates.keys())
    tried = sorted(whole, key=cost)[:MOST_TRIED]
    for gpu in sorted({k.gpu for k in problem.hosts if k.place is not None}):
        tried.append(
            min((p for p in by_place if gpu in by_place[p]), key=lambda p: (by_place[p][gpu], p))
        )
    return list(dict.fromkeys(tried))
