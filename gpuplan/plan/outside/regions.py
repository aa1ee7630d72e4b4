"""Several regions that carry one load, each with a stack of its own, any one of which may be lost.

With N regions each must carry the load divided by N - 1: two double the capacity, three add half.
What lets a request or a file leave where it may not be is no question of price, so that regions are
left out before anything is priced.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from gpuplan.frozen import record
from gpuplan.units import HOURS_PER_MONTH, format_seconds, format_usd

MOST = 4  # regions that are tried together


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


@record
class Member:
    """A region that is taken, and its stack. `home` has the work that is not divided."""

    region: str
    stack: str
    home: bool = False
    latency_seconds: float | None = None
    residency: str | None = None
    usd_per_hour: Decimal | None
    usd_per_month: Decimal | None
    unpriced: tuple[str, ...] = ()
    unpriced_storage: tuple[str, ...] = ()

    @property
    def without(self) -> tuple[str, ...]:
        """All that its cost leaves out."""
        return (*self.unpriced, *(f"the checkpoints of {n}" for n in self.unpriced_storage))


@record
class Regions:
    """All regions of a manifest, the same in each of its stacks: those taken, by name, and those
    that are not, with the reason. `budget_usd_per_hour` is of all together."""

    name: str
    members: tuple[Member, ...]
    left_out: tuple[Refused, ...] = ()
    budget_usd_per_hour: Decimal | None = None

    @property
    def usd_per_month(self) -> Decimal | None:
        """The dearest month of the priced parts together; None where nothing is priced."""
        known = [m.usd_per_month for m in self.members if m.usd_per_month is not None]
        return sum(known, Decimal(0)) if known else None

    @property
    def unpriced(self) -> tuple[str, ...]:
        """`STACK: POOL` of each pool that no price is known for."""
        return tuple(f"{m.stack}: {pool}" for m in self.members for pool in m.unpriced)

    @property
    def over_budget(self) -> bool:
        known, limit = self.usd_per_month, self.budget_usd_per_hour
        return known is not None and limit is not None and known > limit * HOURS_PER_MONTH

    @property
    def amounts(self) -> str:
        """`at least $5,000/month of a budget of $9,000/month, without chat-a: h100 (unpriced)`"""
        if self.usd_per_month is None:
            return "unpriced"
        without = ", ".join(f"{m.stack}: {name}" for m in self.members for name in m.without)
        least = "at least " if without else ""
        text = f"{least}{format_usd(self.usd_per_month)}/month"
        if self.budget_usd_per_hour is not None:
            text += (
                f" of a budget of {format_usd(self.budget_usd_per_hour * HOURS_PER_MONTH)}/month"
            )
        return text + (f", without {without} (unpriced)" if without else "")

    @property
    def part(self) -> str:
        """What each carries while another is lost, in words."""
        return {2: "all", 3: "half", 4: "a third"}[len(self.members)] + " of the peak"


def refused(regions: Sequence[Region], limits: Limits) -> tuple[Refused, ...]:
    """Regions that a limit leaves out. What nobody says of one is no proof that it is within."""
    judged = (Refused(target=r.target, why="; ".join(_reasons(r, limits))) for r in regions)
    return tuple(item for item in judged if item.why)


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
