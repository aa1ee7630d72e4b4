"""Bytes on one GPU of a training run at its worst moment: the end of the forward pass, or the
optimizer's step, whichever adds more to the states.

Sources: Rajbhandari (2019) for what is divided over the data-parallel GPUs, Narayanan (2021) and
Korthikanti (2022) for tensor, sequence and pipeline parallelism; constants fitted on public points
(`data/training_memory.py`). FlashAttention keeps no scores, so `selective` recomputation stores
what `none` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from gpuplan.sizing.data.training_memory import ADAPTER, FRAMEWORKS, NF4_BYTES, OPTIMIZERS, SOURCE
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.sheet import Scope, Sheet, sheet
from gpuplan.sizing.memory.margin import corrected

_STAGE = "(tensor_parallel_size * pipeline_parallel_size)"
_ROUTED = "mlp_matrices * hidden_size * expert_width * experts * expert_layers"


def framework_memory(
    framework: str,
    optimizer: str,
    lora_rank: Quantity | None,
    *,
    adapter: bool,
    quantized: bool,
    constants: Mapping[str, Mapping[str, float]] = FRAMEWORKS,
) -> Scope:
    """The `constants` of a framework, of an optimizer, of adapters. Bytes `…_each` are of one
    parameter; those of activations of one token, and of one element of a width in one layer."""
    own = constants[framework]
    gradient, states, step = ADAPTER if adapter else OPTIMIZERS[optimizer]
    numbers = {
        "loss_bytes": own["loss_quantized" if quantized else "loss"],
        "fixed_bytes": own["fixed"] + (own["fixed_quantized"] if quantized else 0.0),
        "gathered_bytes": own["gathered"],
        "checkpoint_bytes_each": own["stored"],
        "hidden_bytes_each": own["hidden"],
        "wide_bytes_each": own["wide"],
        "layer_hidden_bytes_each": own["layer_hidden"],
        "layer_wide_bytes_each": own["layer_wide"],
    }
    cited = f"{SOURCE}, {framework}"
    scope = {name: constant(number, "B", cited) for name, number in numbers.items()}
    states_of = "fp32 copy and moments of the adapters" if adapter else optimizer
    scope |= {
        "unpacked_copies": constant(own["unpack"], "1", cited),
        "group_parameters": constant(own["group"], "1", f"updated at once, {framework}"),
        "gradient_bytes_each": constant(gradient, "B", f"gradient, {states_of}"),
        "optimizer_bytes_each": constant(states, "B", states_of),
        "step_bytes_each": constant(step, "B", f"temporaries of an update, {states_of}"),
        "frozen_bytes_each": constant(
            NF4_BYTES if quantized else 2.0, "B", "a frozen weight, nf4" if quantized else "bf16"
        ),
    }
    return scope if lora_rank is None else scope | {"lora_rank": lora_rank}


def _full(parallel: bool, moe: bool) -> Sheet:
    local, why = "parameters", "every GPU has all layers"
    states, owners = "local_parameters / optimizer_shards", "ZeRO-1 divides them"
    if parallel:
        why = "tensor and pipeline parallelism divide them; experts are whole on some GPUs"
        local = f"parameters / {_STAGE}"
        if moe:
            groups = "max(tensor_parallel_size, expert_parallel_size) * pipeline_parallel_size"
            local = f"(parameters - {_ROUTED}) / {_STAGE} + {_ROUTED} / ({groups})"
            ranks = "max(tensor_parallel_size * optimizer_shards, expert_parallel_size)"
            states = (
                f"((parameters - {_ROUTED}) / ({_STAGE} * optimizer_shards)"
                f" + {_ROUTED} / (pipeline_parallel_size * {ranks}))"
            )
            owners += "; those of an expert lie on the GPUs that hold it"
    return sheet(f"""
        local_parameters: 1 = {local}  # {why}
        weights_bytes: B = ceil(bf16_bytes * local_parameters / weight_shards)
            # bf16; ZeRO-3 divides them
        gradients_bytes: B = ceil(gradient_bytes_each * local_parameters / gradient_shards)
            # ZeRO-2 divides them
        optimizer_bytes: B = ceil(optimizer_bytes_each * {states})
            # {owners}
        step_bytes: B = step_bytes_each * min(local_parameters / optimizer_shards, group_parameters)
            # a group at a time: its fp32 gradient and temporaries
    """)


def _adapters(parallel: bool) -> Sheet:
    split = f" / {_STAGE}" if parallel else ""
    return sheet(f"""
        trained_parameters: 1 = lora_rank * adapter_width
            # rank x (in + out) beside every linear layer
        frozen_bytes: B = linear_parameters * frozen_bytes_each + other_parameters * bf16_bytes
            # weights that are not trained; embeddings and norms in bf16
        weights_bytes: B = ceil((frozen_bytes + bf16_bytes * trained_parameters){split}
            / weight_shards)  # ZeRO-3 divides them
        gradients_bytes: B = ceil(gradient_bytes_each * trained_parameters{split} / gradient_shards)
            # of the adapters only
        optimizer_bytes: B = ceil(optimizer_bytes_each * trained_parameters{split}
            / optimizer_shards)  # of the adapters only
        step_bytes: B = step_bytes_each * trained_parameters{split} / optimizer_shards
            # temporaries of the optimizer
    """)


def _activations(recompute: str, parallel: bool) -> Sheet:
    """Of the layers, of the loss. The first stage of a pipeline keeps as many micro-batches as
    there are stages, a little more where stages are interleaved."""
    split = " / (tensor_parallel_size * context_parallel_size)" if parallel else ""
    in_flight = ""
    if parallel:
        in_flight = (
            " * (1 + (pipeline_parallel_size - 1) / (pipeline_parallel_size * virtual_stages)"
            " * min(1, virtual_stages - 1))"
        )
    if recompute == "none":
        kept = "(hidden_bytes_each * hidden_size + wide_bytes_each * mlp_width)"
        moment, why = "+ loss_output_bytes", "every layer's inputs of the backward pass"
    else:
        kept, why = "checkpoint_bytes_each * hidden_size", "one checkpoint a layer"
        if recompute == "selective":
            kept = "(checkpoint_bytes_each + bf16_bytes) * hidden_size"
            why = "one checkpoint a layer and what attention gave, in bf16"
        moment = (
            "+ max((layer_hidden_bytes_each * hidden_size + layer_wide_bytes_each * mlp_width) "
            f"* tokens{split}, loss_output_bytes)"
        )
    return sheet(f"""
        tokens: 1 = micro_batch * sequence_length  # tokens of a micro-batch
        loss_output_bytes: B = loss_bytes * vocabulary * tokens{split}
            # logits, their copies and gradients
        stored_bytes: B = layers * tokens * {kept}{split}{in_flight} {moment}
            # {why}; then one layer's working set or the loss
        activations_bytes: B = ceil(max(stored_bytes, step_bytes))
            # what the backward pass needs, or the optimizer's step after it
    """)


def _own(adapter: bool, quantized: bool, gathered: bool) -> Sheet:
    """The framework's own, dequantized weights, and whole layers while they are used. DeepSpeed's
    buffers hold them where it gathers them for adapters."""
    text = "fixed_bytes"
    if quantized:
        text += " + bf16_bytes * hidden_size * mlp_width * unpacked_copies"
    if gathered and adapter:
        text += " + max(3 * frozen_bytes / layers, gathered_bytes)"
    elif gathered:
        text += " + bf16_bytes * (3 * local_parameters / layers + vocabulary * hidden_size)"
    return sheet(f"own_bytes: B = {text}  # framework, gathered layers, buffers")


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
    """Needs the shape, shards, the micro-batch, `framework_memory` and `margin.interval`.
    `recompute` is `none`, `selective` (all but attention) or `full`; `parallel` adds the sizes of
    tensor, pipeline, context and expert parallelism, with sequences divided as tensors are."""
    return (
        (_adapters(parallel) if adapter else _full(parallel, moe))
        + _activations(recompute, parallel)
        + _own(adapter, quantized, gathered)
        + corrected("weights_bytes + gradients_bytes + optimizer_bytes + activations_bytes")
        + sheet("""
        usable_bytes: B = floor(memory_bytes * usable_fraction)  # what tensors may fill
    """)
    )
