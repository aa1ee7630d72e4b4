"""Rules about money."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

from gpuplan.money.parts import age_days
from gpuplan.plan.costs.units import ENDS
from gpuplan.plan.model import Alternative, Workload
from gpuplan.policy.api import Finding, Subject
from gpuplan.units import HOURS_PER_MONTH, format_usd


def per_month(usd_per_hour: Decimal) -> str:
    return f"{format_usd(usd_per_hour * HOURS_PER_MONTH)} a month"


def over_time(usd_per_hour: Decimal, workload: Workload) -> tuple[Decimal, str]:
    """An hourly price as its average over the dearest month, and in words: of what ends, as much as
    the whole run has."""
    if workload.run_hours is None:
        return usd_per_hour, per_month(usd_per_hour)
    part = workload.run_hours * workload.runs_per_month / HOURS_PER_MONTH
    if workload.starts_per_month is not None:
        return usd_per_hour * part, f"{per_month(usd_per_hour * part)}, as often as it recurs"
    return usd_per_hour * part, f"{format_usd(usd_per_hour * workload.run_hours)} of the run"


def saving(workload: Workload, candidate: Alternative) -> Fraction | None:
    """The part of the workload's cost that the candidate would save (negative when it is dearer);
    None when it failed a gate or when the two cannot be compared."""
    own, flip = workload.usd_per_hour, candidate.flip
    if candidate.shortfalls or candidate.gate not in ("cost", "override") or not own:
        return None
    if workload.task in ENDS:  # an hourly price says nothing about what the whole run costs
        if flip is not None and flip.quantity == "usd_per_gpu_hour" and flip.needed > 0:
            return 1 - Fraction(str(flip.now)) / Fraction(str(flip.needed))
        return None
    if candidate.usd_per_hour is None:
        return None
    saved = candidate.saves_usd_per_hour
    if saved is not None:
        return Fraction(saved) / Fraction(own)
    return 1 - Fraction(candidate.usd_per_hour) / Fraction(own)


def cheapest(workload: Workload) -> tuple[Fraction, Alternative] | None:
    """The candidate that saves most, and what part; None when none can be compared."""
    every = ((saving(workload, a), a) for a in workload.alternatives)
    savings = [(part, candidate) for part, candidate in every if part is not None]
    return min(savings, key=lambda pair: (-pair[0], pair[1].gpu), default=None)


def over_provisioned(subject: Subject) -> Iterator[Finding]:
    """A cheaper GPU would do the same work within the same objectives.

    Why: the largest GPU is the reflex, and nobody sees the difference until the invoice.

    Looks at: the candidates that the sizing weighed and kept in the plan. A candidate counts when
    it passed every gate (memory, latency, throughput, precision), so that only cost or an override
    decided against it. Runs that end are compared by their whole cost, not by the hour. And each
    pool of rented nodes: whether a provider that the manifest allows lists a machine with the same
    GPUs, and as many cores and as much memory, for less. Pools of one place are one cluster: they
    move together, to where none of them costs more.

    Threshold: the saving is more than `minimum_saving_percent` of the workload's cost. Below that,
    familiarity and spare capacity are worth more than the difference.

    Fix: remove the override that forces the GPU, or add the cheaper one to `platform.gpus`; waive
    the finding with its reason where the dearer one is meant (capacity that is already paid for).

    Silent: when the workload or the candidate is unpriced: a saving is never guessed. Of machines
    elsewhere only lists with a date of their own count, and none where the manifest has a price of
    its own for the GPU.
    """
    yield from _listed_for_less(subject)
    for workload in subject.plan.workloads:
        best, own = cheapest(workload), workload.usd_per_hour
        if best is None or own is None:
            continue
        part, candidate = best
        if part * 100 > subject.thresholds["minimum_saving_percent"]:
            saved, amount = over_time(own * part.numerator / part.denominator, workload)
            yield Finding(
                resource=f"workload/{workload.name}",
                path=f"workloads[{workload.name}].gpu",
                message=f"{workload.name} runs on {workload.gpu_count} × {workload.gpu}; "
                f"{candidate.gpu_count} × {candidate.gpu}{_machine(candidate)} meets the same "
                f"objectives and saves {amount} ({_share(part)})"
                f"{_risk(subject, workload, candidate)}",
                help=f"use {candidate.gpu}, or waive this with the reason for {workload.gpu}",
                requested=float(own),
                capacity=max(0.0, float(own - own * part.numerator / part.denominator)),
                unit="USD/h",
                usd_per_hour=round(float(saved), 6),
                origin=workload.origin,
            )


def _machine(candidate: Alternative) -> str:
    """On which nodes, whose, and by which list."""
    if candidate.node_type is None or candidate.rented is None:
        return ""
    listed = f"; {candidate.priced_at}" if candidate.priced_at else ""
    return f" on {candidate.node_type} ({candidate.rented}{listed})"


def _risk(subject: Subject, workload: Workload, candidate: Alternative) -> str:
    pool = next((p for p in subject.plan.node_pools if p.name == workload.node_pool), None)
    moved = _moved(pool.rented, candidate.rented) if pool else ""
    return f"; risk: {moved}" if moved else ""


def _moved(here: str | None, elsewhere: str | None) -> str:
    """What a move to nodes elsewhere asks for; "" where it is no move."""
    if not here or not elsewhere:
        return ""
    (provider, *place), (other, *away) = here.split(", "), elsewhere.split(", ")
    if provider != other:
        return f"{other} is another provider: quota, images and data have to be there first"
    if place and away and place[0] != away[0]:
        return f"{away[0]} is another region: quota, images and data have to be there first"
    return ""


def _listed_for_less(subject: Subject) -> Iterator[Finding]:
    """Pools whose machine somebody else has for less."""
    for pool in subject.plan.node_pools:
        other, own = pool.cheaper, pool.usd_per_hour
        if other is None or not own:
            continue
        saved = (own - other.usd_per_hour) * pool.node_count
        part = 1 - Fraction(other.usd_per_hour) / Fraction(own)
        if part * 100 > subject.thresholds["minimum_saving_percent"]:
            moved = _moved(pool.rented, other.rented)
            yield Finding(
                resource=f"node_pool/{pool.name}",
                path=f"node_pools[{pool.name}].cheaper",
                message=f"{pool.name} is {pool.node_count} × {pool.node_type} ({pool.rented}) at "
                f"{format_usd(own)}/h each; {other.node_type} ({other.rented}; {other.priced_at}) "
                f"has the same GPUs at {format_usd(other.usd_per_hour)}/h and saves "
                f"{per_month(saved)} while all run ({_share(part)})"
                + (f"; risk: {moved}" if moved else ""),
                help="name it in `platform.nodes` with its provider and region, or waive this with "
                "the reason to stay",
                requested=float(own * pool.node_count),
                capacity=float(other.usd_per_hour * pool.node_count),
                unit="USD/h",
                usd_per_hour=round(float(saved), 6),
                origin=pool.origin,
            )


def _share(part: Fraction) -> str:
    return f"{float(part) * 100:.0f} %" if part <= 1 else "with nodes that nobody needs then"


def budget(subject: Subject) -> Iterator[Finding]:
    """The plan costs more than its budget, or nobody can tell.

    Why: the budget is the one number that people outside the team agreed on.

    Looks at: the dearest month of the priced node pools, the pools without a price, and a month of
    the manifest's budget (`platform.budget`). Of a manifest in several regions all
    of their stacks are judged together, in the one that is named first. Work that ends counts with
    the time that it takes, and with its checkpoints' storage where that has a price; work with a
    schedule as often as it starts in the month that has most of its days.

    Threshold: the budget itself; exactly the budget is within it. A pool without a price is never
    counted as free: with a budget set, the finding then says what is known, as a warning, or as an
    error when the priced part alone is too much.

    Fix: a smaller or cheaper plan, a price for the pool (`platform.prices`), or another budget.

    Silent: without a budget.
    """
    regions = subject.plan.regions
    if regions is not None and regions.members[0].stack != subject.plan.name:
        return
    cost = subject.plan.cost if regions is None else regions
    limit = cost.budget_usd_per_hour
    known = None if cost.usd_per_month is None else cost.usd_per_month / HOURS_PER_MONTH
    if limit is None:
        return
    over = known is not None and known > limit
    pools = ", ".join(cost.unpriced) or ("" if known is not None else "all node pools")
    if not over and not pools:
        return
    amount = per_month(known) if known is not None else "an unknown amount"
    judged = f"the budget is {per_month(limit)}"
    what = "the plan costs" if regions is None else f"all regions of {regions.name} cost"
    if over:
        message = f"{what} {amount}; {judged}"
        message += f", and {pools} is not even priced" if pools else ""
    else:
        message = f"{what} {amount} plus {pools}, which is unpriced; {judged}"
    yield Finding(
        resource="stack/cost",
        path="cost.usd_per_hour",
        message=message,
        help="set a price under platform.prices"
        if pools
        else "shrink the plan or raise the budget",
        requested=None if known is None else float(known),
        capacity=float(limit),
        unit="USD/h",
        usd_per_hour=float(known - limit) if over and known is not None else None,
        level=None if over else "warning",
    )


def price_age(subject: Subject) -> Iterator[Finding]:
    """The plan was chosen by prices that are old.

    Why: providers cut and raise prices of GPUs by tens of percent at a time; a choice, a budget and
    a break-even that rest on last year's list may all be wrong.

    Looks at: the date of the oldest list price among the machines that the plan uses, on the day
    of the check. Prices of the manifest have no date.

    Threshold: more than `maximum_days`. A paper of May 2025 reckons with 98.32 USD an hour for a
    p5.48xlarge (Lenovo Press LP2225), the list of July 2026 has 55.04.

    Fix: `gpuplan catalog update` with a newer list, or the price that is paid under
    `platform.prices`; then compile again.

    Silent: where no listed price is used, or none has a date.
    """
    when, limit = subject.plan.cost.price_date, subject.thresholds["maximum_days"]
    days = None if subject.as_of is None else age_days(when, subject.as_of)
    if days is not None and days > limit:
        yield Finding(
            resource="stack/cost",
            path="cost.price_date",
            message=f"the oldest price of the plan is of {when}, {days:,} days ago",
            help="read a newer list, or state the price that is paid under platform.prices",
            requested=days,
            capacity=limit,
            unit="days",
        )
