"""`gpuplan compare` on a terminal, and as data."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from gpuplan.money.compare import Compared
from gpuplan.money.courses import Course
from gpuplan.money.tornado import Bar, deciding
from gpuplan.plan.serialize import to_json
from gpuplan.render.text import printable
from gpuplan.report.facts.catalog import table
from gpuplan.report.money.bill import hanging
from gpuplan.report.money.bought import amount
from gpuplan.units import format_usd, plural, significant

SHOWN = 8  # bars of the tornado on a terminal


def text(compared: Compared) -> str:
    blocks = [
        f"{printable(compared.name)}   over {plural(compared.months, 'month')}, in cash",
        _table(compared).rstrip("\n"),
        "\n".join(_machines(compared)),
        "\n".join(verdict(compared)),
    ]
    if compared.bars:
        blocks.append("\n".join(_tornado(compared)))
    blocks.append("\n".join(_inputs(compared)))
    return "\n\n".join(block for block in blocks if block) + "\n"


def tree(compared: Compared) -> Any:
    """As data: amounts are numbers of USD, absent where nobody knows one."""
    data: dict[str, Any] = to_json(compared)
    for course, row in zip(compared.courses, data["courses"], strict=True):
        row["total"] = None if course.total is None else float(course.total)
        row["at_least"] = bool(course.unpriced)
    data["deciding"] = list(deciding(compared.bars))
    return data


def _table(compared: Compared) -> str:
    head = ("way", "nodes", "month 1", f"{compared.months} months", "month 13", "CO2e")
    rows = [_row(course) for course in compared.courses]
    return table(head, rows)


def _row(course: Course) -> tuple[str, ...]:
    if not course.months:
        return (printable(course.name), "–", "–", course.why.partition(":")[0][:24], "–", "–")
    year = course.months[12] if len(course.months) > 12 else None
    carbon = course.carbon_tonnes
    return (
        printable(course.name),
        counts(course),
        format_usd(course.months[0]),
        whole(course),
        "–" if year is None else signed(year),
        "–" if carbon is None else f"{significant(float(carbon))} t",
    )


def counts(course: Course) -> str:
    """`4 to 6`, of the first and the last quarter."""
    first, last = course.nodes[0], course.nodes[-1]
    return f"{first}" if first == last else f"{first} to {last}"


def whole(course: Course) -> str:
    floor = "≥ " if course.unpriced else ""
    return "unpriced" if course.total is None else f"{floor}{format_usd(course.total)}"


def _machines(compared: Compared) -> Iterator[str]:
    for course in compared.courses:
        name = printable(course.name)
        yield from hanging(f"  {name}: ", printable(course.why or course.machines), 6)
        if course.unpriced:
            names = ", ".join(course.unpriced)
            yield from hanging("      ", f"at least, without {printable(names)}", 6)


def left_out(compared: Compared) -> Iterator[str]:
    """Regions that a limit leaves out, whatever they cost."""
    for item in compared.refused:
        yield f"{item.target} is left out: {item.why}"


def verdict(compared: Compared) -> Iterator[str]:
    """The sentences that a person decides by."""
    best = compared.best
    mine = next((c for c in compared.courses if c.name == "owned"), None)
    if best is None:
        yield "nothing that is rented has a price"
    else:
        total = next(c for c in compared.courses if c.name == best)
        yield f"cheapest without owning: {best}, {whole(total)}"
    if mine is not None and mine.months and best is not None:
        yield _owning(compared, mine, best)
    if compared.mixed is not None and compared.mixed.splits[-1].quantile > 1:
        yield "hybrid: no node pays to own, even one that is always needed"
    elif compared.mixed is not None:
        last = compared.mixed.splits[-1]
        percent = significant(float(last.quantile) * 100)
        yield (
            f"hybrid: a node pays to own from {percent} % of the hours on: {last.base} owned, "
            f"{last.peak} rented at the peak"
        )
    yield from (printable(words) for words in left_out(compared))
    names = deciding(compared.bars)
    if compared.bars:
        yield "what flips the decision: " + (", ".join(names) or "no input within its range")


def _owning(compared: Compared, mine: Course, best: str) -> str:
    """When owning has cost no more, in cash."""
    if compared.break_even is not None:
        when = f"month {compared.break_even}{' at the earliest' if mine.unpriced else ''}"
        return f"owning costs no more than {best} from the end of {when}"
    other = next(c.total for c in compared.courses if c.name == best)
    if mine.total is not None and other is not None and mine.total <= other:
        return f"owning costs no more than {best} once the machines are sold at the end"
    return f"owning costs more than {best} all through these {compared.months} months"


def _tornado(compared: Compared) -> Iterator[str]:
    yield f"owning less {compared.best}, one input at a time from its low to its high"
    widest = max(bar.width for bar in compared.bars)
    for bar in compared.bars[:SHOWN]:
        length = max(1, round(float(bar.width / widest) * 20))
        flips = "  flips" if bar.flips else ""
        words = f"{ends(bar)}: {signed(bar.at_low)} to {signed(bar.at_high)}{flips}"
        yield from hanging(f"  {'█' * length:20}  ", words, 24)


def signed(usd: Decimal) -> str:
    """`-$3,827,974`."""
    return f"{'-' if usd < 0 else ''}{format_usd(abs(usd))}"


def ends(bar: Bar) -> str:
    """`tariff $0.06 to $0.12/kWh`."""
    low, high = amount(bar.low), amount(bar.high)
    unit = bar.low.unit.removeprefix("USD")
    for tail in (f" % {unit}", f" {unit}", unit):
        low = low.removesuffix(tail) if unit else low
    return f"{bar.name.removeprefix('owned.').replace('_', ' ')} {low} to {high}"


def _inputs(compared: Compared) -> Iterator[str]:
    if compared.inputs:
        yield "inputs"
    for value in compared.inputs:
        who = "you: " if value.given else ""
        words = f"{value.name} {amount(value)}  {who}{value.source}"
        yield from hanging("  ", printable(words), 6)
    for words in compared.assumed:
        yield from hanging("  ", words, 6)
