"""The prediction for a measured point, in the point's own unit."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gpuplan.accuracy.metrics import (
    alone,
    benchmarks,
    images,
    memory,
    mlperf,
    offline,
    rates,
    serving,
    serving_memory,
    serving_priors,
    storage,
    training_memory,
    video,
    vision,
)
from gpuplan.accuracy.points.points import Case, Point
from gpuplan.accuracy.points.readings import Reading
from gpuplan.accuracy.reckon import Prior, Reckoned, corrected
from gpuplan.models.model import Transformer
from gpuplan.plan.model import Estimate
from gpuplan.sizing.calibration.anchors import Anchors

Predictor = Callable[[Case], Reckoned | Estimate | str]


def _first_token(case: Case) -> Reckoned | Estimate | str:
    one = offline.ONE_REQUEST in case.row["notes"]
    return offline.batch_one(case) if one else serving.ttft(case)


def _samples(case: Case) -> Reckoned | Estimate | str:
    written = isinstance(case.model, Transformer)
    return mlperf.samples(case) if written else images.samples(case)


PREDICTORS: dict[str, Predictor] = {
    "tpot": serving.tpot,
    "ttft": _first_token,
    "max_output_tokens_per_s_per_gpu": offline.maximum,
    "output_tokens_per_s_per_gpu": offline.static,
    "speed_in_plus_out_tokens_per_s_bs1": alone.speed,
    "decode_tokens_per_s_bs1": alone.speed,
    "mlperf_offline_samples_per_s": _samples,
    "mlperf_server_samples_per_s": _samples,
    "mlperf_offline_tokens_per_s": mlperf.tokens,
    "mlperf_server_tokens_per_s": mlperf.tokens,
    "mlperf_interactive_tokens_per_s": mlperf.tokens,
    "mlperf_server_tpot_mean": mlperf.token_latency,
    "mlperf_server_tpot_p99": mlperf.token_latency,
    "mlperf_server_ttft_mean": mlperf.first_latency,
    "mlperf_server_ttft_p99": mlperf.first_latency,
    "images_per_s": vision.images_per_second,
    "image_latency": video.latency,
    "video_latency": video.latency,
    **dict.fromkeys(rates.METRICS, benchmarks.throughput),
    "time_to_train": benchmarks.time_to_train,
    "peak_gpu_memory_train": training_memory.training,
    "peak_gpu_memory_inference": memory.generation,
    "kv_cache_tokens": serving_memory.cache_tokens,
    "weights_gpu_memory": serving_memory.weights,
}
_WITH_PRIORS = (
    alone,
    benchmarks,
    images,
    memory,
    mlperf,
    offline,
    rates,
    serving_priors,
    storage,
    training_memory,
    video,
    vision,
)
# The anchors' kernels, by quantity.
PRIORS: dict[str, Prior] = {
    name: prior for module in _WITH_PRIORS for name, prior in module.PRIORS.items()
}


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
    if isinstance(case, Reading):
        return storage.read_rate(case)
    predictor = PREDICTORS.get(point.metric)
    if predictor is None:
        return f"metric '{point.metric}' is not predicted"
    try:
        return predictor(case)
    except ValueError as problem:
        return str(problem)


def anchored(points: Iterable[Point], anchors: Anchors) -> int:
    """How many of the points correct predictions themselves."""
    known = {a.identifier for quantity in PRIORS for a in anchors(quantity).anchors}
    return sum(point.identifier in known for point in points)
