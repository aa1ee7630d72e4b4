"""Values for fields that were not written, each with the reason that `explain` prints."""

from __future__ import annotations

import math

from gpuplan.manifest.v1 import Workload
from gpuplan.models.model import Model, Transformer
from gpuplan.sizing.ask.demand import Kind
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.model.checkpoints import WEIGHT_BYTES, default_precision

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
    if "load.concurrency.users" in given:
        why = "every user asks again at once"
        table |= {"load.concurrency.think_time": (0.0, why)}
    elif kind in ("serving", "image service"):
        mean = _of(given, "load.requests_per_second.mean")
        table |= {"load.requests_per_second.peak": (mean, "no peak: the mean is served")}
    units = {"load.requests_per_second.peak": "1/s", "checkpoint.interval": "s"}
    units["load.concurrency.think_time"] = "s"
    return {
        field: Quantity(value, units.get(field, "1"), f"default: {field} ({reason})")
        for field, (value, reason) in table.items()
        if field not in given or field.startswith("overrides.")
    } | _weight(kind, model, workload)


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


def _weight(kind: Kind, model: Model | None, workload: Workload) -> Given:
    """The precision as the bytes of one weight of the linear layers."""
    if kind == "notebook":
        return {}
    if workload.precision:
        source = f"manifest: workloads.{workload.name}.precision"
        return {"precision": Quantity(WEIGHT_BYTES[workload.precision], "B", source)}
    name = precision_of(kind, model, workload)
    reason = "of mixed-precision training" if kind == "training" else "as the weights are published"
    return {
        "precision": Quantity(WEIGHT_BYTES[name], "B", f"default: precision ({name}, {reason})")
    }


def precision_of(kind: Kind, model: Model | None, workload: Workload) -> str:
    default = "bf16" if kind == "training" else default_precision(model)
    return workload.precision or default
