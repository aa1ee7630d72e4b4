"""What a stack costs: its machines and the parts beside them, what a unit of its work costs, how
else its machines could be paid, and which prices are old."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal

from gpuplan.frozen import record
from gpuplan.money.extras import NOTHING, Extras, extra_parts, provider_of
from gpuplan.money.parts import Part, Total, age_days, last_day, total
from gpuplan.money.ways import Lists, Way, ways
from gpuplan.plan.costs.units import UnitCost, idle_hours, unit_costs, usd_of_idle_hours
from gpuplan.plan.model import NodePool, Plan, Workload
from gpuplan.units import HOURS_PER_MONTH, format_usd


@record
class WorkBill:
    """`idle_usd_per_month`: what the hours without requests cost, which scaling to zero would save
    where its nodes go, less `start_seconds` of each start. An interruption costs
    `usd_per_interruption`, as the plan says."""

    name: str
    task: str
    usd_per_hour: Decimal | None
    usd_per_month: Decimal | None
    units: tuple[UnitCost, ...]
    idle_hours_per_day: Decimal = Decimal(0)
    idle_usd_per_month: Decimal | None = None
    start_seconds: float | None = None
    usd_per_interruption: Decimal | None = None


@record
class OldPrice:
    name: str
    when: str
    days: int


@record
class Bill:
    """`usd_per_hour` is of the machines while all work runs; a month is the dearest."""

    name: str
    usd_per_hour: Decimal | None
    usd_of_runs: Decimal | None
    parts: tuple[Part, ...]
    work: tuple[WorkBill, ...]
    ways: tuple[Way, ...]
    old: tuple[OldPrice, ...]
    undated: tuple[str, ...]

    @property
    def total(self) -> Total:
        return total(self.parts)


def bill(
    plan: Plan,
    lists: Lists,
    said: Extras = NOTHING,
    *,
    as_of: date,
    oldest_days: int,
) -> Bill:
    """`plan` with its evidence. Prices older than `oldest_days` on `as_of` are named."""
    numbers = {e.quantity: e.value for e in plan.evidence}
    parts = (*_machines(plan, said), *extra_parts(plan, provider_of(plan), lists.tariffs, said))
    others = tuple(ways(plan, lists))
    return Bill(
        name=plan.name,
        usd_per_hour=plan.cost.usd_per_hour,
        usd_of_runs=plan.cost.usd_of_runs,
        parts=parts,
        work=tuple(_work(w, numbers) for w in plan.workloads),
        ways=others,
        old=tuple(_old(parts, others, as_of, oldest_days)),
        undated=tuple(p.name for p in parts if p.state == "priced" and not (p.when or p.given)),
    )


def _machines(plan: Plan, said: Extras) -> Iterator[Part]:
    """The nodes, each pool's by itself where nothing ends; the priced ones add up to the month of
    `plan.cost`. Then what interruptions add."""
    cost = plan.cost
    for pool in plan.node_pools:
        if pool.usd_per_hour is None:
            yield Part(name=f"nodes {pool.name}", what=pool.shape, state="unpriced")
        elif not cost.runs_are_paid:  # none ends, or on GPUs that are paid for anyway
            yield Part(
                name=f"nodes {pool.name}",
                what=f"{pool.shape} at {pool.price}",
                state="priced",
                usd_per_month=pool.usd_per_hour * pool.node_count * HOURS_PER_MONTH,
                source=pool.priced_at or cost.price_source,
                when=_dated(pool),
                given=pool.priced_at is None,
            )
    if cost.runs_are_paid:
        yield from _with_runs(plan)
    stored = () if said.storage_usd_per_gb_month is not None else cost.unpriced_storage
    for name in stored:  # else they are among the volumes
        yield Part(name=f"checkpoints of {name}", what="storage", state="unpriced")
    yield from _interruptions(plan, said)


def _with_runs(plan: Plan) -> Iterator[Part]:
    """What stays, and what ends or recurs in its dearest month: they share nodes."""
    cost, again = plan.cost, plan.cost.recurring_usd_per_month or Decimal(0)
    runs = {w.node_pool for w in plan.workloads if w.usd_per_run is not None}
    staying = {w.node_pool for w in plan.workloads if w.usd_per_run is None}
    if cost.staying_usd_per_month:
        yield Part(
            name="nodes that stay",
            what=", ".join(
                f"{p.shape}, shared with runs" if p.name in runs else p.shape
                for p in plan.node_pools
                if p.name in staying
            ),
            state="priced",
            usd_per_month=cost.staying_usd_per_month,
            source=cost.price_source,
            when=cost.price_date,
        )
    each = [
        f"{w.name} {w.starts_per_month} times"
        for w in plan.workloads
        if w.starts_per_month is not None
    ]
    kinds = (
        ("runs that recur", f"in the month with most starts: {', '.join(each)}", again),
        (
            "runs that end",
            f"in the dearest month, of {format_usd(cost.usd_of_runs or Decimal(0))} in all",
            cost.runs_usd_per_month - again,
        ),
    )
    for name, what, usd in kinds if cost.usd_per_hour is not None else ():
        if not usd:
            continue
        yield Part(
            name=name,
            what=what,
            state="priced",
            usd_per_month=usd,
            source=cost.price_source,
            when=cost.price_date,
        )


def _interruptions(plan: Plan, said: Extras) -> Iterator[Part]:
    for work in plan.workloads:
        if work.interruption is None:
            continue
        name, each = f"interruptions of {work.name}", work.interruption.usd
        if said.interruptions is None or each is None:
            cost = f"each costs {format_usd(each)}" if each else "each costs nobody knows what"
            what = f"{cost}; how often is unsaid"
            yield Part(name=name, what=what, state="unpriced")
            continue
        times = said.interruptions * work.members
        yield Part(
            name=name,
            what=f"{times} a month, {format_usd(each)} each",
            state="priced",
            usd_per_month=each * times,
            source="costs file: interruptions",
            given=True,
        )


def _dated(pool: NodePool) -> str:
    """The date of a price, the last word of where it is listed (`NodePool.priced_at`)."""
    when = (pool.priced_at or "").rpartition(", ")[2]
    return when if last_day(when) else ""


def _work(work: Workload, numbers: Mapping[str, float]) -> WorkBill:
    return WorkBill(
        name=work.name,
        task=work.task,
        usd_per_hour=work.usd_per_hour,
        usd_per_month=work.usd_per_month,
        units=unit_costs(work, numbers),
        idle_hours_per_day=idle_hours(work, numbers),
        idle_usd_per_month=usd_of_idle_hours(work, numbers),
        start_seconds=numbers.get(f"{work.name}.load_seconds"),
        usd_per_interruption=work.interruption.usd if work.interruption else None,
    )


def _old(
    parts: Sequence[Part], others: Sequence[Way], as_of: date, oldest_days: int
) -> Iterator[OldPrice]:
    prices = [(p.name, p.when) for p in parts if p.state == "priced"]
    prices += [(f"{w.kind} of {w.pool}", w.when) for w in others if w.state == "priced"]
    for name, when in dict(prices).items():
        days = age_days(when, as_of)
        if days is not None and days > oldest_days:
            yield OldPrice(name=name, when=when, days=days)
