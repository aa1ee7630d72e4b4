"""The prediction for a measured point, in the point's own unit."""

from __future__ import annotations

from collections.abc import Callable

from gpuplan.accuracy import images, runs, serving
from gpuplan.accuracy.points import Case, Point
from gpuplan.accuracy.reckon import Prior, Reckoned, corrected
from gpuplan.plan.model import Estimate
from gpuplan.sizing.anchors import Anchors

Predictor = Callable[[Case], Reckoned | Estimate | str]
PREDICTORS: dict[str, Predictor] = {
    "tpot": serving.tpot,
    "ttft": serving.ttft,
    "mlperf_offline_samples_per_s": images.offline,
    "tokens_per_s_per_gpu": runs.tokens_per_gpu,
    "step_time": runs.step_time,
    "peak_gpu_memory_train": runs.memory,
}
# The anchors' kernels, by quantity.
PRIORS: dict[str, Prior] = {}


def predict(point: Point, anchors: Anchors) -> Estimate | str:
    """The estimate, or why the engine cannot express the point."""
    found = reckon(point)
    if isinstance(found, Reckoned):
        return corrected(found, anchors(found.quantity))
    return found


def reckon(point: Point) -> Reckoned | Estimate | str:
    """What the formulas say, before any correction."""
    case = point.case
    if isinstance(case, str):
        return case
    predictor = PREDICTORS.get(point.metric)
    if predictor is None:
        return f"metric '{point.metric}' is not predicted"
    try:
        return predictor(case)
    except ValueError as problem:
        return str(problem)
