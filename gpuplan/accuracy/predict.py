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
    reading,
    serving,
    serving_memory,
    serving_priors,
    speech,
    storage,
    training_memory,
    video,
    vision,
)
from gpuplan.accuracy.points.points import Case, Point
from gpuplan.accuracy.points.readings import DataReading
from gpuplan.accuracy.reckon import Prior, Reckoned, corrected
from gpuplan.models.model import Speech, Transformer
from gpuplan.plan.model import Estimate
from gpuplan.sizing.calibration.anchors import Anchors
from gpuplan.sizing.physics.images.pipeline import Pipeline
from gpuplan.sizing.physics.pooling.reader import Reader
from gpuplan.sizing.physics.serving.replica import Replica
from gpuplan.sizing.physics.training.run import Run
from gpuplan.sizing.physics.vision.classifier import Classifier

Predictor = Callable[[Case], Reckoned | Estimate | str]


def first_token(case: Case) -> Reckoned | Estimate | str:
    one = offline.ONE_REQUEST in case.row["notes"]
    return offline.batch_one(case) if one else serving.ttft(case)


def samples(case: Case) -> Reckoned | Estimate | str:
    if reading.reads(case):
        return reading.samples(case)
    if isinstance(case.model, Speech):
        return speech.samples(case)
    written = isinstance(case.model, Transformer)
    return mlperf.samples(case) if written else images.samples(case)


PREDICTORS: dict[str, Predictor] = {
    "tpot": serving.tpot,
    "ttft": first_token,
    "max_output_tokens_per_s_per_gpu": offline.maximum,
    "output_tokens_per_s_per_gpu": offline.static,
    "speed_in_plus_out_tokens_per_s_bs1": alone.speed,
    "decode_tokens_per_s_bs1": alone.speed,
    "mlperf_offline_samples_per_s": samples,
    "mlperf_server_samples_per_s": samples,
    "mlperf_offline_tokens_per_s": mlperf.tokens,
    "mlperf_server_tokens_per_s": mlperf.tokens,
    "mlperf_interactive_tokens_per_s": mlperf.tokens,
    "mlperf_server_tpot_mean": mlperf.token_latency,
    "mlperf_server_tpot_p99": mlperf.token_latency,
    "mlperf_server_ttft_mean": mlperf.first_latency,
    "mlperf_server_ttft_p99": mlperf.first_latency,
    "input_tokens_per_s": reading.tokens,
    "images_per_s": vision.images_per_second,
    "image_latency": video.latency,
    "video_latency": video.latency,
    **dict.fromkeys(rates.METRICS, benchmarks.throughput),
    "time_to_train": benchmarks.time_to_train,
    "peak_gpu_memory_train": training_memory.training,
    "peak_gpu_memory_inference": memory.generation,
    "kv_cache_tokens": serving_memory.cache_tokens,
    "kv_cache_memory": serving_memory.cache_memory,
    "weights_gpu_memory": serving_memory.weights,
    "activation_memory": serving_memory.work_space,
}
# What `compile` sizes with, and predicts these metrics, in most of their settings: see `rests`.
PLANNED: dict[str, Callable[..., object]] = {
    **dict.fromkeys(("tpot", "ttft"), Replica.times),
    **dict.fromkeys(
        ("kv_cache_tokens", "kv_cache_memory", "weights_gpu_memory", "activation_memory"),
        Replica.needs,
    ),
    **dict.fromkeys(rates.METRICS, Run.at),
    "peak_gpu_memory_train": Run.needs,
    **dict.fromkeys(("image_latency", "video_latency"), Pipeline.at),
    **dict.fromkeys(("mlperf_offline_samples_per_s", "mlperf_server_samples_per_s"), Pipeline.at),
    "input_tokens_per_s": Reader.at,
    "images_per_s": Classifier.steps,
}
_WITH_PRIORS = (
    alone,
    benchmarks,
    images,
    memory,
    mlperf,
    offline,
    rates,
    reading,
    serving_priors,
    speech,
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
    answer = reckon(point)
    if isinstance(answer, Reckoned):
        return corrected(answer, anchors(answer.quantity))
    return answer


def reckon(point: Point) -> Reckoned | Estimate | str:
    """What the formulas say, before any correction."""
    case = point.case
    if isinstance(case, str):
        return case
    if isinstance(case, DataReading):
        return storage.read_rate(case)
    predictor = PREDICTORS.get(point.metric)
    if predictor is None:
        return f"metric '{point.metric}' is not predicted"
    try:
        return predictor(case)
    except ValueError as problem:
        return str(problem)


def rests(point: Point) -> bool:
    """Whether plans rest on what predicts the point: a function of `PLANNED`."""
    answer = reckon(point)
    if isinstance(answer, Reckoned):
        return answer.planned is not None
    return isinstance(answer, Estimate) and point.metric in PLANNED


def function(metric: str, *, planned: bool) -> str:
    """What predicts a metric, by its name below `gpuplan`."""
    by = PLANNED[metric] if planned else PREDICTORS.get(metric, storage.read_rate)
    return f"{by.__module__}.{by.__qualname__}".removeprefix("gpuplan.")


def anchored(points: Iterable[Point], anchors: Anchors) -> int:
    """How many of the points correct predictions themselves."""
    known = {a.identifier for quantity in PRIORS for a in anchors(quantity).anchors}
    return sum(point.identifier in known for point in points)
