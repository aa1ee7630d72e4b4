"""Points of one run, whatever their sources call them: they never predict each other.

A table may show one measurement under two names of a model, or under two divisions of the GPUs. Of
the same metric, GPU and load, values that agree in all their digits are such twins; their groups
are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpuplan.accuracy.points.points import Case, Point

SAME = ("gpu", "n_gpus", "input_len", "output_len", "seq_len", "batch", "global_batch", "unit")
DIGITS = 4  # that a value has at least, so that equal ones are no chance


def by_run(points: Sequence[Point]) -> list[Point]:
    """The points, with one group for all groups that share a twin: the first of these."""
    parents: dict[str, str] = {}

    def root(group: str) -> str:
        while (above := parents.get(group, group)) != group:
            group = above
        return group

    first: dict[tuple[object, ...], str] = {}
    for point in points:
        if point.group and (key := _twins(point)) is not None:
            one, other = root(first.setdefault(key, point.group)), root(point.group)
            parents[max(one, other)] = min(one, other)
    return [replace(p, group=root(p.group)) if p.group else p for p in points]


def _twins(point: Point) -> tuple[object, ...] | None:
    if not isinstance(point.case, Case) or _digits(point.value) < DIGITS:
        return None
    return point.metric, point.value, *(point.case.row[name] for name in SAME)


def _digits(value: float) -> int:
    return len(f"{value:.9e}".partition("e")[0].replace(".", "").rstrip("0"))
