"""Where a training run stands among the measured ones: the features of its anchors.

One place for both, the points that are stored and the runs that are planned.
"""

from __future__ import annotations

import math
from functools import cache

from gpuplan.catalog.model import Gpu
from gpuplan.frozen import record
from gpuplan.models.identity import identity
from gpuplan.models.model import Transformer
from gpuplan.sizing.calibration.anchors import Features

MEMORY = "training_memory"


@record
class Subject:
    """What is trained, where and how: `method` is full, lora or qlora, or a recipe's own word;
    `computed` the precision whose measured rate stands for `precision`; `release` the framework's
    by number."""

    model: Transformer
    gpu: Gpu
    framework: str
    method: str
    precision: str
    computed: str
    release: float


@record
class RunShape:
    """Sizes of a division; sequences of a micro-batch and of `length` tokens."""

    gpus: int
    micro: int
    length: float
    accumulation: float
    tensor: int
    pipeline: int
    context: int
    expert: int
    sharding: str
    recompute: bool


def step_quantity(model: Transformer) -> str:
    """The measured steps of dense models, or of mixtures and hybrids."""
    return "training_step" if family(model) == "dense" else "training_step_mixture"


def family(model: Transformer) -> str:
    if model.linear:
        return "hybrid"
    return "mixture" if model.experts else "dense"


def step_features(of: Subject, layout: RunShape) -> Features:
    """Texts that must be equal, and coordinates: base-2 logarithms of sizes."""
    kind, name = family(of.model), _identity(of.model)
    replaced = of.precision not in ("bf16", of.computed)
    return {
        "framework": of.framework,
        "family": kind,
        "generation": of.gpu.architecture,
        "gpu": of.gpu.identifier,
        "precision": of.precision,
        "recipe": f"{kind} {of.precision}",
        "model": f"{name} in {of.precision}" if replaced else name,
        "method": f"{of.method} {_ranks(layout)}",
        "release": f"{of.release:g}",
        "log_gpus": math.log2(layout.gpus),
        "log_length": math.log2(layout.length),
        "log_micro": math.log2(layout.micro),
        "log_accumulation": math.log2(layout.accumulation),
        "log_tensor": math.log2(layout.tensor),
        "log_pipeline": math.log2(layout.pipeline),
        "log_context": math.log2(layout.context),
        "log_expert": math.log2(layout.expert),
        "log_parameters": math.log2(of.model.parameters),
        "log_hidden": math.log2(of.model.hidden_size),
        "log_tokens": math.log2(layout.micro * layout.length),
        "sharded": float(layout.sharding in ("zero3", "hsdp")),
        "age": of.release,
    }


def memory_features(of: Subject, layout: RunShape) -> Features:
    """The same of its memory."""
    name = _identity(of.model)
    sizes = f"{layout.gpus} {layout.sharding} {layout.recompute}"
    return {
        "model": name,
        "gpu": of.gpu.identifier,
        "size": math.log2(of.model.parameters),
        "framework": of.framework,
        "method": of.method,
        "cell": f"{of.framework} {of.method} {sizes} {name}",
        "length": math.log2(layout.length),
        "batch": math.log2(layout.micro),
    }


def _ranks(layout: RunShape) -> str:
    return "many" if layout.gpus > 1 else "one"


@cache
def _identity(model: Transformer) -> str:
    return identity(model)
