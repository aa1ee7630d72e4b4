"""Seconds of one step of an inference engine: a decode step of a batch, or the prefill of a prompt.

Each kernel takes its launches plus the root of the squares of its reading and its computing time,
with measured efficiencies (`efficiency.py`); factors and overheads of the engine are calibrated on
served models (`data/serving.py`). A step never beats the roofline: the formula takes the larger.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

from gpuplan.sizing.formula import Formula
from gpuplan.sizing.sheet import Sheet

Line = tuple[str, Formula]
Phase = Literal["decode", "prefill"]

_KERNEL = "launches, and the root of squares of reading and computing"
_MATMUL = Formula(
    "matmul_launches * matmul_launch + sqrt((matmul_bytes / (bandwidth * matmul_read)) ** 2 "
    "+ (matmul_flop / (matmul_peak * compute_share * matmul_compute)) ** 2)",
    "s",
    _KERNEL,
)
_ATTENTION = Formula(
    "layers * {0}_launch + sqrt((attention_bytes / (bandwidth * {0}_read)) ** 2 "
    "+ (attention_flop / (bf16_peak * compute_share * {0}_compute)) ** 2)".format("attention"),
    "s",
    _KERNEL,
)
_EXPERTS: tuple[Line, ...] = (
    (
        "touched_experts",
        Formula(
            "experts * (1 - exp(-0.7 * tokens * active_experts / experts))",
            "1",
            "experts that a step reads; 0.7: measured routing is less even than chance",
        ),
    ),
    (
        "expert_bytes",
        Formula(
            "expert_layers * touched_experts * expert_parameters * expert_bytes_each",
            "B",
            "the weights of the touched experts",
        ),
    ),
    (
        "expert_flop",
        Formula(
            "expert_layers * 2 * expert_parameters "
            "* max(tokens * active_experts, 8 * touched_experts)",
            "FLOP",
            "two operations a weight and token; a tile holds at least 8 tokens",
        ),
    ),
    (
        "expert_seconds",
        Formula(
            "expert_layers * expert_launch + sqrt((expert_bytes / (bandwidth * expert_read)) ** 2 "
            "+ (expert_flop / (expert_peak * compute_share * expert_compute)) ** 2)",
            "s",
            _KERNEL,
        ),
    ),
)
_HEAD: tuple[Line, ...] = (
    (
        "head_bytes",
        Formula("hidden_size * vocabulary * 2 / tensor_parallel_size", "B", "bf16 weights"),
    ),
    (
        "head_seconds",
        Formula(
            "head_launch + sqrt((head_bytes / (bandwidth * head_read)) ** 2 "
            "+ (head_bytes * outputs / (bf16_peak * compute_share * head_compute)) ** 2)",
            "s",
            _KERNEL,
        ),
    ),
)
_ALL_REDUCE: Line = (
    "all_reduce_seconds",
    Formula(
        "2 * layers * (link_launch + 2 * (tensor_parallel_size - 1) / tensor_parallel_size "
        "* tokens * hidden_size * 2 / link_rate)",
        "s",
        "two ring all-reduces a layer of bf16 activations; nccl-tests PERFORMANCE.md",
    ),
)
_ELEMENTWISE: Line = (
    "elementwise_seconds",
    Formula(
        "2 * layers * tokens * (12 * hidden_size + 4 * mlp_width / tensor_parallel_size) "
        "/ bandwidth",
        "s",
        "norms, rotary embedding, activations: bf16 reads and writes of a token",
    ),
)
_MATMUL_TRAFFIC: tuple[Line, ...] = (
    (
        "matmul_bytes",
        Formula("matmul_parameters * matmul_bytes_each", "B", "every weight is read once a step"),
    ),
    (
        "matmul_flop",
        Formula("2 * tokens * matmul_parameters", "FLOP", "two operations a weight and token"),
    ),
    ("matmul_seconds", _MATMUL),
)
_DECODE: tuple[Line, ...] = (
    (
        "attention_bytes",
        Formula("sequences * attended * cache_width * kv_bytes_each", "B", "the KV cache is read"),
    ),
    (
        "attention_flop",
        Formula("2 * sequences * attended * score_width", "FLOP", "scores and weighted values"),
    ),
)
_PREFILL: tuple[Line, ...] = (
    (
        "attention_bytes",
        Formula("2 * layers * prompt * prompt_io_width", "B", "queries, keys, values, outputs"),
    ),
    (
        "attention_flop",
        Formula("prompt * attended * prompt_width", "FLOP", "causal scores and weighted values"),
    ),
)


_ATTENDED = {
    ("decode", False): Formula("layers * context", "1", "cached tokens of a sequence, over layers"),
    ("decode", True): Formula(
        "full_layers * context + sliding_layers * min(context, sliding_window)",
        "1",
        "cached tokens that a sequence attends to, over the layers",
    ),
    ("prefill", False): Formula("layers * prompt", "1", "tokens of the prompt, over the layers"),
    ("prefill", True): Formula(
        "full_layers * prompt + sliding_layers * min(prompt, 2 * sliding_window)",
        "1",
        "tokens that a prompt attends to, over the layers; the causal mask halves the others",
    ),
}


@cache
def step(phase: Phase, *, moe: bool, parallel: bool, windowed: bool) -> Sheet:
    """The sheet of a `decode` or `prefill` step of `tokens`, of which `outputs` are sampled;
    `work_seconds` leaves the engine's overhead out."""
    attention = _DECODE if phase == "decode" else _PREFILL
    lines = [("attended", _ATTENDED[phase, windowed]), *attention]
    lines.append(("attention_seconds", _ATTENTION))
    lines += [*_MATMUL_TRAFFIC, *(_EXPERTS if moe else ()), *_HEAD]
    lines += [*((_ALL_REDUCE,) if parallel else ()), _ELEMENTWISE]
    return Sheet((*lines, *_totals(phase, moe=moe, parallel=parallel)))


def _totals(phase: Phase, *, moe: bool, parallel: bool) -> tuple[Line, ...]:
    expert = " + expert_{0}" if moe else ""
    read = "matmul_bytes + attention_bytes + head_bytes" + expert.format("bytes")
    computed = "matmul_flop / matmul_peak + attention_flop / bf16_peak" + (
        " + 2 * expert_layers * expert_parameters * tokens * active_experts / expert_peak"
        if moe
        else ""
    )
    work = "matmul_factor * matmul_seconds + attention_factor * attention_seconds + head_seconds"
    work += " + expert_factor * expert_seconds" if moe else ""
    work += " + link_factor * all_reduce_seconds" if parallel else ""
    work += " + elementwise_factor * elementwise_seconds"
    overhead = "step_overhead + layers * layer_overhead + scaled_inputs * scaling_overhead"
    overhead += " + expert_layers * routing_overhead" if moe else ""
    overhead += " + sequences * sequence_overhead" if phase == "decode" else ""
    return (
        (
            "roofline_seconds",
            Formula(
                f"max(({read}) / bandwidth, ({computed}) / compute_share)",
                "s",
                "no step is faster than its reads at peak bandwidth, nor its products at peak",
            ),
        ),
        (
            "work_seconds",
            Formula(f"max(roofline_seconds, {work})", "s", "kernels, calibrated on served models"),
        ),
        (
            "overhead_seconds",
            Formula(overhead, "s", "the engine's own time, calibrated on served models"),
        ),
        ("seconds", Formula("work_seconds + overhead_seconds", "s", "one step")),
    )
