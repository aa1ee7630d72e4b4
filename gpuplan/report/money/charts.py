"""The charts of a comparison: every coordinate is made here, the template prints lines and texts.
Courses differ by dashes and by the names at their ends too, not by colour alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal

from gpuplan.money.compare import Compared
from gpuplan.money.courses import QUARTER, Course
from gpuplan.money.tornado import Bar
from gpuplan.report.chart import Chart, Label, Line
from gpuplan.report.money.compare import ends, signed
from gpuplan.units import format_usd

WIDTH, LEFT, RIGHT, TOP = 960, 84, 800, 48
BOTTOM, HEIGHT = 360, 400
ROW, MIDDLE, REACH, TEXT = 46, 660, 270, 24
STYLES = ("a", "b", "c", "d", "e", "f")


def charts(compared: Compared) -> Iterator[Chart]:
    known = [course for course in compared.courses if course.months]
    if known:
        yield paid(known, compared)
    if compared.bars:
        yield tornado(compared.bars, compared.best or "")


def quarters(course: Course) -> tuple[Decimal, ...]:
    """What is paid in each quarter."""
    months = course.months
    return tuple(sum(months[n : n + QUARTER], Decimal(0)) for n in range(0, len(months), QUARTER))


def paid(courses: Sequence[Course], compared: Compared) -> Chart:
    """All that was paid by the end of each month."""
    title = "Paid by the end of each month"
    most = max(float(max(course.paid)) for course in courses)
    top = _round_above(most)
    months = compared.months
    lines = [Line(path=f"M{LEFT} {TOP}V{BOTTOM}H{RIGHT}", style="axis")]
    labels = [Label(x=LEFT, y=24, text=title, style="title")]
    for part in (0.25, 0.5, 0.75, 1.0):
        y = _up(part)
        lines.append(Line(path=f"M{LEFT} {y}H{RIGHT}", style="mark"))
        labels.append(Label(x=LEFT - 8, y=y + 4, text=_short(top * part), style="end"))
    for month in range(0, months + 1, max(QUARTER, months // 12 // QUARTER * QUARTER)):
        text = f"{month}"
        labels.append(Label(x=_across(month, months), y=BOTTOM + 20, text=text, style="middle"))
    labels.append(Label(x=RIGHT, y=BOTTOM + 38, text="month", style="end"))
    if compared.break_even is not None:
        x = _across(compared.break_even, months)
        lines.append(Line(path=f"M{x} {TOP}V{BOTTOM}", style="limit"))
        text = f"break-even: month {compared.break_even}"
        labels.append(Label(x=x + 6, y=TOP + 4, text=text, style="limit"))
    heights = []
    for course, style in zip(courses, STYLES * len(courses), strict=False):
        points = [
            (_across(n, months), _up(float(v) / top))
            for n, v in enumerate((Decimal(0), *course.paid))
        ]
        path = "M" + "L".join(f"{x} {y}" for x, y in points)
        lines.append(Line(path=path, style=style))
        heights.append((points[-1][1], course, style))
    labels += _names(heights)
    words = "; ".join(f"{c.name} {format_usd(c.total or 0)} in all" for c in courses)
    return Chart(
        key="paid",
        title=title,
        description=words,
        width=WIDTH,
        height=HEIGHT,
        lines=tuple(lines),
        labels=tuple(labels),
    )


def _names(heights: Sequence[tuple[int, Course, str]]) -> Iterator[Label]:
    """Each course's name at the end of its line, moved apart where they would touch."""
    last = -100
    for y, course, style in sorted(heights, key=lambda h: h[0]):
        last = max(y + 4, last + 16)
        floor = "≥ " if course.unpriced else ""
        text = f"{course.name} {floor}{_short(float(course.total or 0))}"
        yield Label(x=RIGHT + 8, y=last, text=text, style=style)


def tornado(bars: Sequence[Bar], best: str) -> Chart:
    """What owning costs more than the best other way (to the right) or less (to the left)."""
    title = f"Owning less {best}: one input at a time, from its low to its high"
    far = max(max(abs(float(b.at_low)), abs(float(b.at_high))) for b in bars) or 1.0
    height = 80 + ROW * len(bars)
    lines = [Line(path=f"M{MIDDLE} 44V{height - 24}", style="axis")]
    labels = [Label(x=TEXT, y=24, text=title, style="title")]
    labels.append(Label(x=MIDDLE - 8, y=58, text="← owning costs less", style="end"))
    labels.append(Label(x=MIDDLE + 8, y=58, text="owning costs more →", style="start"))
    for number, bar in enumerate(bars):
        y = 70 + ROW * number
        left, right = sorted(
            MIDDLE + round(float(value) / far * REACH) for value in (bar.at_low, bar.at_high)
        )
        style = "flips" if bar.flips else "bar"
        lines.append(Line(path=f"M{left} {y}H{max(right, left + 2)}V{y + 16}H{left}Z", style=style))
        flips = " — flips the decision" if bar.flips else ""
        labels.append(Label(x=TEXT, y=y + 2, text=ends(bar), style="name"))
        spread = f"{signed(bar.at_low)} to {signed(bar.at_high)}{flips}"
        labels.append(Label(x=TEXT, y=y + 18, text=spread, style="start"))
    words = "; ".join(
        f"{ends(b)}: {signed(b.at_low)} to {signed(b.at_high)}{' (flips)' if b.flips else ''}"
        for b in bars
    )
    return Chart(
        key="tornado",
        title=title,
        description=words,
        width=WIDTH,
        height=height,
        lines=tuple(lines),
        labels=tuple(labels),
    )


def _short(usd: float) -> str:
    """`$4.8M`, `$95k`, `$640`."""
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(usd) >= size:
            return f"${usd / size:,.3g}{letter}"
    return f"${usd:,.0f}"


def _round_above(value: float) -> float:
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return power * next(n for n in (1, 1.2, 1.6, 2, 3, 4, 6, 8, 10, 12) if n * power >= value)


def _across(month: int, months: int) -> int:
    return round(LEFT + month / months * (RIGHT - LEFT))


def _up(part: float) -> int:
    return round(BOTTOM - part * (BOTTOM - TOP))
