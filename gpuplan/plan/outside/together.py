"""Stacks of one manifest in several regions, before and after: one comparison for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuplan.frozen import record
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.regions import Regions
from gpuplan.units import plural


@record
class RegionsDiff:
    """All regions of a manifest; None is a side without the manifest's stacks."""

    name: str
    base: Regions | None
    head: Regions | None

    @property
    def changed(self) -> bool:
        return self.base != self.head

    @property
    def sentence(self) -> str:
        """`europe in 2 regions: $6,289/month of a budget of $10,000/month, was $5,100/month; …`"""
        return "; ".join(self._parts())

    def _parts(self) -> Iterator[str]:
        now = self.head or self.base
        assert now is not None, "one side has it"
        if self.head is None:
            yield f"{self.name} is in no region any more: {_where(now)} go"
            return
        was = ""
        if self.base is not None and self.base.amounts != now.amounts:
            was = f", was {self.base.amounts}"
        over = " (over budget)" if now.over_budget else ""
        yield f"{self.name} in {plural(len(now.members), 'region')}: {now.amounts}{over}{was}"
        yield f"each of {_where(now)} serves {now.part} while another is lost"
        if self.base is not None:
            before, after = ({m.region: m for m in side.members} for side in (self.base, now))
            if joined := [n for n in after if n not in before]:
                yield f"{', '.join(joined)} joined"
            if left := [n for n in before if n not in after]:
                yield f"{', '.join(left)} left"
            homes = [[m.region for m in s.members if m.home] for s in (self.base, now)]
            if homes[0] and homes[1] and homes[0] != homes[1]:
                yield f"what is not divided moves from {homes[0][0]} to {homes[1][0]}"


def _where(regions: Regions) -> str:
    return ", ".join(m.region for m in regions.members)


def regions_diffs(base: Iterable[Plan], head: Iterable[Plan]) -> tuple[RegionsDiff, ...]:
    """Of each manifest in several regions, by name. All stacks of a side say the same; where
    somebody compiled a part of them, the first by name counts, and the others differ as stacks."""
    before, after = (_regions(side) for side in (base, head))
    return tuple(
        RegionsDiff(name=name, base=before.get(name), head=after.get(name))
        for name in sorted({*before, *after})
    )


def _regions(plans: Iterable[Plan]) -> dict[str, Regions]:
    by_name: dict[str, Regions] = {}
    for plan in sorted(plans, key=lambda plan: plan.name):
        if plan.regions is not None:
            by_name.setdefault(plan.regions.name, plan.regions)
    return by_name
