"""Own the nodes that are always needed, rent those of the peak by the hour: the load-duration curve
says how much of the time each node is needed, and from which part of it on owning costs less."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from math import ceil

from gpuplan.frozen import record

ONE = Decimal(1)
Curve = Sequence[tuple[Decimal, Decimal]]  # hours (ascending, to 1), load over its peak


@record
class Split:
    """`base` nodes are owned and `peak` ones rented; `quantile` is the part of the hours from which
    on a node costs less owned. `rented_hours` are node-hours of a month, over the hours of one."""

    base: int
    peak: int
    quantile: Decimal
    rented_share: Decimal


def assumed_curve(mean: Decimal, peak: Decimal, busy_share: Decimal, steps: int = 100) -> Curve:
    """Without a measured one: no load in the idle hours, and in the busy ones peak × x ** k, whose
    mean is the stated one for k = peak / mean - 1. An assumption, and said to be one."""
    power = float(peak / mean) - 1
    points = [(ONE - busy_share, Decimal(0))] if busy_share < 1 else []
    for step in range(1, steps + 1):
        part = Decimal(step) / steps
        # the level at the middle of the step, so that its mean is the curve's
        level = ONE if not power else Decimal(repr(((step - 0.5) / steps) ** power))
        points.append((ONE - busy_share + busy_share * part, level))
    return points


def shares(curve: Curve, nodes: int) -> tuple[Decimal, ...]:
    """Of the first, second, … node the part of the hours in which the load needs it."""
    needed = [Decimal(0)] * nodes
    before = Decimal(0)
    for hours, load in curve:
        for number in range(min(nodes, ceil(load * nodes))):
            needed[number] += hours - before
        before = hours
    return tuple(needed)


def split(curve: Curve, nodes: int, owned_per_month: Decimal, rented_per_month: Decimal) -> Split:
    """`owned_per_month`: one node with what is written off over the horizon; `rented_per_month`:
    one that is rented for all hours."""
    quantile = owned_per_month / rented_per_month
    needed = shares(curve, nodes)
    base = sum(1 for share in needed if share >= quantile)
    return Split(
        base=base,
        peak=nodes - base,
        quantile=quantile,
        rented_share=sum(needed[base:], Decimal(0)),
    )
