"""All workloads of a plan sized together: searched, weighed jointly, on nodes of one place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

from gpuplan.placement.pools.joint import Answer, finished, joint
from gpuplan.placement.pools.places import Offered, in_one_place, scattered
from gpuplan.sizing.ask.demand import Demand
from gpuplan.sizing.decide.searched import Search
from gpuplan.sizing.decide.size import Others, search
from gpuplan.sizing.hardware.offers import Site


def size_all(
    demands: Sequence[Demand],
    site: Site,
    others: Others = tuple,
    budget: Decimal | None = None,
    places: Callable[[], Iterable[Offered]] = tuple,
) -> tuple[list[Answer], Site]:
    """Each workload sized, in the combination that costs least, and the site that it is on: `site`,
    or that of one of the `places` where the cheapest nodes of `site` are in several. Or why some
    fit nowhere, and on which of the `others` they would. `budget` is what an hour of a month may
    cost, in USD."""
    searched = [search(demand, site, others) for demand in demands]
    failed: list[Answer] = [s for s in searched if not isinstance(s, Search)]
    if failed:
        return failed, site
    searches = [s for s in searched if isinstance(s, Search)]
    best = joint(searches, site, budget)
    if scattered(best):
        best = in_one_place(searches, places(), budget) or best
    return finished(best), best.site
