"""What a way to run the work costs month by month, while the load grows and the fleet with it."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import accumulate

from gpuplan.frozen import record
from gpuplan.money.owned import Group, Owning, outstanding, owning
from gpuplan.money.parts import Part, total
from gpuplan.plan.model import NodePool, Plan
from gpuplan.units import HOURS_PER_MONTH

ZERO = Decimal(0)
QUARTER = 3  # months


@record
class Fleet:
    """The nodes of one quarter: `usd_per_month` of what stays, by the hour, None without a price of
    each; what stays unpriced. Runs that end cost `usd_of_runs` in all, at most `runs_per_month` in
    a month. `watts` are the most that they draw, None where nobody knows."""

    pools: tuple[NodePool, ...]
    usd_per_month: Decimal | None
    usd_of_runs: Decimal = ZERO
    runs_per_month: Decimal = ZERO
    unpriced: tuple[str, ...] = ()
    watts: Decimal | None = None

    @property
    def nodes(self) -> int:
        return sum(pool.node_count for pool in self.pools)


@record
class Course:
    """`months` are what is paid in each, negative where something is got back; () where it cannot
    be reckoned, and `why` says so. With `unpriced` parts they are floors. `carbon_tonnes` are of
    all months; None where no source states the grid's factor."""

    name: str
    machines: str
    nodes: tuple[int, ...] = ()
    months: tuple[Decimal, ...] = ()
    unpriced: tuple[str, ...] = ()
    why: str = ""
    carbon_tonnes: Decimal | None = None
    carbon_source: str = ""

    @property
    def total(self) -> Decimal | None:
        return sum(self.months, ZERO) if self.months else None

    @property
    def paid(self) -> tuple[Decimal, ...]:
        """All that was paid by the end of each month."""
        return tuple(accumulate(self.months))


def fleet(plan: Plan, extras: Sequence[Part]) -> Fleet:
    """A plan's nodes and what is paid beside them."""
    cost, beside = plan.cost, total(extras)
    month, again = cost.staying_usd_per_month, cost.recurring_usd_per_month or ZERO
    return Fleet(
        pools=plan.node_pools,
        usd_per_month=None if month is None or cost.unpriced else month + again + beside.usd,
        usd_of_runs=cost.usd_of_runs or ZERO,
        runs_per_month=cost.runs_usd_per_month - again,
        unpriced=(*cost.unpriced, *beside.unpriced),
        watts=None if cost.watts is None else Decimal(repr(cost.watts)),
    )


def machines(pools: Sequence[NodePool]) -> str:
    return ", ".join(pool.shape for pool in pools)


def by_the_hour(name: str, fleets: Sequence[Fleet], months: int) -> Course:
    """Nodes that are rented by the hour, each quarter those of its load. What ends runs once, from
    the first day."""
    priced = [f.usd_per_month for f in fleets]
    unpriced = tuple(dict.fromkeys(u for f in fleets for u in f.unpriced))
    shape = machines(fleets[-1].pools)
    if any(p is None for p in priced):
        return Course(name=name, machines=shape, why="unpriced", unpriced=unpriced)
    runs = _runs(fleets[0], months)
    paid = tuple((priced[_quarter(m, fleets)] or ZERO) + runs[m] for m in range(months))
    nodes = tuple(f.nodes for f in fleets)
    return Course(name=name, machines=shape, nodes=nodes, months=paid, unpriced=unpriced)


def _runs(first: Fleet, months: int) -> list[Decimal]:
    """What the runs cost in each month, until they are over."""
    left, monthly = first.usd_of_runs, []
    for _ in range(months):
        monthly.append(min(left, first.runs_per_month))
        left -= monthly[-1]
    return monthly


@record
class Tranche:
    """Nodes that are bought at the beginning of a month."""

    month: int
    upfront: Decimal
    finance_per_month: Decimal
    finance_months: int
    finance_rate: Decimal

    def owed(self, month: int) -> Decimal:
        """What is left to pay after a month, counted from 0."""
        left = self.month + self.finance_months - month - 1
        return outstanding(self.finance_per_month, self.finance_rate, max(0, left))


def owned(fleets: Sequence[Sequence[Group]], months: int, beside: Sequence[Part] = ()) -> Course:
    """`fleets` are the groups of nodes of each quarter. Nodes are bought when the load needs them;
    at the end the
    residual is got back, of late ones the same share, and what is still owed is paid."""
    wholes = [owning(groups) for groups in fleets]
    known = [w for w in wholes if w is not None]
    shape = ", ".join(f"{g.nodes} × {g.name}" for g in fleets[-1])
    if len(known) < len(wholes) or not known:
        why = "no price of a node is known: state `owned.purchase` in the costs file"
        return Course(name="owned", machines=shape, why=why)
    extra = total(beside)
    tranches = _tranches(known)
    paid = []
    for month in range(months):
        now = known[min(month // QUARTER, len(known) - 1)]
        bought = sum((t.upfront for t in tranches if t.month == month), ZERO)
        financed = sum(
            (
                t.finance_per_month
                for t in tranches
                if t.month <= month < t.month + t.finance_months
            ),
            ZERO,
        )
        paid.append(bought + financed + now.running_per_month + extra.usd)
    paid[-1] += sum((t.owed(months - 1) for t in tranches), ZERO) - known[-1].residual
    unpriced = dict.fromkeys([*known[-1].unpriced, *extra.unpriced])
    nodes = tuple(sum(g.nodes for g in groups) for groups in fleets)
    return Course(
        name="owned", machines=shape, nodes=nodes, months=tuple(paid), unpriced=tuple(unpriced)
    )


def _tranches(wholes: Sequence[Owning]) -> list[Tranche]:
    """What each quarter adds to the one before; what is there already is kept."""
    tranches, upfront, finance = [], ZERO, ZERO
    for number, whole in enumerate(wholes):
        more = max(ZERO, whole.upfront - upfront), max(ZERO, whole.finance_per_month - finance)
        if any(more):
            tranches.append(
                Tranche(
                    month=number * QUARTER,
                    upfront=more[0],
                    finance_per_month=more[1],
                    finance_months=whole.finance_months,
                    finance_rate=whole.finance_rate,
                )
            )
        upfront, finance = upfront + more[0], finance + more[1]
    return tranches


def break_even_month(owned: Course, other: Course) -> int | None:
    """The month, counted from 1, from whose end on owning has cost no more than the other; None
    where that is not before the last one, in which machines are sold and debts paid."""
    pairs = list(zip(owned.paid[:-1], other.paid[:-1], strict=True))
    dearer = [month for month, (mine, theirs) in enumerate(pairs) if mine > theirs]
    first = dearer[-1] + 2 if dearer else 1
    return first if first <= len(pairs) else None


def carbon_tonnes(
    fleets: Sequence[Fleet], months: int, grams_per_kwh: Decimal, factor: Decimal
) -> Decimal | None:
    """Of all months; `factor` is the load times the PUE. None where a fleet's power is unknown, or
    how much of the time it draws it, as of runs that end."""
    grams = ZERO
    for month in range(months):
        now = fleets[_quarter(month, fleets)]
        watts = now.watts
        if watts is None or now.usd_of_runs:
            return None
        grams += watts / 1000 * factor * HOURS_PER_MONTH * grams_per_kwh
    return grams / 10**6


def _quarter(month: int, fleets: Sequence[Fleet]) -> int:
    return min(month // QUARTER, len(fleets) - 1)
