"""Several regions that carry one load: which are taken and why not others, over the plan's tree."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from gpuplan.plan.outside.regions import Member, Refused, Regions
from gpuplan.plan.wording import Tree
from gpuplan.units import format_seconds, format_usd

NAME = "regions"
MONEY = ("usd_per_hour", "usd_per_month")
TUPLES = ("unpriced", "unpriced_storage")


def short(plan: Tree) -> str:
    """A line of all; empty where the plan is of one region."""
    if not plan.get("regions"):
        return ""
    regions = _read(plan["regions"])
    where = ", ".join(m.region for m in regions.members)
    return f"regions: gpuplan explain STACK regions\n  {where}: {regions.amounts}\n"


def whole(plan: Tree) -> str:
    """What each carries, by which formula; what it costs; why others are left out."""
    return "\n".join(_lines(_read(plan["regions"]), plan["name"])) + "\n"


def _lines(regions: Regions, stack: str) -> Iterator[str]:
    count = len(regions.members)
    yield f"{regions.name} in {count} regions: {regions.amounts}"
    yield f"  any one may be lost: each is planned for peak / ({count} - 1), {regions.part},"
    yield f"  and for mean / {count}; together {count} / ({count} - 1) of the capacity of one"
    for member in regions.members:
        yield _member(member, here=member.stack == stack)
    home = [m.region for m in regions.members if m.home]
    if home:
        yield f"  what is not divided (runs, batches, notebooks) is in {home[0]} alone"
    if regions.left_out:
        yield "  not taken"
        yield from (f"    {item.target:<16} {item.why}" for item in regions.left_out)


def _member(member: Member, *, here: bool) -> str:
    usd = member.usd_per_month
    least = "at least " if member.without else ""
    said = ["unpriced" if usd is None else f"{least}{format_usd(usd)} in the dearest month"]
    if member.latency_seconds is not None:
        said.append(f"{format_seconds(member.latency_seconds)} away")
    if member.residency is not None:
        said.append(f"data in {member.residency}")
    return f"    {member.region:<16} {', '.join([*said, *(['this stack'] if here else [])])}"


def _read(tree: Tree) -> Regions:
    limit = tree.get("budget_usd_per_hour")
    return Regions(
        name=tree["name"],
        members=tuple(map(_read_member, tree["members"])),
        left_out=tuple(Refused(**item) for item in tree.get("left_out", ())),
        budget_usd_per_hour=None if limit is None else Decimal(str(limit)),
    )


def _read_member(tree: Tree) -> Member:
    money = {k: None if tree.get(k) is None else Decimal(str(tree[k])) for k in MONEY}
    lists = {k: tuple(tree.get(k) or ()) for k in TUPLES}
    return Member(**{**tree, **money, **lists})
