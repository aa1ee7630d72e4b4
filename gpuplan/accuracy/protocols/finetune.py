"""Peak memory of training runs as measured frameworks allocate it.

Weights, then the larger of two moments: the end of the forward pass (activations, the loss) and the
optimizer's step (the temporaries of a multi-tensor AdamW, torch/optim/adamw.py). Constants are in
data/memory.py; activations after Korthikanti (2022), refitted for FlashAttention.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from gpuplan.accuracy.data.memory import FINETUNE
from gpuplan.accuracy.protocols.body import Body, stored_bytes
from gpuplan.frozen import record

Constants = Mapping[str, float]
CAP_SHARPNESS = 12


@record
class Finetune:
    """One run. `rank` and `targets` (`all`, `attention`, `qv`) of adapters; `flash`: no scores are
    stored; `sharding` is none, zero2, zero3 or fsdp; `capacity_bytes` of a GPU. `fp32_head`:
    embeddings and head became 32-bit (`prepare_model_for_kbit_training` of peft)."""

    framework: str
    method: str  # full, lora, adapter, adapter_v2
    form: str
    length: float
    batch: float
    gpus: int
    sharding: str
    recompute: bool
    capacity_bytes: float
    rank: float = 8
    targets: str = "all"
    flash: bool = True
    embeddings_trained: bool = False
    fp32_head: bool = False
    options: frozenset[str] = frozenset()


def finetuned(shape: Body, run: Finetune, constants: Mapping[str, Constants] = FINETUNE) -> float:
    """Peak bytes of the first GPU."""
    return _REPORTS[run.framework](shape, run, constants[run.framework])


def adapter_parameters(shape: Body, run: Finetune) -> float:
    """In + out of every adapted layer, times the rank."""
    fused = shape.hidden + shape.query + 2 * shape.key
    widths = {
        "all": shape.linear_widths,
        "attention": fused,
        "qv": 2 * shape.hidden + shape.query + shape.key,
    }
    return run.rank * widths[run.targets] * shape.layers


def states(shape: Body, run: Finetune, own: Constants) -> tuple[float, float]:
    """Bytes beside the weights that stay, and those that the optimizer's step adds for a moment."""
    if run.method == "full":
        words = 2.0 if run.form == "fp32" else 1.0
        return words * own["full"] * shape.parameters, words * own["full_step"] * shape.parameters
    adapters = adapter_parameters(shape, run)
    kept, step = own["adapter"] * adapters, own["adapter_step"] * adapters
    if run.embeddings_trained:  # a bf16 copy, its gradient, two bf16 moments; twice that in a step
        kept += 8.0 * shape.embeddings
        step += 4.0 * shape.embeddings
    return kept, step


def activations(shape: Body, run: Finetune, own: Constants) -> float:
    """At the end of the forward pass, or in the layer that is recomputed."""
    length = run.length
    if length > own["until"]:
        length = own["until"] + own["beyond"] * (length - own["until"])
    tokens = run.batch * length
    loss = _loss(shape, run, own) * tokens
    scores = 0.0 if run.flash else own["scores"] * shape.heads * run.length**2 * run.batch
    wide = own["wide" if shape.gated else "wide_plain"]
    if "eager" in run.options:
        wide = own["wide_eager"]
    if run.recompute:
        stored = own["stored"] * shape.layers * shape.hidden * tokens
        if "offloaded" in run.options:
            stored *= own["offloaded"]
        layer = (own["layer_hidden"] * shape.hidden + own["layer_wide"] * shape.width) * tokens
        return stored + max(layer + scores, loss)
    hidden = own["hidden"] - (own["no_lora"] if run.method == "adapter" else 0.0)
    each = tokens * (hidden * shape.hidden + wide * shape.width) + scores / 4
    if run.method == "adapter_v2":
        each += own["scaled"] * tokens * (2 * shape.hidden + shape.query + 2 * shape.key)
        each += own["scaled"] * tokens * (3 if shape.gated else 2) * shape.width
    return (2.0 if run.form == "fp32" else 1.0) * (shape.layers * each + loss)


def _loss(shape: Body, run: Finetune, own: Constants) -> float:
    """Bytes of a token's logits, their copies and gradients."""
    name = "loss" if run.form in ("bf16", "fp32") else "loss_quantized"
    each = own["loss_fp32"] if run.fp32_head else own[name]
    return each * shape.vocabulary * (own["chunked"] if "chunked" in run.options else 1.0)


def fixed(shape: Body, run: Finetune, own: Constants) -> float:
    if run.form in ("bf16", "fp32"):
        return own["fixed"] * 1e9
    unpacked = own["unpack"] * 2.0 * shape.hidden * shape.width
    unpacked += 2.0 * shape.embeddings if run.fp32_head else 0.0
    return (own["fixed"] + own["fixed_quantized"]) * 1e9 + unpacked


def _swift(shape: Body, run: Finetune, own: Constants) -> float:
    """The first GPU, reserved. What does not fit is split by layers over more GPUs; the loss is
    computed on the first."""
    kept, step = states(shape, run, own)
    weights, extra = stored_bytes(shape, run.form) + kept, fixed(shape, run, own)
    parts = 1
    while (weights + step) * 1.0 > own["filled"] * run.capacity_bytes * parts:
        parts += 1
    stored = activations(shape, run, own)
    moment = max(step, stored)
    if parts > 1:
        moment = max(own["first_step"] * step, own["first"] * stored)
    total = weights / parts + moment + extra
    cap = own["cap"] * run.capacity_bytes
    return total / math.pow(1 + (total / cap) ** CAP_SHARPNESS, 1 / CAP_SHARPNESS)


def _litgpt(shape: Body, run: Finetune, own: Constants) -> float:
    """The first GPU. FSDP wraps a whole copy before it divides it. The longest sample comes in the
    first step, before optimizer states exist; later ones are shorter."""
    if run.sharding != "fsdp":
        kept, step = states(shape, run, own)
        stored = activations(shape, run, own)
        weights = stored_bytes(shape, run.form) + fixed(shape, run, own)
        if run.method == "full":
            return weights + max(stored, kept + max(step, own["typical"] * stored))
        return weights + kept + max(step, stored)
    kept, _ = states(shape, run, own)
    weights = stored_bytes(shape, run.form)
    return (
        weights * (1 + 1 / run.gpus)
        + own["wrapping"] * 1e9
        + (kept / run.gpus + activations(shape, run, own))
    )


def _torchtune(shape: Body, run: Finetune, own: Constants) -> float:
    """Each GPU, active."""
    weights = stored_bytes(shape, run.form)
    kept, step = states(shape, run, own)
    if run.method == "full":
        kept, step = _full_states(shape, run, own)
    moment = max(step, activations(shape, run, own))
    extra = fixed(shape, run, own)
    if "reserved" in run.options:  # each layer is quantized on the device
        return max(
            weights + own["quantizing"] * shape.hidden * shape.width, weights + kept + moment
        )
    if run.gpus == 1:
        return weights + kept + moment + extra
    layer = own["layers_gathered"] * weights / shape.layers + 2.0 * shape.head
    divided = 0.0 if "cpu" in run.options else (weights + kept) / run.gpus
    return divided + layer + moment + extra


def _full_states(shape: Body, run: Finetune, own: Constants) -> tuple[float, float]:
    """bf16 moments, or 8-bit ones. Without accumulation gradients come while activations go; where
    each is used in the backward pass, only the tied head's stays until its end."""
    moments = own["eight_bit"] if "8bit" in run.options else 4.0
    if "paged" in run.options:  # in managed memory, which no reading counts
        moments = 0.0
    if "fused" in run.options:
        return moments * shape.parameters + 2.0 * shape.head, 0.0
    return moments * shape.parameters, 2.0 * shape.parameters


_REPORTS = {
    "swift": _swift,
    "litgpt": _litgpt,
    "torchtune": _torchtune,
}
