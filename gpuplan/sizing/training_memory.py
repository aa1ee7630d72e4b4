"""Bytes on one GPU of a training run at its worst moment.

Sources: Rajbhandari (2019) for what is divided over the data-parallel GPUs; constants fitted on
public points. FlashAttention keeps no scores, so `selective` recomputation stores what `none`
does.
"""

from __future__ import annotations

from functools import cache

from gpuplan.sizing.formula import Formula
from gpuplan.sizing.sheet import Sheet

_STATES_FULL = (
    (
        "weights_bytes",
        Formula("ceil(2 * parameters / weight_shards)", "B", "bf16; ZeRO-3 divides them"),
    ),
    (
        "gradients_bytes",
        Formula(
            "ceil(gradient_bytes_each * parameters / gradient_shards)",
            "B",
            "ZeRO-2 divides them",
        ),
    ),
    (
        "optimizer_bytes",
        Formula(
            "ceil(optimizer_bytes_each * parameters / optimizer_shards)",
            "B",
            "ZeRO-1 divides them",
        ),
    ),
)
_STATES_ADAPTER = (
    (
        "trained_parameters",
        Formula(
            "lora_rank * adapter_width",
            "1",
            "rank x (in + out) beside every linear layer",
        ),
    ),
    (
        "frozen_bytes",
        Formula(
            "linear_parameters * frozen_bytes_each + other_parameters * 2",
            "B",
            "weights that are not trained; embeddings and norms in bf16",
        ),
    ),
    (
        "weights_bytes",
        Formula(
            "ceil((frozen_bytes + 2 * trained_parameters) / weight_shards)",
            "B",
            "ZeRO-3 divides them",
        ),
    ),
    (
        "gradients_bytes",
        Formula("ceil(2 * trained_parameters / gradient_shards)", "B", "of the adapters only"),
    ),
    (
        "optimizer_bytes",
        Formula(
            "ceil(12 * trained_parameters / optimizer_shards)",
            "B",
            "fp32 copy and two moments of the adapters",
        ),
    ),
)
_TOKENS = Formula("micro_batch * sequence_length", "1", "tokens of a micro-batch on one GPU")
_STORED_ALL = Formula(
    "ceil(layers * tokens * (13.9 * hidden_size + 7.9 * mlp_width) "
    "+ loss_bytes * vocabulary * tokens)",
    "B",
    "every layer's inputs of the backward pass, and the loss; fitted on public points",
)
_STORED_CHECKPOINTS = Formula(
    "ceil(1.9 * layers * hidden_size * tokens + max((17.5 * hidden_size + 6.8 * mlp_width) "
    "* tokens, loss_bytes * vocabulary * tokens))",
    "B",
    "one checkpoint a layer, then one layer's working set or the loss; fitted on public points",
)
_STORED_SELECTED = Formula(
    "ceil((1.9 + 2) * layers * hidden_size * tokens + max((17.5 * hidden_size + 6.8 * mlp_width) "
    "* tokens, loss_bytes * vocabulary * tokens))",
    "B",
    "as with full recomputation, and what attention gave, in bf16, a layer",
)
_STORED = {"none": _STORED_ALL, "selective": _STORED_SELECTED, "full": _STORED_CHECKPOINTS}
_GATHERED = {
    False: "3 * 2 * parameters / layers + 2 * vocabulary * hidden_size",
    True: "3 * frozen_bytes / layers",
}


def _overhead(adapter: bool, quantized: bool, gathered: bool) -> Formula:
    """The framework's own, dequantized weights, and whole layers while they are used. DeepSpeed's
    buffers hold them where it gathers them for adapters, and are a floor for a full run."""
    fixed = "fixed_bytes" + (" + 2 * hidden_size * mlp_width * 1.8" if quantized else "")
    if adapter and gathered:
        fixed += f" + max({_GATHERED[adapter]}, deepspeed_bytes)"
    elif not adapter:
        fixed += f" + {_GATHERED[adapter]}" if gathered else ""
        fixed = f"max({fixed}, deepspeed_bytes - activations_bytes)"
    return Formula(f"ceil({fixed})", "B", "framework, gathered layers, buffers of DeepSpeed")


@cache
def memory(*, adapter: bool, quantized: bool, recompute: str, gathered: bool) -> Sheet:
    """Needs shape, shards, micro-batch and the framework's constants. `recompute` is `none`,
    `selective` (all but attention) or `full`."""
    states = _STATES_ADAPTER if adapter else _STATES_FULL
    total = "weights_bytes + gradients_bytes + optimizer_bytes + activations_bytes + overhead_bytes"
    return Sheet(
        (
            *states,
            ("tokens", _TOKENS),
            ("activations_bytes", _STORED[recompute]),
            ("overhead_bytes", _overhead(adapter, quantized, gathered)),
            ("used_bytes", Formula(total, "B", "one GPU at its worst moment")),
            (
                "usable_bytes",
                Formula("floor(memory_bytes * usable_fraction)", "B", "what tensors may fill"),
            ),
        )
    )
