"""What the pools cost. A pool without a price is named, never counted as free."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from gpuplan.plan.model import Cost, NodePool


def cost(
    pools: Iterable[NodePool], budget: Decimal | None, price_source: str, price_date: str
) -> Cost:
    """Sums over whole nodes; None where no pool has a price (or a known power)."""
    pools = tuple(pools)
    priced = [p.usd_per_hour * p.node_count for p in pools if p.usd_per_hour is not None]
    powered = [p.watts * p.node_count for p in pools if p.watts is not None]
    return Cost(
        usd_per_hour=sum(priced, Decimal(0)) if priced else None,
        budget_usd_per_hour=budget,
        unpriced=tuple(p.name for p in pools if p.usd_per_hour is None),
        watts=sum(powered) if powered else None,
        price_source=price_source,
        price_date=price_date,
    )
