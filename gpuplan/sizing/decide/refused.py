"""Why no layout of a workload meets every objective, and what would do instead."""

from __future__ import annotations

from collections.abc import Iterable

from gpuplan.diagnostics import Diagnostic, remedied
from gpuplan.sizing.ask.demand import LanguageDemand
from gpuplan.sizing.candidates.choose import RACK
from gpuplan.sizing.decide.messages import (
    not_measured,
    nothing_fits,
    nothing_runs,
    override_does_not_fit,
    rack_feeds_no_node,
)
from gpuplan.sizing.decide.remedies import advice, blamed
from gpuplan.sizing.decide.searched import Search
from gpuplan.sizing.decide.tried import searched
from gpuplan.sizing.decide.without import overridden, without
from gpuplan.sizing.hardware.offers import OtherSite, Site
from gpuplan.sizing.kinds.serving.experts import missing
from gpuplan.sizing.kinds.serving.nodes import apart, short_of_memory
from gpuplan.vendors import vendor_of


def nothing(made: Search, site: Site, others: Iterable[OtherSite]) -> Diagnostic:
    """The one message of a search that finds nothing; `others` are what else would do."""
    demand, rejected = made.demand, made.rejected
    lacks = {c.shortfalls[0].lack for c in rejected}
    if lacks == {"unmeasured"}:
        return not_measured(demand.name, rejected, demand.origin)
    if lacks == {"absent"}:
        kernels = isinstance(demand, LanguageDemand) and all(
            missing(demand, c.device.gpu) for c in rejected
        )
        makers = None if kernels else vendor_of(None).title
        return nothing_runs(demand.name, rejected, demand.origin, makers)
    fields, instead = blamed(demand, site, searched)
    if fields:
        at = demand.origin.child("overrides", fields[0])
        problem = override_does_not_fit(fields, rejected, at, instead.words)
        return remedied(problem, *instead.remedies)
    if rejected and all(c.shortfalls[0].resource == RACK for c in rejected):
        return rack_feeds_no_node(rejected, demand.origin)
    elsewhere = tuple(others)
    change = advice(made, site, elsewhere, searched)
    if not change.remedies and (names := overridden(demand)):
        change = advice(searched(without(demand, names), site), site, elsewhere, searched, names)
    words = change.words
    if short_of_memory(made.allowed) and (why := apart(demand, site)):
        words = f"{why}; {words}" if words else why
    problem = nothing_fits(demand.name, rejected, demand.origin, words)
    return remedied(problem, *change.remedies)
