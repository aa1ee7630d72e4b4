"""Plan → the section Regions of the README, of a stack that is one of several regions'."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.emission import Emission, Section
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.regions import Member
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.markdown import code, escape
from gpuplan.units import format_seconds, format_usd


def emit(plan: Plan) -> Emission:
    """Nothing of a stack in one region."""
    regions = plan.regions
    if regions is None:
        return Emission()
    text = render(
        "markdown",
        "stack/regions.md.j2",
        name=Verbatim(code(regions.name)),
        rows=[tuple(map(Verbatim, _cells(plan, m))) for m in regions.members],
        left_out=[Verbatim(f"{escape(r.target)}: {escape(r.why)}") for r in regions.left_out],
        part=regions.part,
        amounts=Verbatim(escape(regions.amounts + (" (over budget)" * regions.over_budget))),
        home=next((Verbatim(escape(m.region)) for m in regions.members if m.home), None),
    )
    return Emission(sections=(Section("Regions", text),))


def _cells(plan: Plan, member: Member) -> Iterator[str]:
    own = " (this one)" if member.stack == plan.name else ""
    yield f"{escape(member.region)}{own}"
    yield code(f"../{member.stack}") if not own else code(".")
    yield format_seconds(member.latency_seconds) if member.latency_seconds else "–"
    yield escape(member.residency or "–")
    if member.usd_per_month is None:
        yield "unpriced"
        return
    least = "at least " if member.without else ""
    yield escape(f"{least}{format_usd(member.usd_per_month)}/month")
