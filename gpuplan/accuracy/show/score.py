"""Errors of predictions relative to measurements, by metric and category."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from gpuplan.accuracy.metrics.serving_priors import QUEUED_MILLISECONDS
from gpuplan.accuracy.points.points import Case, Point
from gpuplan.accuracy.points.readings import DataReading
from gpuplan.accuracy.predict import rests
from gpuplan.models.images.networks import VisionNetwork
from gpuplan.models.model import Denoiser, Diffusion, Speech, Vision
from gpuplan.plan.model import Estimate, record

Predicted = tuple[Point, Estimate | str]
QUEUED = "ttft over 3 s"


@record
class Score:
    """One group of points. `error` and `ninety` are the median and 90th percentile of the absolute
    relative error, `bias` the median of the signed one, `covered` the part of the measurements
    inside the interval (None: none is printed). Plans rest on what predicts them if `planned`."""

    planned: bool
    metric: str
    category: str
    group: str
    count: int
    error: float
    ninety: float
    bias: float
    covered: float | None


def kind(case: Case) -> str:
    model = case.model
    if isinstance(model, VisionNetwork | Vision):
        return "vision"
    if isinstance(model, Diffusion | Denoiser):
        return "diffusion"
    if isinstance(model, Speech):
        return "speech"
    if model.role == "encoder":
        return "reader"
    return "mixture" if model.experts else "dense"


CATEGORIES: dict[str, Callable[[Case], str]] = {
    "": lambda _case: "",
    "kind": kind,
    "GPU": lambda case: case.gpu.identifier,
    "engine": lambda case: (case.engine.split() or ["none"])[0],
    "model": lambda case: case.model.identifier,
}


def scores(pairs: Sequence[Predicted]) -> Iterator[Score]:
    """All metrics in order, first what plans rest on; of each the whole, then every group of every
    category."""
    rows: dict[tuple[bool, str], list[tuple[Point, Estimate]]] = defaultdict(list)
    for point, answer in pairs:
        if isinstance(answer, Estimate):
            rows[rests(point), label(point)].append((point, answer))
    for planned, metric in sorted(rows, key=lambda key: (not key[0], key[1])):
        of_metric = rows[planned, metric]
        for category, key in CATEGORIES.items():
            named = [(_name(p.case, category, key), p, e) for p, e in of_metric]
            for group in sorted({name for name, _, _ in named}):
                members = [(p, e) for n, p, e in named if n == group]
                yield score(members, metric, category, group, planned=planned)


def _name(case: Case | DataReading | str, category: str, key: Callable[[Case], str]) -> str:
    if isinstance(case, Case):
        return key(case)
    if isinstance(case, DataReading) and category:
        return {"GPU": case.accelerator, "model": case.workload}.get(category, "storage")
    return ""


def label(point: Point) -> str:
    if point.metric == "ttft":
        return QUEUED if point.value > QUEUED_MILLISECONDS else "ttft"
    return point.metric


def score(
    pairs: Sequence[tuple[Point, Estimate]],
    metric: str,
    category: str = "",
    group: str = "",
    *,
    planned: bool,
) -> Score:
    """Of pairs of a measured point and its prediction, at least one."""
    errors = [e.value / p.value - 1 for p, e in pairs]
    sizes = sorted(map(abs, errors))
    ranged = [(p.value, e) for p, e in pairs if e.low < e.high]
    inside = [e.low <= value <= e.high for value, e in ranged]
    return Score(
        planned=planned,
        metric=metric,
        category=category,
        group=group,
        count=len(pairs),
        error=statistics.median(sizes),
        ninety=sizes[math.ceil(0.9 * len(sizes)) - 1],
        bias=statistics.median(errors),
        covered=sum(inside) / len(inside) if inside else None,
    )


def left_out(pairs: Iterable[Predicted]) -> list[tuple[str, int]]:
    """Why points have no prediction, and how many; the most frequent first."""
    reasons = Counter(e for _, e in pairs if isinstance(e, str))
    return sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
