"""Size one workload: `search` its candidates, and when one is chosen, `finish` its record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from gpuplan.diagnostics import Diagnostic, Severity
from gpuplan.plan.model import Alternative
from gpuplan.sizing.ask.demand import SERVICES, Demand, ServingDemand
from gpuplan.sizing.ask.messages import unknown_override
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.devices import named
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.decide.dispatch import sizer
from gpuplan.sizing.decide.searched import Search
from gpuplan.sizing.decide.tried import searched
from gpuplan.sizing.decide.unforced import unforced
from gpuplan.sizing.hardware.devices import partitions
from gpuplan.sizing.hardware.offers import OtherSite, Site

Others = Callable[[], Iterable[OtherSite]]


def search(demand: Demand, site: Site, others: Others = tuple) -> Search | tuple[Diagnostic, ...]:
    """Every layout that meets every objective, and those that do not; or why there is none.
    `others` are asked only then, for what would do instead."""
    problem = _unknown_choice(demand, site)
    if problem is not None:
        return (problem,)
    made = searched(demand, site)
    if not any(c.feasible for c in made.allowed):
        from gpuplan.sizing.decide.refused import nothing

        return (nothing(made, site, others()),)
    return made


def finish(
    search: Search, site: Site, winner: Candidate, alternatives: tuple[Alternative, ...]
) -> Sized | tuple[Diagnostic, ...]:
    """The workload as `winner` runs it, with its evidence; or the overrides that cannot work."""
    demand = search.demand
    settled = Settled(demand, unforced(demand, site))
    sized = sizer(demand).record(settled, site, winner, alternatives)
    errors = tuple(d for d in sized.diagnostics if d.severity is Severity.ERROR)
    if errors or not isinstance(demand, SERVICES):
        return errors or sized
    from gpuplan.sizing.candidates.tradeoffs import tradeoffs

    work = replace(sized.workload, tradeoffs=tradeoffs(search.allowed, winner))
    if isinstance(demand, ServingDemand) and not demand.disaggregated:
        from gpuplan.sizing.kinds.serving.rivals import rivals
        from gpuplan.sizing.kinds.serving.split import cheaper

        layouts, apart = rivals(search.allowed, winner), cheaper(demand, site, winner)
        work = replace(work, served_layouts=layouts, cheaper_split=apart)
    return replace(sized, workload=work)


def _unknown_choice(demand: Demand, site: Site) -> Diagnostic | None:
    """A GPU type or partition that an override asks for and the site lacks."""
    gpu, partition = demand.overrides.gpu, demand.overrides.partition
    known = tuple(dict.fromkeys(o.gpu.identifier for o in site.gpus))
    if gpu is not None and gpu not in known:
        return _unknown(demand, "gpu", gpu, known)
    offers = (o for o in site.gpus if gpu in (None, o.gpu.identifier))
    if partition is not None:
        shared = [d for o in offers for d in partitions(o, site)]
        names = {str(d.partition) for d in shared}
        if not named(partition, shared):
            return _unknown(demand, "partition", partition, tuple(sorted(names)))
    return None


def _unknown(demand: Demand, field: str, value: str, known: tuple[str, ...]) -> Diagnostic:
    at = demand.origin.child("overrides", field)
    return unknown_override(f"overrides.{field}", value, known, at)
