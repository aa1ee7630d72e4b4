"""What the pools cost. A pool without a price is named, never counted as free."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from gpuplan.placement.pools.stages import MONTH, Stage, node_hours, passing_hours, staying
from gpuplan.plan.model import Cost, NodePool, Workload
from gpuplan.units import MICRO


def cost(
    pools: Sequence[NodePool],
    workloads: Iterable[Workload],
    stages: Sequence[Sequence[Stage]],
    *,
    budget: Decimal | None,
    price_source: str,
    price_date: str,
) -> Cost:
    """Sums over whole nodes; None where no pool has a price (or a known power). Nodes that only
    runs need are paid until these end; `stages` are those of each pool."""
    workloads = tuple(workloads)
    priced = [
        (p.usd_per_hour, p.node_count, s)
        for p, s in zip(pools, stages, strict=True)
        if p.usd_per_hour is not None
    ]
    powered = [p.watts * p.node_count for p in pools if p.watts is not None]
    hourly = sum((usd * nodes for usd, nodes, _ in priced), Decimal(0)) if priced else None
    stay = sum((usd * staying(s) for usd, _, s in priced), Decimal(0))
    month = sum((usd * node_hours(s, MONTH) for usd, _, s in priced), Decimal(0))
    ending, recurring = (
        sum((usd * passing_hours(s, recurs=kind) for usd, _, s in priced), Decimal(0))
        for kind in (False, True)
    )
    runs = [w for w in workloads if w.usd_per_run is not None]
    ends = [w for w in runs if w.starts_per_month is None]
    stored = sum((w.usd_of_storage or Decimal(0) for w in ends), Decimal(0))
    monthly = {w.name: (w.usd_of_storage or Decimal(0)) * w.runs_per_month for w in runs}
    again = sum((monthly[w.name] for w in runs if w not in ends), Decimal(0))
    return Cost(
        usd_per_hour=hourly,
        runs_usd_per_hour=Decimal(0) if hourly is None else hourly - stay,
        runs_usd_per_month=(month - stay * MONTH + sum(monthly.values(), Decimal(0))).quantize(
            MICRO
        ),
        recurring_usd_per_month=(recurring + again).quantize(MICRO)
        if len(runs) > len(ends)
        else None,
        usd_of_runs=(ending + stored).quantize(MICRO) if ends else None,
        budget_usd_per_hour=budget,
        unpriced=tuple(p.name for p in pools if p.usd_per_hour is None),
        unpriced_storage=tuple(w.name for w in workloads if w.unpriced_storage),
        watts=sum(powered) if powered else None,
        boards_only=tuple(p.name for p in pools if p.watts is not None and p.boards_only),
        price_source=price_source,
        price_date=price_date,
    )
