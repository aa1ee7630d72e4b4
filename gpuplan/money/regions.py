"""Several regions of which any one may be lost: filters before price, then capacity for N - 1.

With N regions each must carry the load divided by N - 1: two double the capacity, three add half.
What lets a request or a file leave where it may not be is no question of price, so that regions are
left out before anything is priced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal

from gpuplan.frozen import record
from gpuplan.money.courses import Course, Fleet, by_the_hour, machines
from gpuplan.units import format_seconds

MOST = 4  # regions that are tried together
Fleets = Callable[[str, Decimal], Sequence[Fleet] | str]  # target, share of the load


@record
class Region:
    """A target in a region (`gke:europe-west4`), with what a person says of it: how far users are,
    and whose law it is under. None is unsaid."""

    target: str
    latency_seconds: float | None = None
    residency: str | None = None


@record
class Limits:
    """`residency`: where data may be; () anywhere. None of latency: any."""

    latency_seconds: float | None = None
    residency: tuple[str, ...] = ()


@record
class Refused:
    target: str
    why: str


def refused(regions: Sequence[Region], limits: Limits) -> tuple[Refused, ...]:
    """Regions that a limit leaves out. What nobody says of one is no proof that it is within."""
    found = (Refused(target=r.target, why="; ".join(_reasons(r, limits))) for r in regions)
    return tuple(item for item in found if item.why)


def _reasons(region: Region, limits: Limits) -> Iterator[str]:
    most = limits.latency_seconds
    if most is not None and region.latency_seconds is None:
        yield "nobody says its latency"
    elif most is not None and (region.latency_seconds or 0.0) > most:
        yield f"{format_seconds(region.latency_seconds or 0.0)} away, of {format_seconds(most)}"
    if limits.residency and region.residency is None:
        yield "nobody says where its data is"
    elif limits.residency and region.residency not in limits.residency:
        yield f"data in {region.residency}, and not in {' or '.join(limits.residency)}"


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
    found = {
        target: by_the_hour(target, fleet, months)
        for target, fleet in planned.items()
        if not isinstance(fleet, str)
    }
    priced = sorted((c.total, t) for t, c in found.items() if c.total is not None)
    if len(priced) < count:
        why = f"{len(priced)} of them can be planned and priced"
        return Course(name=name, machines="", why=why)
    chosen = [target for _, target in priced[:count]]
    every = [found[target] for target in chosen]
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
