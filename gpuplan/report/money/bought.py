"""Bought or rented nodes on a terminal, and as data. Every input says who stated it."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from gpuplan.money.bought import Bought
from gpuplan.money.inputs import Value
from gpuplan.money.owned import Owning
from gpuplan.money.parts import total
from gpuplan.plan.serialize import to_json
from gpuplan.render.text import COLUMNS, printable, wrapped
from gpuplan.report.money.bill import hanging, row
from gpuplan.units import format_unit_usd, format_usd, significant


def text(bought: Bought) -> str:
    lines = ["the same nodes, bought"]
    if bought.owning is None:
        lines.append("  no price of a node is known: state `owned.purchase` in the costs file")
    else:
        lines += _owning(bought.owning)
        lines += _break_even(bought)
    if bought.rented_per_month is not None:
        month = format_usd(bought.rented_per_month)
        lines += ["", f"the same nodes, servers by the month   {month}/month"]
    lines += ["", "inputs", *_inputs(bought)]
    return "\n".join(lines) + "\n"


def tree(bought: Bought) -> Any:
    return to_json(bought)


def _owning(owning: Owning) -> Iterator[str]:
    financed = owning.purchase - owning.upfront
    how = "paid at once" if not financed else (
        f"{format_usd(owning.upfront)} at once, the rest over {owning.finance_months} months"
    )  # fmt: skip
    yield from row(format_usd(owning.purchase), "purchase", how)
    if financed:
        words = f"{owning.finance_months} months"
        yield from row(format_usd(owning.finance_per_month), "financing a month", words)
    for part in owning.parts:
        amount = part.state if part.usd_per_month is None else format_usd(part.usd_per_month)
        yield from row(amount, f"{part.name} a month", part.what)
    whole = total(owning.parts)
    unknown = f"and what is unpriced: {', '.join(whole.unpriced)}" if whole.unpriced else "in cash"
    yield from row(format_usd(whole.usd), "running a month", unknown)
    if owning.depreciation_per_month is not None:
        words = "no payment: the purchase was"
        yield from row(format_usd(owning.depreciation_per_month), "written off a month", words)
    if owning.residual:
        yield from row(format_usd(owning.residual), "got back", "at the end")


def _break_even(bought: Bought) -> Iterator[str]:
    if bought.against_per_month is None or bought.owning is None:
        return
    floor = " at the earliest" if bought.owning.unpriced else ""
    against = f"{format_usd(bought.against_per_month)}/month by the hour"
    if bought.break_even is None:
        yield f"  never cheaper than {against}: running them costs as much"
        return
    if not bought.break_even:
        yield f"  cheaper than {against} from the first month on"
        return
    yield f"  cheaper than {against} after {months(bought.break_even)}{floor}"
    if bought.counted_twice is not None:
        words = (
            f"(a calculator that subtracts the write-off too reads {months(bought.counted_twice)}: "
            "it counts the purchase twice)"
        )
        yield from (f"  {part}" for part in wrapped(words, COLUMNS - 2))


def months(value: Decimal) -> str:
    return f"{float(value):,.1f} months"


def _inputs(bought: Bought) -> Iterator[str]:
    for value in bought.inputs:
        who = "you: " if value.given else ""
        words = f"{value.name} {amount(value)}{_range(value)}  {who}{value.source}"
        yield from hanging("  ", printable(words), 6)
    for assumed in bought.assumed:
        yield from hanging("  ", f"assumed: {assumed}", 6)


def amount(value: Value, number: Decimal | None = None) -> str:
    """`$320,000 a node`, `76 % of that power`."""
    shown = value.typical if number is None else number
    if value.unit.startswith("USD"):
        return f"{format_unit_usd(shown)}{value.unit.removeprefix('USD')}"
    if value.unit.startswith(("of ", "a year")):
        return f"{significant(float(shown) * 100)} % {value.unit}"
    return f"{shown.normalize():,f} {value.unit}".rstrip()


def _range(value: Value) -> str:
    if value.low is None or value.high is None:
        return ""
    return f" ({amount(value, value.low)} to {amount(value, value.high)})"
