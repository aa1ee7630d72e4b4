"""`gpuplan cost` on a terminal, and as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from gpuplan.money.bill import Bill, WorkBill
from gpuplan.money.parts import Part
from gpuplan.money.ways import Way
from gpuplan.plan.costs.units import BASES
from gpuplan.plan.serialize import to_json
from gpuplan.render.text import COLUMNS, printable, width, wrapped
from gpuplan.units import format_seconds, format_usd, plural, significant

AMOUNT = 14  # columns of a price


def text(bill: Bill) -> str:
    """The whole bill, in lines of 80 columns."""
    blocks = [_head(bill), "\n".join(_parts(bill))]
    blocks += ["\n".join(_work(work)) for work in bill.work]
    if bill.ways:
        blocks.append("\n".join(_ways(bill.ways)))
    notes = [*_notes(bill)]
    if notes:
        blocks.append("\n".join(notes))
    return "\n\n".join(blocks) + "\n"


def tree(bill: Bill) -> Any:
    """The same as data: amounts are numbers of USD, absent where nobody knows one."""
    data: dict[str, Any] = to_json(bill)
    total = bill.total
    data["usd_per_month"] = float(total.usd)
    data["unpriced"] = list(total.unpriced)
    data["at_least"] = bool(total.unpriced)
    return data


def _head(bill: Bill) -> str:
    total = bill.total
    hour = "" if bill.usd_per_hour is None else f"{format_usd(bill.usd_per_hour)}/h, "
    runs = "" if bill.usd_of_runs is None else f"; {format_usd(bill.usd_of_runs)} for what ends"
    return f"{printable(bill.name)}   {hour}{total.at_least} a month{runs}"


def _parts(bill: Bill) -> Iterator[str]:
    for part in bill.parts:
        yield from row(_amount(part), part.name, f"{part.what}{_origin(part)}")
    yield from row(format_usd(bill.total.usd), "a month", _unpriced(bill.total.unpriced))


def _unpriced(names: Sequence[str]) -> str:
    return f"and what is unpriced: {', '.join(names)}" if names else "all parts are priced"


def _amount(part: Part) -> str:
    return part.state if part.usd_per_month is None else format_usd(part.usd_per_month)


def _origin(part: Part) -> str:
    if part.given:
        return ", as you say"
    return f"; price of {part.when}" if part.when and part.when not in part.what else ""


def row(amount: str, name: str, words: str) -> Iterator[str]:
    """Amount, name and words, which go on below themselves."""
    lead = " " * max(0, AMOUNT - width(amount)) + amount + "  "
    yield from hanging(lead, f"{printable(name)}: {printable(words)}", AMOUNT + 4)


def hanging(lead: str, words: str, indent: int) -> Iterator[str]:
    """`words` behind `lead`, and further lines below them."""
    first, *rest = wrapped(words, COLUMNS - width(lead))
    yield f"{lead}{first}"
    if rest:
        lines = wrapped(" ".join(rest), COLUMNS - indent)
        yield from (f"{' ' * indent}{line}" for line in lines)


def _work(work: WorkBill) -> Iterator[str]:
    price = "unpriced" if work.usd_per_hour is None else f"{format_usd(work.usd_per_hour)}/h"
    month = "" if work.usd_per_month is None else f", {format_usd(work.usd_per_month)}/month"
    yield f"{printable(work.name)}   {price}{month}"
    for basis, units in groupby(work.units, lambda unit: unit.basis):
        line = " · ".join(unit.text for unit in units)
        words = f"{BASES[basis]}: {line}" if BASES[basis] else line
        yield from (f"  {part}" for part in wrapped(words, COLUMNS - 2))
    if work.idle_usd_per_month is not None:
        start = "" if work.start_seconds is None else (
            f"; a start loads weights for {format_seconds(work.start_seconds)}"
        )  # fmt: skip
        hours = significant(float(work.idle_hours_per_day))
        idle = (
            f"idle {hours} h a day: {format_usd(work.idle_usd_per_month)} a month, which scaling "
            f"to zero saves where its nodes go{start}"
        )
        yield from (f"  {part}" for part in wrapped(idle, COLUMNS - 2))
    if work.usd_per_interruption is not None:
        yield f"  each interruption adds {format_usd(work.usd_per_interruption)}"


def _ways(ways: Sequence[Way]) -> Iterator[str]:
    yield "other ways to pay for the nodes"
    for pool, group in groupby(ways, lambda way: way.pool):
        yield f"  {printable(pool)}"
        for way in group:
            yield from hanging(f"    {way.kind:10}", _way(way), 14)


def _way(way: Way) -> str:
    lost = f"{way.interrupted} of such machines are taken back in a month"
    if way.usd_per_hour is None:
        return f"{way.state}, {lost}" if way.interrupted else way.state
    said = [f"{format_usd(way.usd_per_hour)}/h"]
    if way.chosen:
        said.append("planned")
    if way.break_even_share is not None:
        said.append(f"pays from {float(way.break_even_share) * 100:.0f} % of the hours on")
    if way.break_even_interruptions is not None:
        times = significant(float(way.break_even_interruptions))
        while_paid = "of the run" if way.ends else "a month"
        said.append(f"pays up to {times} interruptions {while_paid}")
    if way.interrupted:
        said.append(lost)
    if way.when:
        said.append(f"price of {way.when}")
    return ", ".join(said)


def _notes(bill: Bill) -> Iterator[str]:
    for old in bill.old:
        yield f"old price: {printable(old.name)}, of {old.when}, {plural(old.days, 'day')} ago"
    if bill.undated:
        names = ", ".join(printable(name) for name in bill.undated)
        yield from wrapped(f"prices without a date: {names}", COLUMNS)
