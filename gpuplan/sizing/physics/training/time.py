"""Seconds of one optimizer step of a training run, and of the whole run.

A micro-batch on one GPU: products at a measured fraction of the peak, operand and activation
traffic at the peak bandwidth, the exchanges of tensor, context and expert parallelism. A step:
micro-batches and the pipeline's bubble, the exchange of weights and gradients as far as it is not
hidden, the optimizer. Sources: Narayanan (2021), Rajbhandari (2019), Korthikanti (2022); constants
fitted on public points (`data/training_speed.py`).
"""

from __future__ import annotations

from functools import cache

from gpuplan.plan.records import record
from gpuplan.sizing.evidence.formula import Formula
from gpuplan.sizing.evidence.sheet import Sheet

Line = tuple[str, Formula]

_FITTED = "fitted on public training points"


@record
class Terms:
    """Which parts a step has. `exchange` is of data parallelism: `none`, `gradients`, `weights` or
    `frozen`, `across` nodes or inside one."""

    moe: bool
    adapter: bool
    quantized: bool
    exchange: str
    across: bool
    mamba: bool = False
    tensor: bool = False
    context: bool = False
    pipeline: bool = False
    expert: bool = False


def _line(name: str, expression: str, unit: str, source: str) -> Line:
    return name, Formula(expression, unit, source)


_BASE: tuple[Line, ...] = (
    _line(
        "gradient_accumulation_steps",
        "global_batch / (data_parallel_size * micro_batch)",
        "1",
        "reaches the global batch exactly",
    ),
    _line("passes", "trained_passes + recompute", "1", "forward, backward; recomputation adds one"),
    _line(
        "model_shards",
        "tensor_parallel_size * pipeline_parallel_size",
        "1",
        "GPUs that divide the layers of one replica",
    ),
    _line(
        "rank_tokens",
        "tokens / context_parallel_size * (1 + prediction_layers / layers)",
        "1",
        "of a micro-batch, on one GPU; context parallelism divides sequences, layers that predict "
        "further tokens count as more of them",
    ),
)
_PRODUCTS: tuple[Line, ...] = (
    _line(
        "matmul_seconds",
        "2 * dense_parameters * rank_tokens * passes / (peak * compute * model_shards)",
        "s",
        "forward, and two backward products of all weights that train",
    ),
    _line(
        "head_seconds",
        "2 * vocabulary * hidden_size * rank_tokens * trained_passes * (1 + prediction_heads) "
        "/ (bf16_peak * bf16_compute * model_shards)",
        "s",
        "the output layer, in bf16 always",
    ),
    _line(
        "attention_seconds",
        "(2 * full_width * sequence_length "
        "+ 4 * window_width * min(sequence_length / 2, attended_window)) "
        "* rank_tokens * (3.5 + attention_recompute) "
        "/ (bf16_peak * attention_compute * model_shards)",
        "s",
        "causal scores and values; the backward pass takes 2.5 of the forward one",
    ),
)
_EXPERTS = _line(
    "expert_seconds",
    "2 * routed_parameters * rank_tokens * passes "
    "/ (peak * compute * expert_compute * model_shards)",
    "s",
    f"small products reach a part of large ones' rate; {_FITTED}",
)
_TRAFFIC: tuple[Line, ...] = (
    _line(
        "operand_seconds",
        "operand_factor * 2 * operand_width * rank_tokens * passes / (model_shards * bandwidth)",
        "s",
        f"inputs and outputs of the products; {_FITTED}",
    ),
    _line(
        "elementwise_seconds",
        "elementwise_bytes * hidden_size * layers * streams_factor ** log2(residual_streams) "
        "* rank_tokens * (2 + recompute) "
        "/ (model_shards * bandwidth)",
        "s",
        f"norms, activations, residuals; {_FITTED}",
    ),
    _line(
        "weight_seconds",
        "weight_traffic * rank_parameters / bandwidth",
        "s",
        "reads of the weights and accumulation of gradients in a micro-batch",
    ),
)
_ROUTING = _line(
    "routing_seconds",
    "routing_factor * 2 * routed_width * rank_tokens * (2 + recompute) "
    "/ (model_shards * bandwidth)",
    "s",
    f"sorting tokens by expert and back, their activations; {_FITTED}",
)
_MAMBA = _line(
    "mamba_seconds",
    "mamba_bytes * mamba_width * rank_tokens * 3 / (model_shards * bandwidth)",
    "s",
    f"convolution and scan of state space layers; {_FITTED}",
)
_RANK = {
    False: _line("rank_parameters", "parameters / model_shards", "1", "weights of one GPU"),
    True: _line(
        "rank_parameters",
        "(parameters - expert_parameters_held) / model_shards "
        "+ expert_parameters_held / (pipeline_parallel_size * expert_parallel_size)",
        "1",
        "weights of one GPU; expert parallelism divides the experts",
    ),
}
_TENSOR = _line(
    "tensor_seconds",
    "tensor_exposed * 16 * hidden_size * (tensor_parallel_size - 1) / tensor_parallel_size "
    "* rank_tokens * layers / pipeline_parallel_size / inside_rate * (1 + recompute / 2)",
    "s",
    f"gather and scatter of activations around attention and MLP, as far as exposed; {_FITTED}",
)
_CONTEXT = _line(
    "context_seconds",
    "context_bytes * rank_tokens * (context_parallel_size - 1) * layers "
    "/ (pipeline_parallel_size * inside_rate)",
    "s",
    f"keys and values that pass around the ring, as far as exposed; {_FITTED}",
)
_DISPATCH: tuple[Line, ...] = (
    _line(
        "dispatch_bytes",
        "8 * rank_tokens * exchanged_width * expert_layers / model_shards",
        "B",
        "one copy of every token: dispatch and combine, forward and backward, in bf16",
    ),
    _line(
        "expert_domains",
        "max(1, expert_parallel_size * tensor_parallel_size / domain_gpus)",
        "1",
        "NVLink domains that the experts of a layer span",
    ),
    _line(
        "dispatch_seconds",
        "dispatch_exposed * dispatch_bytes * min(active_experts, 8) * (expert_parallel_size - 1) "
        "/ expert_parallel_size / inside_rate + remote_exposed * dispatch_bytes "
        "* (expert_domains - 1) * (1 - (1 - 1 / expert_domains) ** active_experts) "
        "/ network_rate",
        "s",
        "copies to the experts' GPUs, and one to each other domain that holds some of them, as far "
        f"as exposed; {_FITTED}",
    ),
)
_HOP = _line(
    "hop_seconds", "hop_overhead * virtual_stages", "s", f"stages that wait for another; {_FITTED}"
)
_DEQUANTIZE = _line(
    "dequantize_seconds",
    "3 * dequantize_seconds_each * linear_parameters",
    "s",
    f"three passes over nf4 weights; {_FITTED}",
)
_MICRO: tuple[Line, ...] = (
    _line(
        "micro_seconds",
        "(device_seconds ** 3 + (host_seconds * whole_layers / pipeline_parallel_size) ** 3) "
        "** (1 / 3)",
        "s",
        f"the GPU, or the host that feeds it where that is slower; {_FITTED}",
    ),
)
_COMPUTE = {
    False: _line(
        "compute_seconds",
        "gradient_accumulation_steps * micro_seconds",
        "s",
        "all micro-batches of a step",
    ),
    True: _line(
        "compute_seconds",
        "(gradient_accumulation_steps + bubble * (pipeline_parallel_size - 1) / virtual_stages) "
        "* micro_seconds",
        "s",
        "all micro-batches of a step, and the pipeline's bubble (Narayanan 2021)",
    ),
}
_EXCHANGE = {
    "none": Formula("0 * compute_seconds", "s", "nothing is exchanged"),
    "gradients": Formula(
        "gradients_exposed * 6 * rank_parameters / link_rate",
        "s",
        f"what overlap does not hide; {_FITTED}",
    ),
    "weights": Formula(
        "max(6 * parameters / tensor_parallel_size * gradient_accumulation_steps "
        "* (data_parallel_size - 1) / data_parallel_size / link_rate "
        "- hidden_part * compute_seconds, 0)",
        "s",
        "ZeRO-3: weights twice and gradients once a micro-batch, behind the products",
    ),
    "frozen": Formula(
        "max(2 * frozen_bytes * gradient_accumulation_steps * (data_parallel_size - 1) "
        "/ data_parallel_size / link_rate - hidden_part * compute_seconds, 0)",
        "s",
        "ZeRO-3: frozen weights twice a micro-batch, behind the products",
    ),
}
_LINK = _line(
    "link_rate",
    "min(inside_rate, fabric_rate * fabric_gain "
    "* max(1, gpus_per_node / (tensor_parallel_size * context_parallel_size)))",
    "B/s",
    "rings over nodes use every network card of a node",
)
_OPTIMIZER = _line(
    "update_seconds",
    "update_factor * 18 * rank_parameters / optimizer_shards / bandwidth",
    "s",
    f"states and weights are read and written; {_FITTED}",
)


def _step(terms: Terms) -> tuple[Line, ...]:
    weights = "(dense_parameters + routed_parameters)" if terms.moe else "dense_parameters"
    update = "" if terms.adapter else " + update_seconds"
    return (
        _line(
            "roofline_seconds",
            f"2 * {weights} * rank_tokens * passes * gradient_accumulation_steps "
            "/ (peak * model_shards)",
            "s",
            "no step is faster than its products at the dense peak",
        ),
        _line(
            "step_seconds",
            f"max(roofline_seconds, slower * (compute_seconds + exchange_seconds{update} "
            "+ step_overhead + scale_overhead * log2(max(1, gpus / 8))))",
            "s",
            f"one optimizer step; {_FITTED}",
        ),
        _line(
            "tokens_per_second",
            "global_batch * sequence_length / step_seconds",
            "1/s",
            "all GPUs",
        ),
        _line("time_to_finish", "steps * step_seconds", "s", "the whole run"),
    )


@cache
def time(terms: Terms) -> Sheet:
    """Needs the numbers of `shapes` and `widths`, the division, micro-batch, `memory`'s lines and
    the constants."""
    lines = [*_BASE, *_PRODUCTS, *((_EXPERTS,) if terms.moe else ()), _RANK[terms.moe], *_TRAFFIC]
    lines += [_ROUTING] if terms.moe else []
    lines += [_MAMBA] if terms.mamba else []
    lines += [_TENSOR] if terms.tensor else []
    lines += [_CONTEXT] if terms.context else []
    lines += _DISPATCH if terms.expert else ()
    lines += [_HOP] if terms.pipeline else []
    lines += [_DEQUANTIZE] if terms.quantized else []
    device = " + ".join(name for name, _ in lines if name.endswith("_seconds"))
    lines.append(_line("device_seconds", device, "s", "one micro-batch on the GPU"))
    lines += [_LINK] if terms.across else []
    lines += [*_MICRO, _COMPUTE[terms.pipeline], ("exchange_seconds", _EXCHANGE[terms.exchange])]
    lines += [] if terms.adapter else [_OPTIMIZER]
    return Sheet((*lines, *_step(terms)))
