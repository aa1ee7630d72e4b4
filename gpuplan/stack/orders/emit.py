"""Plan → the section Order of the README, `order.csv`, and node pools where they are objects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gpuplan.emission import Emission, Section
from gpuplan.frozen import frozen
from gpuplan.plan.model import Order, Plan
from gpuplan.plan.outside.order import Page
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.markdown import code, escape
from gpuplan.render.tree import File, FileTree
from gpuplan.stack.orders.lines import Line, lines, monthly, total
from gpuplan.stack.orders.needs import needs
from gpuplan.stack.orders.nodepools import node_pools
from gpuplan.stack.orders.sheet import sheet
from gpuplan.targets import making_machines_of
from gpuplan.units import format_usd

SHEET = "order.csv"


@frozen
class View:
    """One provider, as the README has it."""

    name: Verbatim
    rows: tuple[tuple[Verbatim, ...], ...]
    total: Verbatim
    needs: tuple[Verbatim, ...]
    statements: tuple[Verbatim, ...]
    pages: tuple[Verbatim, ...]
    not_known: Verbatim
    manifest: Verbatim
    made_by: Verbatim


def emit(plan: Plan) -> Emission:
    """Nothing where the stack makes its machines, or they are there."""
    if not plan.orders:
        return Emission()
    all_lines = list(lines(plan))
    own = [(order, [line for line in all_lines if line.order == order]) for order in plan.orders]
    pools = {f"nodepools-{o.provider}.yaml": node_pools(plan, o, x) for o, x in own if o.node_pools}
    pools = {path: text for path, text in pools.items() if text}
    files = (File(SHEET, sheet(plan)), *(File(path, text) for path, text in pools.items()))
    views = tuple(_view(plan, order, rows, pools) for order, rows in own)
    text = render("markdown", "stack/order.md.j2", orders=views, sheet=Verbatim(code(SHEET)))
    return Emission(FileTree(files), sections=(Section("Order", text),))


def _view(plan: Plan, order: Order, own: list[Line], pools: dict[str, str]) -> View:
    path = f"nodepools-{order.provider}.yaml"
    return View(
        name=Verbatim(escape(order.name)),
        rows=tuple(tuple(map(Verbatim, _cells(line))) for line in own),
        total=Verbatim(escape(_total(plan, own))),
        needs=tuple(map(Verbatim, needs(plan, order, own))),
        statements=tuple(
            Verbatim(f"{s.subject}: {escape(s.about)} ({escape(s.source)})")
            for s in order.statements
        ),
        pages=tuple(map(Verbatim, _pages(order))),
        not_known=Verbatim(", ".join(order.not_known)),
        manifest=Verbatim(code(path) if path in pools else ""),
        made_by=Verbatim(code(made) if (made := making_machines_of(order.provider)) else ""),
    )


def _pages(order: Order) -> Iterator[str]:
    """Each once, with all that it is about."""
    subjects: dict[Page, list[str]] = {}
    for page in order.pages:
        subjects.setdefault(replace(page, subject="machines"), []).append(page.subject)
    for page, about in subjects.items():
        yield f"{', '.join(about)}: [{escape(page.title)}]({page.url}), read {page.date}"


def _cells(line: Line) -> Iterator[str]:
    pool = line.pool
    yield f"{pool.node_count} × {code(pool.node_type or pool.name)}"
    yield f"{pool.gpus_per_node} × {escape(pool.gpu)} each"
    yield f"{line.capacity}{f', {escape(line.region)}' if line.region else ''}"
    if line.usd_per_hour is None or line.usd_per_month is None or pool.usd_per_hour is None:
        yield "unpriced"
        yield ""
        return
    yield escape(f"{format_usd(pool.usd_per_hour)}/h each ({pool.priced_at or 'as stated'})")
    yield escape(f"{format_usd(line.usd_per_hour)}/h, {format_usd(line.usd_per_month)}/month")


def _total(plan: Plan, own: list[Line]) -> str:
    hour, whole = total(own)
    if not hour:
        return "unpriced"
    least = "" if whole else "at least "
    text = f"{least}{format_usd(hour)}/h, {format_usd(monthly(hour))} a month of 730 hours"
    ends = f"; runs end, so that the plan is {plan.cost.amounts}" if plan.cost.usd_of_runs else ""
    return text + ends
