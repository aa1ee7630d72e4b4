"""Sized and placed: what all workloads cost least on, of what has a place for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from gpuplan.catalog.load import Catalog
from gpuplan.diagnostics import Diagnostic, Severity, worst
from gpuplan.errors import Rejected
from gpuplan.placement.api import Placement
from gpuplan.placement.passed import blamed, passed_over
from gpuplan.placement.place import place
from gpuplan.placement.pools.together import size_all
from gpuplan.plan.model import Plan, Workload
from gpuplan.resolve.ordering.lists import prices
from gpuplan.resolve.others import other_sites, places
from gpuplan.resolve.run import Resolved
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.hardware.offers import Site


def seated(
    resolved: Resolved, catalog: Catalog, former: Plan | None
) -> tuple[Resolved, tuple[Sized, ...], tuple[Diagnostic, ...], Placement]:
    """All workloads sized and placed, with the site that they are on. Where hosts lack what the
    cheapest choice needs, or do not state it, the next GPU is taken, with a warning; but what runs
    on the first in the `former` stack is not moved for it. The placement's errors are those of the
    first choice where no other has a place. Raises `Rejected` with all that fit nowhere."""
    first: tuple[Resolved, tuple[Sized, ...], tuple[Diagnostic, ...], Placement] | None = None
    passed: tuple[Diagnostic, ...] = ()
    while True:
        try:
            sized, notes, site = _sizes(resolved, catalog)
        except Rejected:
            if first is None:
                raise
            return first
        here = replace(resolved, site=site)
        placement = _placed(here, sized, former)
        made = here, sized, (*notes, *passed), placement
        if worst(placement.diagnostics) is not Severity.ERROR:
            return made
        first = first or made
        workloads = [s.workload for s in sized]
        listed = resolved.inventory, resolved.inventory_document
        causes = blamed(placement.diagnostics, workloads, *listed)
        others = {w.name: w for w in workloads if w.name in causes}
        if not causes or _stand(others.values(), former):
            return first
        passed += tuple(passed_over(w, causes[name]) for name, w in others.items())
        demands = (
            replace(d, passed_over=(*d.passed_over, others[d.name].gpu)) if d.name in others else d
            for d in resolved.demands
        )
        resolved = replace(resolved, demands=tuple(demands))


def _stand(workloads: Iterable[Workload], former: Plan | None) -> bool:
    """Whether one of them runs on that very GPU: what a host does not state any more, or has no
    room for, must not move its guests."""
    standing = {(w.name, w.gpu) for w in former.workloads} if former else set()
    return any((w.name, w.gpu) in standing for w in workloads)


def _sizes(
    resolved: Resolved, catalog: Catalog
) -> tuple[tuple[Sized, ...], tuple[Diagnostic, ...], Site]:
    others, alone = partial(other_sites, resolved, catalog), partial(places, resolved, catalog)
    budget = resolved.loaded.manifest.platform.budget
    answers, site = size_all(resolved.demands, resolved.site, others, budget, alone)
    sized = tuple(a for a in answers if isinstance(a, Sized))
    failed = [d for a in answers if not isinstance(a, Sized) for d in a]
    if failed:
        raise Rejected(failed)
    return sized, tuple(d for s in sized for d in s.diagnostics), site


def _placed(resolved: Resolved, sized: Sequence[Sized], former: Plan | None) -> Placement:
    manifest = resolved.loaded.manifest
    sources, date = prices(resolved, sized)
    fabric = resolved.site.fabric
    return place(
        manifest.name,
        manifest.platform.target,
        [s.workload for s in sized],
        resolved.site.gpus,
        resolved.inventory,
        document=resolved.inventory_document,
        budget=manifest.platform.budget,
        price_source=sources,
        price_date=date,
        former=former.virtual_machines if former else (),
        pools_there=former.node_pools if former else (),
        fabric_bytes_per_s=None if fabric is None else fabric.bytes_per_s_per_gpu,
    )
