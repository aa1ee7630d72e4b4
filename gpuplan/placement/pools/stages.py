"""How many nodes of a pool are needed for how long: services stay, runs end and give nodes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

from gpuplan.plan.model import record
from gpuplan.units import HOURS_PER_MONTH

MONTH = Decimal(HOURS_PER_MONTH)


@record
class Stage:
    """`nodes` are needed for all work that takes `hours` or longer; None: for what stays."""

    hours: Decimal | None
    nodes: int


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


def node_hours(of: Sequence[Stage], most: Decimal | None = None) -> Decimal:
    """The hours that nodes are paid: a month of those for what stays, the others until the run
    that needs them ends; `most`: counted up to so many hours."""
    hours, before = Decimal(0), 0
    for stage in of:
        lasts = MONTH if stage.hours is None else stage.hours
        hours += (stage.nodes - before) * (lasts if most is None else min(lasts, most))
        before = stage.nodes
    return hours


def staying(of: Sequence[Stage]) -> int:
    """The nodes that stay."""
    return next((stage.nodes for stage in of if stage.hours is None), 0)
