"""Scores as a table, Markdown or CSV, and predictions row by row."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from itertools import groupby

from gpuplan.accuracy.show.score import Predicted, Score
from gpuplan.plan.model import Estimate

HEAD = ("metric", "category", "group", "n", "MdAPE", "P90", "bias", "covered", "planned")
PREDICTIONS = ("id", "metric", "value", "predicted", "low", "high", "basis", "reason")


def table(scored: Iterable[Score], reasons: Sequence[tuple[str, int]]) -> str:
    """For a terminal: what plans rest on, then what is only predicted, of each every metric and
    indented below it its groups; and what was left out."""
    lines: list[str] = []
    for planned, rows in groupby(scored, key=lambda item: item.planned):
        head = "what plans rest on" if planned else "only predicted"
        lines += ([""] if lines else []) + [f"{head:46} {'n':>5}  MdAPE    P90   bias covered"]
        for item in rows:
            name = f"  {item.category} {item.group}" if item.category else item.metric
            lines.append(f"{name:46} {' '.join(_cells(item))}")
    lines += ["", "not predicted"] if reasons else []
    lines += [f"  {count:5}  {reason}" for reason, count in reasons]
    return "\n".join(lines) + "\n"


def flattered(anchors: int) -> str:
    """What to know where points are scored that correct the predictions."""
    if not anchors:
        return ""
    return (
        f"\n{anchors} of these points correct the predictions themselves and flatter the errors:\n"
        "--leave-out group scores without them\n"
    )


def _cells(item: Score) -> tuple[str, ...]:
    covered = "–" if item.covered is None else f"{item.covered:.0%}"
    return (
        f"{item.count:5}",
        f"{item.error:6.1%}",
        f"{item.ninety:6.1%}",
        f"{item.bias:+6.1%}",
        f"{covered:>7}",
    )


def markdown(scored: Iterable[Score], reasons: Sequence[tuple[str, int]]) -> str:
    lines = [f"| {' | '.join(HEAD)} |", "|---|---|---|---:|---:|---:|---:|---:|---|"]
    for item in scored:
        numbers = (c.strip() for c in _cells(item))
        cells = (item.metric, item.category, item.group, *numbers, _yes(item))
        lines.append(f"| {' | '.join(cell(c) for c in cells)} |")
    lines += ["", "| not predicted because | n |", "|---|---:|"] if reasons else []
    lines += [f"| {cell(reason)} | {count} |" for reason, count in reasons]
    return "\n".join(lines) + "\n"


def cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def scores_csv(scored: Iterable[Score]) -> str:
    rows = []
    for s in scored:
        numbers = (s.count, s.error, s.ninety, s.bias, _text(s.covered))
        rows.append((s.metric, s.category, s.group, *numbers, _yes(s)))
    return _csv(HEAD, rows)


def predictions_csv(pairs: Iterable[Predicted]) -> str:
    """One row for each point, in order; `predicted` is empty where there is a reason."""
    rows: list[tuple[object, ...]] = []
    for point, answer in pairs:
        head = (point.identifier, point.metric, repr(point.value))
        if isinstance(answer, Estimate):
            ranged = answer.low < answer.high
            ends = (repr(answer.low), repr(answer.high)) if ranged else ("", "")
            rows.append((*head, repr(answer.value), *ends, answer.basis, ""))
        else:
            rows.append((*head, "", "", "", "", answer))
    return _csv(PREDICTIONS, rows)


def _yes(item: Score) -> str:
    return "yes" if item.planned else "no"


def _text(value: float | None) -> str:
    return "" if value is None else repr(value)


def _csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return out.getvalue()
