"""Several regions of which any one may be lost, over time: the cheapest two, three, … of those that
no limit leaves out (`gpuplan.plan.outside.regions`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal

from gpuplan.money.courses import Course, Fleet, by_the_hour, machines
from gpuplan.plan.outside.regions import MOST, Limits, Region, refused

Fleets = Callable[[str, Decimal], Sequence[Fleet] | str]  # target, share of the load


def courses(
    regions: Sequence[Region], limits: Limits, fleets: Fleets, months: int
) -> Iterator[Course]:
    """For two regions, three, … the cheapest that are allowed, each with its part of the load."""
    left_out = {r.target for r in refused(regions, limits)}
    allowed = [r.target for r in regions if r.target not in left_out]
    for count in range(2, min(len(allowed), MOST) + 1):
        share = Decimal(1) / (count - 1)
        planned = {target: fleets(target, share) for target in allowed}
        yield _cheapest(planned, count, months)


def _cheapest(planned: Mapping[str, Sequence[Fleet] | str], count: int, months: int) -> Course:
    name = f"{count} regions"
    by_target = {
        target: by_the_hour(target, fleet, months)
        for target, fleet in planned.items()
        if not isinstance(fleet, str)
    }
    priced = sorted((c.total, t) for t, c in by_target.items() if c.total is not None)
    if len(priced) < count:
        why = f"{len(priced)} of them can be planned and priced"
        return Course(name=name, machines="", why=why)
    chosen = [target for _, target in priced[:count]]
    every = [by_target[target] for target in chosen]
    words = []
    for target in chosen:
        fleet = planned[target]
        assert not isinstance(fleet, str), "it has a price"
        words.append(f"{target}: {machines(fleet[-1].pools)}")
    return Course(
        name=name,
        machines="; ".join(words),
        nodes=tuple(map(sum, zip(*(c.nodes for c in every), strict=True))),
        months=tuple(
            sum(each, Decimal(0)) for each in zip(*(c.months for c in every), strict=True)
        ),
        unpriced=tuple(dict.fromkeys(u for c in every for u in c.unpriced)),
    )
