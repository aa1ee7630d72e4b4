"""One candidate for each workload, so that the whole plan costs least.

Workloads share pools, and nodes are paid whole: what one of them costs depends on the others. What
is made least is what the plan prints: a month of the nodes that stay, and those of runs until they
end; within the budget, where some choice is (`outcome.py`). Every combination is weighed where
there are few; of more, those that cannot beat the best one known are left out (`bounded.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import product

from gpuplan.diagnostics import Diagnostic
from gpuplan.frozen import frozen
from gpuplan.placement.pools.outcome import Outcome, Weigher
from gpuplan.placement.pools.verdicts import alternatives
from gpuplan.sizing.candidates.choose import shortlist
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.decide.searched import Search
from gpuplan.sizing.decide.size import finish
from gpuplan.sizing.hardware.offers import Site

MOST_COMBINATIONS = 16
WORTH_SAYING = 0.005  # of the cost, that another combination may be cheaper

Answer = Sized | tuple[Diagnostic, ...]


@frozen
class Joint:
    """The `chosen` combination of what was searched on a site, and the `bound` that none costs less
    than."""

    searches: tuple[Search, ...]
    site: Site
    weigher: Weigher
    chosen: Outcome
    bound: float


def joint(searches: Sequence[Search], site: Site, budget: Decimal | None) -> Joint:
    """`budget` is what an hour of a month may cost, in USD."""
    weigher = Weigher(searches, site, budget)
    return Joint(tuple(searches), site, weigher, *bounded(searches, weigher))


def finished(of: Joint) -> list[Answer]:
    """Each workload sized, or the overrides that cannot work."""
    weigher, chosen = of.weigher, of.chosen
    answers = [
        finish(s, of.site, weigher.paid(chosen, n), alternatives(s, weigher, chosen, n))
        for n, s in enumerate(of.searches)
    ]
    if of.bound < chosen.cost * (1 - WORTH_SAYING) and isinstance(answers[0], Sized):
        from gpuplan.sizing.decide.messages import not_all_weighed

        part, at = 1 - of.bound / chosen.cost, of.searches[0].demand.origin
        said = (*answers[0].diagnostics, not_all_weighed(part, len(answers), at))
        answers[0] = replace(answers[0], diagnostics=said)
    return answers


def bounded(searches: Sequence[Search], weigher: Weigher) -> tuple[Outcome, float]:
    """The combination that costs least, of those that lack nodes the one that lacks fewest,
    and what no other costs less than."""
    options = [shortlist(s.allowed) for s in searches]
    if math.prod(map(len, options)) <= MOST_COMBINATIONS:
        best = min((weigher(combination) for combination in product(*options)), key=_rank)
        return best, best.cost
    from gpuplan.placement.pools.bounded import downhill, searched

    return searched(downhill(options, weigher), options, weigher)


def _rank(outcome: Outcome) -> tuple[object, ...]:
    return outcome.rank
