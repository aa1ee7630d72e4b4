"""Replays as one HTML page that needs nothing else: curves over the time and over the requests.

Every coordinate is made here; the template prints lines and texts. Colours follow the reader's
light or dark scheme, series differ by their dashes too, and each chart says in words what it shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from gpuplan.frozen import record
from gpuplan.plan.replay import Replayed, ReplayedTime
from gpuplan.render.environments import render
from gpuplan.render.text import printable
from gpuplan.render.xml import legal
from gpuplan.report.chart import Chart, Label, Line
from gpuplan.report.replay import text
from gpuplan.units import format_quantity, significant

WIDTH, HEIGHT = 540, 250
LEFT, RIGHT, TOP, BOTTOM = 64, 506, 52, 214
MARKED = (50, 95, 99)
DASHES = {"a": "—", "b": "╌", "limit": "┈"}


@record
class Series:
    """Values at equal distances; `style` is `a` or `b`, a line, or `limit`, a level."""

    name: str
    style: str
    values: tuple[float, ...]


@record
class Section:
    name: str
    text: str
    charts: tuple[Chart, ...]


def page(replays: Sequence[Replayed]) -> str:
    """The page, as UTF-8 text."""
    sections = [
        Section(
            name=legal(printable(replayed.workload)),
            text=legal(text(replayed)),
            charts=tuple(_charts(replayed, f"w{number}")),
        )
        for number, replayed in enumerate(replays)
    ]
    title = "Replay of " + ", ".join(section.name for section in sections)
    return render("xml", "replay/page.html.j2", title=title, sections=sections)


def _charts(replayed: Replayed, key: str) -> Iterator[Chart]:
    moments = replayed.moments
    ends = ((0.0, "0 s"), (1.0, format_quantity(replayed.seconds, "s")))

    def over_time(name: str, title: str, unit: str, *series: Series) -> Chart:
        return _chart(f"{key}-{name}", title, unit, series, ends)

    def level(name: str, value: float) -> Series:
        return Series(name=name, style="limit", values=(value, value))

    yield over_time(
        "rate",
        "Requests per second, all replicas",
        "1/s",
        Series(name="arrive", style="a", values=tuple(m.arrived for m in moments)),
        Series(name="answered", style="b", values=tuple(m.answered for m in moments)),
    )
    yield over_time(
        "batch",
        "Requests that run and wait, one replica",
        "1",
        Series(name="run", style="a", values=tuple(m.running for m in moments)),
        Series(name="wait", style="b", values=tuple(m.waiting for m in moments)),
        level("places", replayed.max_num_seqs),
    )
    yield over_time(
        "cache",
        "Tokens in the KV cache, one replica",
        "1",
        Series(name="taken", style="a", values=tuple(m.cache_tokens for m in moments)),
        level("capacity", replayed.cache_tokens),
    )
    for time in replayed.times:
        yield _distribution(time, f"{key}-{time.name}")


def _distribution(time: ReplayedTime, key: str) -> Chart:
    title = time.name.replace("_", " ").capitalize() + ", share of the requests below"
    series = [Series(name="seconds", style="a", values=time.curve)]
    if time.limit is not None:
        level = Series(name=f"limit of {time.statistic}", style="limit", values=(time.limit,) * 2)
        series.append(level)
    marks = [(0.0, "0 %"), *((percent / 100, f"p{percent}") for percent in MARKED)]
    return _chart(key, title, "s", series, marks)


def _chart(
    key: str,
    title: str,
    unit: str,
    series: Sequence[Series],
    marks: Sequence[tuple[float, str]],
) -> Chart:
    """`marks`: places from 0 to 1 on the axis below, and their words."""
    top = _round_above(max((v for s in series for v in s.values), default=0.0))
    lines = [Line(path=f"M{LEFT} {TOP}V{BOTTOM}H{RIGHT}", style="axis")]
    labels = [Label(x=LEFT, y=18, text=title, style="title")]
    for part in (0.0, 0.5, 1.0):
        y = _up(part)
        labels.append(Label(x=LEFT - 6, y=y + 4, text=_shown(top * part, unit), style="end"))
    x = LEFT
    for one in series:
        lines.append(Line(path=_curve(one.values, top), style=one.style))
        name = f"{DASHES[one.style]} {one.name}"
        labels.append(Label(x=x, y=38, text=name, style=one.style))
        x += 20 + 8 * len(name)
    lines += [Line(path=f"M{_across(p)} {TOP}V{BOTTOM}", style="mark") for p, _ in marks]
    placed = _apart(marks)
    labels += [Label(x=x, y=y, text=name, style="middle") for x, y, name in placed]
    return Chart(
        key=key,
        title=title,
        description=_described(series, unit),
        width=WIDTH,
        height=HEIGHT,
        lines=tuple(lines),
        labels=tuple(labels),
    )


def _round_above(value: float) -> float:
    """The end of an axis: a round number at or above `value`."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return power * next(n for n in (1, 1.2, 1.6, 2, 3, 4, 6, 8, 10, 12) if n * power >= value)


def _curve(values: Sequence[float], top: float) -> str:
    last = max(len(values) - 1, 1)
    return "M" + "L".join(f"{_across(n / last)} {_up(v / top)}" for n, v in enumerate(values))


def _apart(marks: Sequence[tuple[float, str]]) -> Iterator[tuple[int, int, str]]:
    """Words below the axis, a line lower where they would touch those before."""
    rows = [BOTTOM + 16] * len(marks)
    for n, ((before, _), (here, _)) in enumerate(pairwise(marks), 1):
        if _across(here) - _across(before) < 32:
            rows[n] = rows[n - 1] + 14
    for (place, name), y in zip(marks, rows, strict=True):
        yield _across(place), y, name


def _described(series: Sequence[Series], unit: str) -> str:
    """What a person hears who does not see the curves."""
    return "; ".join(_words(s, unit) for s in series if s.values)


def _words(one: Series, unit: str) -> str:
    if unit == "s" and one.style != "limit":
        return ", ".join(f"p{n} {_shown(one.values[n], unit)}" for n in MARKED)
    mean, most = sum(one.values) / len(one.values), max(one.values)
    if one.style == "limit":
        return f"{one.name} {_shown(most, unit)}"
    return f"{one.name}: {_shown(mean, unit)} on average, {_shown(most, unit)} at most"


def _shown(value: float, unit: str) -> str:
    return format_quantity(value, "s") if unit == "s" else significant(value)


def _across(part: float) -> int:
    return round(LEFT + part * (RIGHT - LEFT))


def _up(part: float) -> int:
    return round(BOTTOM - part * (BOTTOM - TOP))
