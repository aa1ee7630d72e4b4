"""What the pools cost. A pool without a price is named, never counted as free."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from gpuplan.plan.model import Cost, NodePool, Workload

MICRO = Decimal("0.000001")


def cost(
    pools: Iterable[NodePool],
    workloads: Iterable[Workload],
    budget: Decimal | None,
    price_source: str,
    price_date: str,
) -> Cost:
    """Sums over whole nodes; None where no pool has a price (or a known power). Where all work
    ends, so do the nodes."""
    pools, workloads = tuple(pools), tuple(workloads)
    priced = [p.usd_per_hour * p.node_count for p in pools if p.usd_per_hour is not None]
    powered = [p.watts * p.node_count for p in pools if p.watts is not None]
    hourly = sum(priced, Decimal(0)) if priced else None
    runs = [w for w in workloads if w.usd_per_run is not None]
    ending = sum((w.usd_per_hour or Decimal(0) for w in runs), Decimal(0))
    if hourly is not None:
        all_end = all(w.run_hours is not None for w in workloads)
        ending = hourly if all_end else min(hourly, ending)
    spent = sum((w.usd_per_month or Decimal(0) for w in runs), Decimal(0))
    whole = sum((w.usd_per_run or Decimal(0) for w in runs), Decimal(0))
    return Cost(
        usd_per_hour=hourly,
        runs_usd_per_hour=ending,
        runs_usd_per_month=spent.quantize(MICRO),
        usd_of_runs=whole if runs else None,
        budget_usd_per_hour=budget,
        unpriced=tuple(p.name for p in pools if p.usd_per_hour is None),
        unpriced_storage=tuple(w.name for w in workloads if w.unpriced_storage),
        watts=sum(powered) if powered else None,
        boards_only=tuple(p.name for p in pools if p.watts is not None and p.boards_only),
        price_source=price_source,
        price_date=price_date,
    )
