"""The hybrid course: the base owned, the peak rented by the hour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from gpuplan.frozen import record
from gpuplan.money.courses import QUARTER, Course, Fleet, owned
from gpuplan.money.hybrid import Curve, Split, assumed_curve, split
from gpuplan.money.owned import Group, outstanding, owning
from gpuplan.money.parts import Part, total
from gpuplan.plan.costs.units import busy_share
from gpuplan.plan.model import Plan
from gpuplan.units import HOURS_PER_MONTH, significant

SHARED = ("staff", "facility")  # paid once for all nodes, whatever their number


@record
class Mixed:
    """How each quarter's nodes are divided, and which load-duration curve that rests on."""

    splits: tuple[Split, ...]
    curve: str


def mixed(
    base: tuple[Sequence[Fleet], Plan],
    groups: Sequence[Sequence[Group]],
    curve: Curve | None,
    months: int,
    beside: Sequence[Part] = (),
) -> tuple[Mixed | None, Course]:
    """Of one pool of equal nodes with a price by the hour; else a course that says why none."""
    fleets, plan = base
    pool = plan.node_pools[0]
    said = "the load-duration curve of the costs file"
    if curve is None:
        curve, said = _assumed(plan)
    if len(plan.node_pools) > 1 or curve is None:
        why = "needs one pool of equal nodes, and a load with mean and peak"
        return None, Course(name="hybrid", machines="", why=why)
    each = _owned_node(groups[0][0], months)
    price = pool.usd_per_hour
    if each is None or price is None:
        return None, Course(
            name="hybrid", machines="", why="needs the price of a node, bought and rented"
        )
    rent = price * HOURS_PER_MONTH
    splits = tuple(split(curve, f.nodes, each, rent) for f in fleets)
    mine, extra = _base(groups, splits, months), total(beside)
    paid = tuple(
        own + splits[min(m // QUARTER, len(splits) - 1)].rented_share * rent + extra.usd
        for m, own in enumerate(mine.months or (Decimal(0),) * months)
    )
    last = splits[-1]
    shape = f"{last.base} owned, {last.peak} rented at the peak"
    nodes = tuple(f.nodes for f in fleets)
    course = Course(
        name="hybrid",
        machines=shape,
        nodes=nodes,
        months=paid,
        unpriced=(*mine.unpriced, *extra.unpriced),
    )
    return Mixed(splits=splits, curve=said), course


def _base(groups: Sequence[Sequence[Group]], splits: Sequence[Split], months: int) -> Course:
    """The owned part; nodes that were bought stay."""
    kept, every = 0, []
    for quarter, part in zip(groups, splits, strict=True):
        kept = max(kept, part.base)
        every.append([replace(quarter[0], nodes=kept)])
    return owned(every, months) if kept else Course(name="owned", machines="")


def _owned_node(group: Group, months: int) -> Decimal | None:
    """What one more owned node costs a month, its purchase less its residual spread over the
    months that are compared."""
    one = owning([replace(group, nodes=1)])
    if one is None:
        return None
    running = sum(
        (p.usd_per_month or Decimal(0) for p in one.parts if p.name not in SHARED), Decimal(0)
    )
    left = max(0, one.finance_months - months)
    financed = one.finance_per_month * min(one.finance_months, months)
    financed += outstanding(one.finance_per_month, one.finance_rate, left)
    return (one.upfront + financed - one.residual) / months + running


def _assumed(plan: Plan) -> tuple[Curve | None, str]:
    """Of the first service with a mean and a peak."""
    numbers = {e.quantity: e.value for e in plan.evidence}
    for work in plan.workloads:
        mean, peak = (
            numbers.get(f"{work.name}.load.requests_per_second.{n}") for n in ("mean", "peak")
        )
        if mean and peak:
            busy = busy_share(work, numbers)
            curve = assumed_curve(Decimal(repr(mean)), Decimal(repr(peak)), busy)
            power = significant(peak / mean - 1)
            said = (
                f"assumed: the load of {work.name} in its busy hours is peak × x ^ {power}, whose "
                "mean is the manifest's; state `load_duration` in the costs file"
            )
            return curve, said
    return None, ""
