"""Machines to order, each pool a line, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from gpuplan.plan.model import NodePool, Order, Plan, by_name, record
from gpuplan.plan.outside.order import OrderedMachine
from gpuplan.units import HOURS_PER_MONTH

CENT = Decimal("0.01")


@record
class Line:
    """Equal machines of a pool. Prices are of all of them, None where nobody states one; a month
    has 730 hours, all of which are paid."""

    order: Order
    machine: OrderedMachine
    pool: NodePool

    @property
    def region(self) -> str | None:
        return (self.pool.rented_from or (None, None, False))[1]

    @property
    def capacity(self) -> str:
        return "spot" if self.pool.spot else "on demand"

    @property
    def usd_per_hour(self) -> Decimal | None:
        each = self.pool.usd_per_hour
        return None if each is None else each * self.pool.node_count

    @property
    def usd_per_month(self) -> Decimal | None:
        hour = self.usd_per_hour
        return None if hour is None else monthly(hour)


def monthly(usd_per_hour: Decimal) -> Decimal:
    """To the cent, for 730 hours."""
    return (usd_per_hour * HOURS_PER_MONTH).quantize(CENT)


def lines(plan: Plan) -> Iterator[Line]:
    """By provider, then by pool."""
    for order in plan.orders:
        for machine in order.machines:
            yield Line(order=order, machine=machine, pool=by_name(plan.node_pools, machine.pool))


def total(lines: Sequence[Line]) -> tuple[Decimal, bool]:
    """USD per hour of all that is priced, and whether that is all: else it is the least."""
    priced = [line.usd_per_hour for line in lines if line.usd_per_hour is not None]
    return sum(priced, Decimal(0)), len(priced) == len(lines)
