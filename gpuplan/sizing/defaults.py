"""Values for fields that were not written, each with the reason that `explain` prints."""

from __future__ import annotations

import math

from gpuplan.manifest.v1 import Workload
from gpuplan.models.model import Model, Transformer
from gpuplan.sizing.api import Kind
from gpuplan.sizing.formula import Quantity

Given = dict[str, Quantity]


def defaults(kind: Kind, model: Model | None, given: Given, workload: Workload) -> Given:
    """Defaults of the fields that the kind uses; those of overrides even where `given` has one."""
    table = _common(kind)
    if kind in ("serving", "batch"):
        table |= _tokens(model, given)
    elif kind in ("image service", "image batch"):
        table |= {"load.images.p95": (_of(given, "load.images.mean"), "every image is the mean")}
    elif kind == "training":
        table |= _training(model)
    if kind in ("serving", "image service"):
        mean = _of(given, "load.requests_per_second.mean")
        table |= {"load.requests_per_second.peak": (mean, "no peak: the mean is served")}
    units = {"load.requests_per_second.peak": "1/s", "checkpoint.interval": "s"}
    return {
        field: Quantity(value, units.get(field, "1"), f"default: {field} ({reason})")
        for field, (value, reason) in table.items()
        if field not in given or field.startswith("overrides.")
    } | _weight(kind, workload)


def _of(given: Given, field: str) -> float:
    return given[field].value


def _common(kind: Kind) -> dict[str, tuple[float, str]]:
    table: dict[str, tuple[float, str]] = {}
    if kind != "notebook":
        table["slo.confidence"] = (0.8, "an objective is met with this probability")
    if kind not in ("training", "notebook"):
        table["growth.factor"] = (1.0, "no growth is planned")
    return table


def _tokens(model: Model | None, given: Given) -> dict[str, tuple[float, str]]:
    assert isinstance(model, Transformer)
    constant = "lengths are constant where no 95th percentile is written"
    mean_in, mean_out = _of(given, "load.input_tokens.mean"), _of(given, "load.output_tokens.mean")
    inputs = given.get("load.input_tokens.p95")
    outputs = given.get("load.output_tokens.p95")
    longest = (inputs.value if inputs else mean_in) + (outputs.value if outputs else mean_out)
    room = min(model.context_length, 1024 * math.ceil(2 * longest / 1024))
    return {
        "load.input_tokens.p95": (mean_in, constant),
        "load.output_tokens.p95": (mean_out, constant),
        "overrides.gpu_memory_utilization": (0.9, "the engine's own default"),
        "overrides.max_model_len": (
            room,
            "twice the 95th percentiles, in steps of 1,024, within the model's context",
        ),
    }


def _training(model: Model | None) -> dict[str, tuple[float, str]]:
    assert isinstance(model, Transformer)
    return {
        "training.sequence_length": (
            min(4096, model.context_length),
            "4,096 tokens, within the model's context",
        ),
        "training.global_batch": (128, "sequences of an optimizer step, a usual batch"),
        "checkpoint.interval": (3600, "an hour of work is at risk"),
    }


def _weight(kind: Kind, workload: Workload) -> Given:
    """The precision as the bytes of one weight of the linear layers."""
    if kind == "notebook":
        return {}
    name = workload.precision or "bf16"
    source = "manifest: workloads.{}.precision" if workload.precision else "default: precision ({})"
    reason = workload.name if workload.precision else "bf16, in which checkpoints are published"
    return {"precision": Quantity(WEIGHT_BYTES[name], "B", source.format(reason))}


# A scale is stored with each block of weights: 16 (nvfp4), 32 (mxfp4), 128 (int4).
WEIGHT_BYTES = {
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "int4": 0.52,
    "nvfp4": 0.5625,
    "mxfp4": 0.53,
}
