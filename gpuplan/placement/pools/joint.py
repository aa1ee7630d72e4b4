"""One candidate for each workload, so that the whole plan costs least.

Workloads share pools, and nodes are bought whole: what one of them costs depends on the others.
Every combination of each workload's best candidates is weighed where there are few; where there are
many, single workloads are changed as long as that makes the plan cheaper. Machines of an inventory
are there already: their GPUs are weighed by price, and only as many as there are can be taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

from gpuplan.diagnostics import Diagnostic
from gpuplan.placement.pools.outcome import Outcome, Weigher
from gpuplan.placement.pools.verdicts import alternatives
from gpuplan.sizing.ask.demand import Demand
from gpuplan.sizing.candidates.choose import NEARLY, Candidate, shortlist
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.decide.size import Others, Search, finish, search
from gpuplan.sizing.hardware.offers import Site

MOST_COMBINATIONS = 400
MOST_OPTIONS = 8  # of each order, where combinations are too many
MOST_STARTS = 3

Answer = Sized | tuple[Diagnostic, ...]


def size_all(demands: Sequence[Demand], site: Site, others: Others = tuple) -> list[Answer]:
    """Each workload sized, in the combination that costs least; or why some fit nowhere, and on
    which of the `others` they would."""
    searched = [search(demand, site, others) for demand in demands]
    searches = [s for s in searched if isinstance(s, Search)]
    if len(searches) < len(searched):
        return [s for s in searched if not isinstance(s, Search)]
    weigher = Weigher(searches, site)
    chosen = choose(searches, weigher)
    return [
        finish(s, site, weigher.paid(chosen, n), alternatives(s, weigher, chosen, n))
        for n, s in enumerate(searches)
    ]


def choose(searches: Sequence[Search], weigher: Weigher) -> Outcome:
    """The combination that costs least; of those that lack nodes, the one that lacks fewest."""
    options = [shortlist(s.allowed) for s in searches]
    if math.prod(map(len, options)) <= MOST_COMBINATIONS:
        return _nearly([weigher(combination) for combination in product(*options)])
    return _nearly(_improved([_fewer(o) for o in options], weigher))


def _nearly(outcomes: Sequence[Outcome]) -> Outcome:
    """The cheapest; where only runs differ, and cost nearly the same, the one on least GPUs."""
    cheapest = min(outcomes, key=lambda o: o.rank)

    def near(outcome: Outcome) -> bool:
        pairs = zip(outcome.candidates, cheapest.candidates, strict=True)
        differing = [n for n, (a, b) in enumerate(pairs) if a is not b]
        runs = all(outcome.candidates[n].hours != 1.0 for n in differing)
        room = sum(cheapest.parts[n] for n in differing) * (NEARLY - 1)
        return (
            runs and outcome.rank[:3] == cheapest.rank[:3] and outcome.cost - cheapest.cost <= room
        )

    return min((o for o in outcomes if near(o)), key=lambda o: (o.gpus, o.rank))


def _fewer(options: list[Candidate]) -> list[Candidate]:
    """The best alone and the best that share their nodes."""
    orders = (sorted(options, key=lambda c: c.rank(sharing=s)) for s in (False, True))
    kept = [c for order in orders for c in order[:MOST_OPTIONS]]
    return list({id(c): c for c in kept}.values())


def _improved(options: Sequence[list[Candidate]], weigher: Weigher) -> list[Outcome]:
    """From each workload's own best, and from all on one GPU type, single changes downhill."""
    types = dict.fromkeys(c.device.pool for candidates in options for c in candidates)
    starts = {id(o): o for pool in (None, *types) for o in [weigher(_start(options, pool))]}
    nearest = sorted(starts.values(), key=lambda o: o.rank)[:MOST_STARTS]
    return [_downhill(start, options, weigher) for start in nearest]


def _start(options: Sequence[list[Candidate]], pool: str | None) -> list[Candidate]:
    """Each workload's best on `pool`, where it fits there, else its best."""
    return [next((c for c in each if c.device.pool == pool), each[0]) for each in options]


def _downhill(start: Outcome, options: Sequence[list[Candidate]], weigher: Weigher) -> Outcome:
    while True:
        best = start
        for place, candidates in enumerate(options):
            now = best.candidates
            swaps = [weigher((*now[:place], c, *now[place + 1 :])) for c in candidates]
            best = _nearly([best, *swaps])
        if best.rank >= start.rank:
            return start
        start = best
