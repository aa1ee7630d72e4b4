"""The published weights: which precisions they can be served in, and their size on disk."""

from __future__ import annotations

from gpuplan.models.model import Diffusion, Model, Speech, Transformer, Vision
from gpuplan.sizing.evidence.formula import Formula, Ledger, Quantity, constant

# A scale is stored with each block of weights: 16 (nvfp4), 32 (mxfp4), 128 (int4).
WEIGHT_BYTES = {
    "fp32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "int4": 0.52,
    "nvfp4": 0.5625,
    "mxfp4": 0.53,
}
# What diffusers writes at most, where no source says how a pipeline's weights are stored.
UNSAID = constant(4, "B", "bytes of a published weight at most: no source states them")
# Weights of int4 checkpoints that share a scale, unless they say another number.
GROUP = 128
SCALE_BYTES = 2
UNQUANTIZED = ("fp32", "bf16", "fp16")
# The engines cast between 16-bit formats and quantize to fp8 while they load; nothing else.
FROM_UNQUANTIZED = ("bf16", "fp16", "fp8")
_PUBLISHED = Formula(
    "linear_parameters * published_weight_bytes + (parameters - linear_parameters) * other_bytes",
    "B",
    "the published weights on disk: linear layers, and the rest in 16 or 32 bits",
)
_PIPELINE = Formula(
    "parameters * published_weight_bytes",
    "B",
    "the modules of the pipeline on disk; single files of the same weights are left out",
)


def default_precision(model: Model | None) -> str:
    """What a model is served in when the manifest does not say: as it was published, at most 16
    bits."""
    stored = "bf16" if model is None or isinstance(model, Diffusion) else model.checkpoint_precision
    return "bf16" if stored == "fp32" else stored


def weight_bytes(model: Model | None, precision: str) -> float:
    """Of a weight of a linear layer: four-bit integers by the group that shares a 16-bit scale."""
    group = model.quantized_group if isinstance(model, Transformer) else None
    if precision != "int4" or group is None or group == GROUP:
        return WEIGHT_BYTES[precision]
    return 0.5 + SCALE_BYTES / group


def published_bytes(ledger: Ledger, model: Transformer, name: str = "checkpoint_bytes") -> Quantity:
    """What is downloaded and kept, recorded as `name`."""
    stored = model.checkpoint_precision
    size = constant(weight_bytes(model, stored), "B", f"bytes of a published {stored} weight")
    other = constant(4 if stored == "fp32" else 2, "B", "bytes of the other weights")
    return ledger.derive(
        name,
        _PUBLISHED,
        linear_parameters=Quantity(float(model.linear_parameters), "1", model.source),
        parameters=Quantity(float(model.parameters), "1", model.source),
        published_weight_bytes=size,
        other_bytes=other,
    )


def whole_bytes(ledger: Ledger, model: Speech | Vision, name: str = "checkpoint_bytes") -> Quantity:
    """What is downloaded and kept of a model all of whose weights are stored alike, recorded as
    `name`."""
    stored = model.checkpoint_precision
    return ledger.derive(
        name,
        _PIPELINE,
        parameters=Quantity(float(model.parameters), "1", model.source),
        published_weight_bytes=constant(
            WEIGHT_BYTES[stored], "B", f"bytes of a published {stored} weight"
        ),
    )


def pipeline_bytes(ledger: Ledger, model: Diffusion) -> Quantity:
    """What is downloaded and kept of a pipeline, recorded as `checkpoint_bytes`: as it is
    published, whatever precision it is served in."""
    stored = UNSAID
    if model.stored_weight_bytes is not None and model.stored_source is not None:
        stored = Quantity(float(model.stored_weight_bytes), "B", model.stored_source)
    return ledger.derive(
        "checkpoint_bytes",
        _PIPELINE,
        parameters=Quantity(float(model.parameters), "1", model.source),
        published_weight_bytes=stored,
    )
