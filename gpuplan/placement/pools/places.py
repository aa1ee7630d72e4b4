"""Nodes of one provider and region, as those of a cluster are, where the cheapest of all are in
several."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal

from gpuplan.catalog.shapes import Place
from gpuplan.frozen import frozen
from gpuplan.placement.pools.joint import Joint, joint
from gpuplan.placement.pools.stages import MONTH
from gpuplan.sizing.candidates.choose import shortlist
from gpuplan.sizing.decide.searched import Search
from gpuplan.sizing.decide.tried import host_bound, moved
from gpuplan.sizing.hardware.offers import Site


@frozen
class Offered:
    """`rates` are the least that an hour of a GPU of each type costs there, USD; `site` is made
    where they may be the cheapest."""

    place: Place
    rates: Mapping[str, float]
    site: Callable[[], Site | None]


def scattered(combined: Joint) -> bool:
    """Whether nodes that are bought are of several providers or regions."""
    shapes = (c.device.offer.shape for c in combined.chosen.candidates)
    return len({s.place for s in shapes if s is not None and s.price is not None}) > 1


def in_one_place(
    searches: Sequence[Search], places: Iterable[Offered], budget: Decimal | None
) -> Joint | None:
    """The combination that costs least in any one of the places; None where none has GPUs for all
    workloads."""
    best: Joint | None = None
    filled = [_filled(s) for s in searches]
    bounds = [(_bound(filled, offered.rates), offered) for offered in places]
    for bound, offered in sorted(bounds, key=lambda pair: (pair[0], pair[1].place)):
        if math.isinf(bound) or (best is not None and bound >= best.chosen.cost):
            break
        site = offered.site()
        local = [moved(s, site) for s in searches] if site is not None else []
        if site is None or any(s.best is None for s in local):
            continue
        combination = joint(local, site, budget)
        if best is None or combination.chosen.rank < best.chosen.rank:
            best = combination
    return best


def _filled(search: Search) -> dict[str, float]:
    """The fewest GPUs of each type that a workload fills, by the hour of a month: no node is paid
    for less than what is on it."""
    month, fewest = float(MONTH), dict[str, float]()
    if host_bound(search.demand):  # another node may need fewer
        return {c.device.gpu.identifier: 0.0 for c in search.allowed}
    for candidate in shortlist(search.allowed):
        hours, gpu = candidate.hours, candidate.device.gpu.identifier
        part = 1.0 if hours is None else min(hours, month) / month
        gpus = float(candidate.least_gpus) * part
        fewest[gpu] = min(gpus, fewest.get(gpu, gpus))
    return fewest


def _bound(filled: Iterable[Mapping[str, float]], rates: Mapping[str, float]) -> float:
    """What no combination costs less than, as `Outcome.cost` is; infinite where some workload's
    GPUs are not there."""
    return sum(
        min((n * rates[gpu] for gpu, n in of.items() if gpu in rates), default=math.inf)
        for of in filled
    )
