"""`order.csv`: what is ordered, for whoever buys. Spreadsheets compute texts that begin like a
formula, and take some characters for the end of a cell: such texts begin with an apostrophe."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from decimal import Decimal

from gpuplan.plan.model import Plan
from gpuplan.render.text import spaced
from gpuplan.stack.orders.lines import Line, lines, monthly, total

COLUMNS = (
    "provider",
    "machine",
    "count",
    "capacity",
    "region",
    "gpu",
    "gpus_per_machine",
    "usd_per_hour_each",
    "usd_per_hour",
    "usd_per_month",
    "price_list",
    "processor",
    "for",
)
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # OWASP, CSV injection


def sheet(plan: Plan) -> str:
    """A row for each pool, then the total of each provider; amounts in USD, a month of 730 hours.
    What is not known is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    all_lines = list(lines(plan))
    for order in plan.orders:
        own = [line for line in all_lines if line.order == order]
        writer.writerows([[cell(value) for value in _row(plan, line)] for line in own])
        writer.writerow([cell(value) for value in _total(order.name, own)])
    return out.getvalue()


def cell(value: str | int | Decimal | None) -> str:
    """One line of text that no spreadsheet computes."""
    if value is None:
        return ""
    if isinstance(value, Decimal):
        return f"{value:f}"
    text = " ".join(spaced(str(value)).split())
    return f"'{text}" if text.startswith(FORMULA) else text


def _row(plan: Plan, line: Line) -> Iterator[str | int | Decimal | None]:
    pool = line.pool
    yield line.order.name
    yield pool.node_type
    yield pool.node_count
    yield line.capacity
    yield line.region
    yield pool.gpu
    yield pool.gpus_per_node
    yield pool.usd_per_hour
    yield line.usd_per_hour
    yield line.usd_per_month
    yield pool.priced_at if pool.usd_per_hour is not None else "unpriced"
    yield line.machine.architecture
    yield f"{plan.name}, pool {pool.name}"


def _total(name: str, own: Sequence[Line]) -> Iterator[str | int | Decimal | None]:
    hour, whole = total(own)
    known = any(line.usd_per_hour is not None for line in own)
    yield name
    yield "in all" if whole else "in all, at least"
    yield sum(line.pool.node_count for line in own)
    yield from (None,) * 5
    yield hour if known else None
    yield monthly(hour) if known else None
    yield from (None,) * 3
