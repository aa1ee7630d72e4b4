"""Values for fields that were not written, each with the reason that `explain` prints."""

from __future__ import annotations

import math
from collections.abc import Callable

from gpuplan.manifest.v1 import Workload
from gpuplan.models.model import Diffusion, Model, Speech, Transformer, Vision
from gpuplan.sizing.ask import fields as f
from gpuplan.sizing.ask.fields import Kind, ManifestField
from gpuplan.sizing.ask.given import Given
from gpuplan.sizing.data.pooling import TEI_PRECISION
from gpuplan.sizing.data.speech import WINDOW_SOURCE, WINDOW_TOKENS
from gpuplan.sizing.model.checkpoints import default_precision, weight_bytes

Table = dict[ManifestField, tuple[float, str]]


class Defaults:
    """Of the fields that the kind uses; those of overrides even where the manifest has one."""

    def __init__(
        self, workload: Workload, kind: Kind, model: Model | None, written: dict[str, Given]
    ) -> None:
        self._table: Table = {
            f.CONFIDENCE: (0.8, "an objective is met with this probability"),
            f.GROWTH_FACTOR: (1.0, "no growth is planned"),
            f.THINK_TIME: (0.0, "every user asks again at once"),
        }
        if mean := written.get(f.MEAN_RATE.path):
            self._table[f.PEAK_RATE] = (mean.value, "no peak: the mean is served")
        if mean := written.get(f.IMAGE_MEAN.path):
            self._table[f.IMAGE_P95] = (mean.value, "every image is the mean")
        if mean := written.get(f.VIDEO_MEAN.path):
            self._table[f.VIDEO_P95] = (mean.value, "every video is the mean")
        if isinstance(model, Transformer):
            self._table |= _TABLES.get(kind, _tokens)(model, written)
        if isinstance(model, Speech):
            self._table |= {
                f.OUTPUT_MEAN: (WINDOW_TOKENS, WINDOW_SOURCE),
                f.GPU_MEMORY_UTILIZATION: (0.9, "the engine's own default"),
            }
        if isinstance(model, Vision):
            self._table |= {
                f.IMAGE_COUNT: (1.0, "an image of its own in each request"),
                f.GPU_MEMORY_UTILIZATION: (0.9, "the rest is left to the allocator"),
                f.GLOBAL_BATCH: (1024, "images of an optimizer step, a usual batch"),
                f.CHECKPOINT_INTERVAL: (3600, "an hour of work is at risk"),
            }
        self._precision = _precision(kind, model, workload)

    def __call__(self, field: ManifestField) -> Given | None:
        if field is f.PRECISION:
            return self._precision
        if field not in self._table:
            return None
        value, reason = self._table[field]
        return Given(value, field.unit, f"default: {field.path} ({reason})", field)


def _tokens(model: Transformer, written: dict[str, Given]) -> Table:
    constant = "lengths are constant where no 95th percentile is written"
    inputs, outputs = written[f.INPUT_MEAN.path].value, written[f.OUTPUT_MEAN.path].value
    long_input, long_output = written.get(f.INPUT_P95.path), written.get(f.OUTPUT_P95.path)
    longest = (long_input.value if long_input else inputs) + (
        long_output.value if long_output else outputs
    )
    return {
        f.INPUT_P95: (inputs, constant),
        f.OUTPUT_P95: (outputs, constant),
        f.GPU_MEMORY_UTILIZATION: (0.9, "the engine's own default"),
        f.MAX_MODEL_LEN: (
            _length(model, longest, 1024),
            "twice the 95th percentiles, in steps of 1,024, within the model's context",
        ),
    }


def _pooled(model: Transformer, written: dict[str, Given]) -> Table:
    mean, p95 = written[f.INPUT_MEAN.path].value, written.get(f.INPUT_P95.path)
    longest = p95.value if p95 else mean
    return {
        f.TEXTS: (1.0, "a text of its own in each request"),
        f.INPUT_P95: (mean, "lengths are constant where no 95th percentile is written"),
        f.GPU_MEMORY_UTILIZATION: (0.9, "the engine's own default"),
        f.MAX_MODEL_LEN: (
            _length(model, longest, 512),
            "twice the 95th percentile, in steps of 512, within the model's context",
        ),
    }


def _length(model: Transformer, longest: float, step: int) -> int:
    return min(model.context_length, step * math.ceil(2 * longest / step))


def _training(model: Transformer, _written: dict[str, Given]) -> Table:
    return {
        f.SEQUENCE_LENGTH: (
            min(4096, model.context_length),
            "4,096 tokens, within the model's context",
        ),
        f.GLOBAL_BATCH: (128, "sequences of an optimizer step, a usual batch"),
        f.CHECKPOINT_INTERVAL: (3600, "an hour of work is at risk"),
    }


_TABLES: dict[str, Callable[[Transformer, dict[str, Given]], Table]] = {
    "training": _training,
    "pooling service": _pooled,
    "pooling batch": _pooled,
}


def _precision(kind: Kind, model: Model | None, workload: Workload) -> Given:
    """The precision as the bytes of one weight of the linear layers."""
    name = precision_of(kind, model, workload)
    source = f"manifest: workloads.{workload.name}.precision"
    if not workload.precision:
        source = f"default: precision ({name}, {_reason(kind, model, name)})"
    return Given(weight_bytes(model, name), "B", source, f.PRECISION)


def _reason(kind: Kind, model: Model | None, name: str) -> str:
    """Why the precision is `name` where none is written."""
    if kind == "training":
        return "of mixed-precision training"
    if kind in (*f.VISION, *f.LOOKING):
        return "as networks that read images were measured"
    stored = name if model is None or isinstance(model, Diffusion) else model.checkpoint_precision
    return f"of weights in {stored}" if stored != name else "as the weights are published"


def precision_of(kind: Kind, model: Model | None, workload: Workload) -> str:
    default = "bf16" if kind == "training" else default_precision(model)
    if kind in (*f.VISION, *f.LOOKING):
        default = "fp16"  # what timm's points were measured in, and every GPU computes
    if kind in f.POOLING and workload.engine and workload.engine.name == "tei":
        default = TEI_PRECISION
    return workload.precision or default
