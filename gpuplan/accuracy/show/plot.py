"""Predicted against measured, as SVG: one dot a point, logarithmic axes, the diagonal, and lines at
25 % to either side."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpuplan.accuracy.points.points import Point
from gpuplan.plan.model import Estimate

SIZE, EDGE = 360, 40
STYLE = (
    "text{font:12px sans-serif;fill:currentColor}.a{stroke:currentColor;stroke-opacity:.25;"
    "fill:none}.d{stroke:currentColor;stroke-opacity:.6}.p{stroke:#2563eb;stroke-width:3;"
    "stroke-linecap:round;stroke-opacity:.45;fill:none}"
)


def scatter(title: str, unit: str, pairs: Sequence[tuple[Point, Estimate]]) -> str:
    """At least one pair. `title` and `unit` are plain words."""
    values = [v for point, answer in pairs for v in (point.value, answer.value)]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)) + 1e-9)
    scale = (SIZE - 2 * EDGE) / max(high - low, 1)

    def across(value: float) -> int:
        return round(EDGE + (math.log10(value) - low) * scale)

    def up(value: float) -> int:
        return SIZE - across(value)

    dots = "".join(f"M{across(p.value)} {up(e.value)}h0" for p, e in pairs)
    start, end = EDGE, SIZE - EDGE
    lines = [f'<path class="a" d="{_grid(low, high, scale)}"/>']
    for factor in (1 / 1.25, 1.25):
        shift = round(math.log10(factor) * scale)
        lines.append(f'<path class="a" d="M{start} {end - shift}L{end} {start - shift}"/>')
    lines.append(f'<path class="d" d="M{start} {end}L{end} {start}"/>')
    lines.append(f'<path class="p" d="{dots}"/>')
    lines += [
        f'<text x="{across(10.0**n)}" y="{end + 16}" text-anchor="middle">{10.0**n:g}</text>'
        f'<text x="{start - 4}" y="{up(10.0**n) + 4}" text-anchor="end">{10.0**n:g}</text>'
        for n in range(low, high + 1)
    ]
    lines.append(f'<text x="{start}" y="20">{title}: predicted over measured, {unit}</text>')
    body = "\n".join(lines)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE}" role="img">\n'
        f"<title>{title}</title><style>{STYLE}</style>\n{body}\n</svg>\n"
    )


def _grid(low: int, high: int, scale: float) -> str:
    start, end = EDGE, SIZE - EDGE
    places = [round(n * scale) for n in range(high - low + 1)]
    across = "".join(f"M{start + p} {start}V{end}" for p in places)
    return across + "".join(f"M{start} {end - p}H{end}" for p in places)
