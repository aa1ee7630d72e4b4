"""How many nodes of a pool are needed for how long: services stay, runs end and give nodes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal

from gpuplan.plan.costs.recurrence import most_starts
from gpuplan.plan.model import record
from gpuplan.units import HOURS_PER_MONTH

MONTH = Decimal(HOURS_PER_MONTH)


@record
class Stage:
    """`nodes` are needed for all work of its kind that takes `hours` or longer; None: for what
    stays, which is of both kinds: what ends, and what recurs, with its hours of a month."""

    hours: Decimal | None
    nodes: int
    recurs: bool = False


def stages(
    hours: Iterable[Decimal | None], nodes: Callable[[Decimal | None], int], total: int
) -> tuple[Stage, ...]:
    """One for each of the `hours` that work of a pool takes, what stays first, then the longest;
    `nodes` says how many it takes for all work up to that one, `total` for all of it."""
    different = set(hours)
    runs = sorted((h for h in different if h is not None), reverse=True)
    ordered = [*([None] if None in different else []), *runs]
    made: list[Stage] = []
    for place, until in enumerate(ordered):
        needed = total if place == len(ordered) - 1 else min(total, nodes(until))
        made.append(Stage(hours=until, nodes=max(needed, made[-1].nodes if made else 0)))
    return tuple(made)


def hours_of(run_hours: Decimal | None, schedule: str | None) -> Decimal | None:
    """What a stage says of work that takes `run_hours`, alone or as often as its schedule has it in
    a month, one run after the other."""
    if run_hours is None or schedule is None:
        return run_hours
    return max(run_hours, min(MONTH, run_hours * most_starts(schedule)))


def both(ending: Sequence[Stage], recurring: Sequence[Stage], total: int) -> tuple[Stage, ...]:
    """The stages of what ends and of what recurs, each with what stays, on a pool of `total`."""
    again = (replace(s, recurs=True) for s in recurring if s.hours is not None)
    return (*ending, *again, Stage(hours=Decimal(0), nodes=total))


def node_hours(of: Sequence[Stage], most: Decimal | None = None) -> Decimal:
    """The hours that nodes are paid: a month of those for what stays, the others until the run
    that needs them ends; `most`: counted up to so many hours of each node. When what recurs runs
    beside what ends, nobody knows: they are taken to run at different times."""
    hours = staying(of) * (MONTH if most is None else min(MONTH, most))
    hours += passing_hours(of, recurs=False, most=most) + passing_hours(of, recurs=True, most=most)
    return hours if most is None else min(hours, max((s.nodes for s in of), default=0) * most)


def passing_hours(of: Sequence[Stage], *, recurs: bool, most: Decimal | None = None) -> Decimal:
    """Those of nodes that do not stay, for work of one kind."""
    hours, before = Decimal(0), staying(of)
    for stage in of:
        if stage.hours is not None and stage.recurs is recurs:
            hours += (stage.nodes - before) * (
                stage.hours if most is None else min(stage.hours, most)
            )
            before = stage.nodes
    return hours


def staying(of: Sequence[Stage]) -> int:
    """The nodes that stay."""
    return next((stage.nodes for stage in of if stage.hours is None), 0)
