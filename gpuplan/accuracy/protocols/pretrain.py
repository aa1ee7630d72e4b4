"""Peak memory of a pre-training run of torchtitan: FSDP2 with tensor, context and pipeline
parallelism, as its code allocates it. Constants are in data/memory.py."""

from __future__ import annotations

from collections.abc import Mapping

from gpuplan.accuracy.data.memory import TORCHTITAN
from gpuplan.accuracy.protocols.body import Body
from gpuplan.frozen import record


@record
class Pretraining:
    """One run; `batch` sequences of `length` tokens on a rank of data parallelism. `recompute`:
    whole layers, else every second product; `eager`: not compiled."""

    length: float
    batch: float
    gpus: int
    recompute: bool
    eager: bool = False
    tensor: int = 1
    context: int = 1
    pipeline: int = 1


def pretrained(shape: Body, run: Pretraining, own: Mapping[str, float] = TORCHTITAN) -> float:
    """Peak bytes of a GPU, reserved. All GPUs divide the states; tensor and context parallelism
    divide tokens; a pipeline takes the sequences of a batch one by one, as many at a time as it has
    stages, and keeps whole weights and gradients of its layers."""
    staged = run.pipeline > 1
    tokens = run.length * (1 if staged else run.batch) / (run.tensor * run.context)
    stored, layer = own["stored"] * shape.hidden, 0.0
    if run.recompute:
        layer = own["layer_hidden"] * shape.hidden + own["layer_wide"] * shape.width
    else:
        eager = own["eager"] if run.eager else 0.0
        stored = (own["hidden"] + eager) * shape.hidden + own["wide"] * shape.width
    moment = max(layer, own["loss"] * shape.vocabulary)
    gathered = own["layers_gathered"] * shape.linear / shape.layers + 4.0 * shape.head
    if staged:
        gathered = own["staged"] * shape.parameters / run.pipeline
    return (
        own["full"] * shape.parameters / run.gpus
        + tokens * (shape.layers * stored + moment)
        + gathered / run.tensor
        + own["fixed"] * 1e9
    )
