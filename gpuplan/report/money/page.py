"""A comparison as one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.frozen import record
from gpuplan.money.compare import Compared
from gpuplan.money.courses import Course
from gpuplan.money.tornado import deciding
from gpuplan.render.environments import render
from gpuplan.render.text import printable
from gpuplan.render.xml import legal
from gpuplan.report.chart import Chart
from gpuplan.report.money.bought import amount
from gpuplan.report.money.charts import charts, quarters
from gpuplan.report.money.compare import counts, signed, verdict, whole
from gpuplan.units import format_usd, significant


@record
class Row:
    """A way to run the work; `cells` follow its name."""

    name: str
    cells: tuple[str, ...]


@record
class Table:
    key: str
    title: str
    head: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()


@record
class Page:
    title: str
    verdict: tuple[str, ...]
    tables: tuple[Table, ...]
    charts: tuple[Chart, ...]


def page(compared: Compared) -> str:
    """The page, as UTF-8 text."""
    view = Page(
        title=_text(f"{compared.name}: {compared.months} months compared"),
        verdict=tuple(_text(line) for line in verdict(compared)),
        tables=tuple(_tables(compared)),
        charts=tuple(charts(compared)),
    )
    return render("xml", "compare/page.html.j2", page=view)


def _tables(compared: Compared) -> Iterator[Table]:
    yield Table(
        key="ways",
        title="Ways to run it",
        head=(
            "way",
            "nodes",
            "first month",
            f"{compared.months} months",
            "CO2e",
            "machines at the end",
        ),
        rows=tuple(Row(name=_text(c.name), cells=tuple(_cells(c))) for c in compared.courses),
        notes=(
            "≥: a part is unpriced, so the total is at least that. –: nobody knows.",
            *(
                _text(f"{c.name}: without {', '.join(c.unpriced)}")
                for c in compared.courses
                if c.unpriced
            ),
            *(
                _text(f"CO2e of {c.name}: {c.carbon_source}")
                for c in compared.courses
                if c.carbon_source
            ),
        ),
    )
    known = [course for course in compared.courses if course.months]
    if known:
        count = len(quarters(known[0]))
        yield Table(
            key="quarters",
            title="Paid in each quarter, and the nodes that its load takes",
            head=("way", *(f"Q{n + 1}" for n in range(count))),
            rows=tuple(
                Row(
                    name=_text(course.name),
                    cells=tuple(
                        f"{signed(usd)} · {course.nodes[n]}"
                        for n, usd in enumerate(quarters(course))
                    ),
                )
                for course in known
            ),
        )
    if compared.inputs:
        yield _inputs(compared)


def _inputs(compared: Compared) -> Table:
    flip = deciding(compared.bars)
    return Table(
        key="inputs",
        title="Inputs of owning, and who states them",
        head=("input", "value", "from", "to", "decides", "stated by"),
        rows=tuple(
            Row(
                name=_text(value.name),
                cells=(
                    _text(amount(value)),
                    "–" if value.low is None else _text(amount(value, value.low)),
                    "–" if value.high is None else _text(amount(value, value.high)),
                    "flips" if value.name in flip else "",
                    _text(f"you: {value.source}" if value.given else value.source),
                ),
            )
            for value in compared.inputs
        ),
        notes=tuple(_text(words) for words in compared.assumed),
    )


def _cells(course: Course) -> Iterator[str]:
    if not course.months:
        yield from ("–", "–", "unpriced" if not course.why else "–", "–", _text(course.why))
        return
    yield counts(course)
    yield format_usd(course.months[0])
    yield whole(course)
    carbon = course.carbon_tonnes
    yield "–" if carbon is None else f"{significant(float(carbon))} t"
    yield _text(course.machines)


def _text(words: str) -> str:
    return legal(printable(words))
