"""Bytes on one GPU of a training run at its worst moment: the end of the forward pass, or the
optimizer's step, whichever adds more to the states.

Sources: Rajbhandari (2019) for what is divided over the data-parallel GPUs, Narayanan (2021) and
Korthikanti (2022) for tensor, sequence and pipeline parallelism; constants fitted on public points.
FlashAttention keeps no scores, so `selective` recomputation stores what `none` does.
"""

from __future__ import annotations

from functools import cache

from gpuplan.sizing.evidence.formula import Formula
from gpuplan.sizing.evidence.sheet import Sheet
from gpuplan.sizing.memory.serving import margin

Line = tuple[str, Formula]

_ROUTED = "mlp_matrices * hidden_size * expert_width * experts * expert_layers"
_STAGE = "(tensor_parallel_size * pipeline_parallel_size)"
_STEP_BYTES = 12  # DeepSpeed: an fp32 gradient and two temporaries of a group of parameters
_STEP_ADAPTER = 8  # torch's multi-tensor AdamW: two fp32 temporaries
_LAYER = "(17.5 * hidden_size + 6.8 * mlp_width)"


def _local(parallel: bool, moe: bool) -> Line:
    """Parameters of one GPU before replicas divide them."""
    text, why = "parameters", "every GPU has all layers"
    if parallel:
        why = "tensor and pipeline parallelism divide them; experts are whole on some GPUs"
        text = f"parameters / {_STAGE}"
        if moe:
            groups = "max(tensor_parallel_size, expert_parallel_size) * pipeline_parallel_size"
            text = f"(parameters - {_ROUTED}) / {_STAGE} + {_ROUTED} / ({groups})"
    return "local_parameters", Formula(text, "1", why)


def _states_full(parallel: bool, moe: bool) -> tuple[Line, ...]:
    return (
        _local(parallel, moe),
        (
            "weights_bytes",
            Formula("ceil(2 * local_parameters / weight_shards)", "B", "bf16; ZeRO-3 divides them"),
        ),
        (
            "gradients_bytes",
            Formula(
                "ceil(gradient_bytes_each * local_parameters / gradient_shards)",
                "B",
                "ZeRO-2 divides them",
            ),
        ),
        (
            "optimizer_bytes",
            Formula(
                "ceil(optimizer_bytes_each * local_parameters / optimizer_shards)",
                "B",
                "ZeRO-1 divides them",
            ),
        ),
        (
            "step_bytes",
            Formula(
                f"min({_STEP_BYTES} * local_parameters / optimizer_shards, deepspeed_bytes)",
                "B",
                "DeepSpeed updates a group at a time: its fp32 gradient and temporaries",
            ),
        ),
    )


def _states_adapter(parallel: bool) -> tuple[Line, ...]:
    split = f" / {_STAGE}" if parallel else ""
    return (
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
                f"ceil((frozen_bytes + 2 * trained_parameters){split} / weight_shards)",
                "B",
                "ZeRO-3 divides them",
            ),
        ),
        (
            "gradients_bytes",
            Formula(
                f"ceil(2 * trained_parameters{split} / gradient_shards)",
                "B",
                "of the adapters only",
            ),
        ),
        (
            "optimizer_bytes",
            Formula(
                f"ceil(12 * trained_parameters{split} / optimizer_shards)",
                "B",
                "fp32 copy and two moments of the adapters",
            ),
        ),
        (
            "step_bytes",
            Formula(
                f"{_STEP_ADAPTER} * trained_parameters{split} / optimizer_shards",
                "B",
                "temporaries of the optimizer",
            ),
        ),
    )


def _stored(recompute: str, parallel: bool) -> tuple[Line, ...]:
    """Of the layers, of the loss. The first stage of a pipeline keeps as many micro-batches as
    there are stages, a little more where stages are interleaved."""
    tensor = " / (tensor_parallel_size * context_parallel_size)" if parallel else ""
    flight = ""
    if parallel:
        flight = " * (1 + (pipeline_parallel_size - 1) / (pipeline_parallel_size * virtual_stages)"
        flight += " * min(1, virtual_stages - 1))"
    loss = f"loss_bytes * vocabulary * tokens{tensor}"
    if recompute == "none":
        text = f"layers * tokens * (13.9 * hidden_size + 7.9 * mlp_width){tensor}{flight} + {loss}"
        why = "every layer's inputs of the backward pass, and the loss; fitted on public points"
    else:
        kept = "1.6" if recompute == "full" else "(1.6 + 2)"
        work = f"max({_LAYER} * tokens{tensor}, {loss})"
        text = f"{kept} * layers * hidden_size * tokens{tensor}{flight} + {work}"
        why = "one checkpoint a layer, then one layer's working set or the loss; fitted"
        if recompute == "selective":
            why = "as with full recomputation, and what attention gave, in bf16, a layer"
    tokens = "micro_batch * sequence_length"
    return (
        ("tokens", Formula(tokens, "1", "tokens of a micro-batch")),
        ("stored_bytes", Formula(text, "B", why)),
        (
            "activations_bytes",
            Formula(
                "ceil(max(stored_bytes, step_bytes))",
                "B",
                "what the backward pass needs, or the optimizer's step after it",
            ),
        ),
    )


def _own(adapter: bool, quantized: bool, gathered: bool) -> Line:
    """The framework's own, dequantized weights, and whole layers while they are used. DeepSpeed's
    buffers hold them where it gathers them for adapters."""
    text = "fixed_bytes" + (" + 2 * hidden_size * mlp_width * unpacked_copies" if quantized else "")
    if gathered and adapter:
        text += " + max(3 * frozen_bytes / layers, deepspeed_bytes)"
    elif gathered:
        text += " + 3 * 2 * local_parameters / layers + 2 * vocabulary * hidden_size"
    return "own_bytes", Formula(text, "B", "framework, gathered layers, buffers of DeepSpeed")


@cache
def memory(
    *,
    adapter: bool,
    quantized: bool,
    recompute: str,
    gathered: bool,
    parallel: bool = False,
    moe: bool = False,
) -> Sheet:
    """Needs shape, shards, micro-batch, the framework's constants and `confidence_memory`.
    `recompute` is `none`, `selective` (all but attention) or `full`; `parallel` adds the sizes of
    tensor, pipeline, context and expert parallelism, with sequences divided as tensors are."""
    states = _states_adapter(parallel) if adapter else _states_full(parallel, moe)
    parts = "weights_bytes + gradients_bytes + optimizer_bytes + activations_bytes"
    usable = Formula("floor(memory_bytes * usable_fraction)", "B", "what tensors may fill")
    return Sheet(
        (
            *states,
            *_stored(recompute, parallel),
            _own(adapter, quantized, gathered),
            *margin(parts).lines,
            ("usable_bytes", usable),
        )
    )
