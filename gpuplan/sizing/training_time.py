"""Seconds of one optimizer step of a data-parallel run, and of the whole run.

Products at a measured fraction of the peak, operand and activation traffic at the peak bandwidth,
the exchange of weights and gradients as far as it is not hidden behind the products. Sources:
Narayanan (2021), Rajbhandari (2019); constants fitted on public points (`data/training.py`).
"""

from __future__ import annotations

from functools import cache

from gpuplan.sizing.formula import Formula
from gpuplan.sizing.sheet import Sheet

Line = tuple[str, Formula]

_FITTED = "fitted on public training points"
_PRODUCTS: tuple[Line, ...] = (
    (
        "passes",
        Formula("trained_passes + recompute", "1", "forward, backward; recomputation adds one"),
    ),
    (
        "matmul_seconds",
        Formula(
            "2 * matmul_parameters * tokens * passes / (peak * compute)",
            "s",
            "forward, and two backward products of all weights that train",
        ),
    ),
    (
        "head_seconds",
        Formula(
            "2 * vocabulary * hidden_size * tokens * trained_passes / (bf16_peak * bf16_compute)",
            "s",
            "the output layer, in bf16 always",
        ),
    ),
    (
        "attention_seconds",
        Formula(
            "sequence_length * layers * prompt_width * tokens * (3.5 + attention_recompute) "
            "/ (bf16_peak * attention_compute)",
            "s",
            "causal scores and values; the backward pass takes 2.5 of the forward one",
        ),
    ),
)
_EXPERTS: Line = (
    "expert_seconds",
    Formula(
        "2 * expert_layers * active_experts * expert_parameters * tokens * passes "
        "/ (peak * compute * 0.35)",
        "s",
        f"small products reach 0.35 of large ones; {_FITTED}",
    ),
)
_TRAFFIC: tuple[Line, ...] = (
    (
        "operand_seconds",
        Formula(
            "operand_factor * 2 * operand_width * tokens * passes / bandwidth",
            "s",
            f"inputs and outputs of the products; {_FITTED}",
        ),
    ),
    (
        "elementwise_seconds",
        Formula(
            "elementwise_bytes * hidden_size * layers * tokens * (2 + recompute) / bandwidth",
            "s",
            f"norms, activations, residuals; {_FITTED}",
        ),
    ),
    (
        "weight_seconds",
        Formula(
            "weight_traffic * parameters / bandwidth",
            "s",
            "reads of the weights and accumulation of gradients in a micro-batch",
        ),
    ),
)
_DEQUANTIZE: Line = (
    "dequantize_seconds",
    Formula("3 * 8.9e-12 * linear_parameters", "s", f"three passes over nf4 weights; {_FITTED}"),
)
_MICRO: Line = (
    "micro_seconds",
    Formula(
        "(device_seconds ** 3 + (host_seconds * layers) ** 3) ** (1 / 3)",
        "s",
        f"the GPU, or the host that feeds it where that is slower; {_FITTED}",
    ),
)
_COMPUTE: Line = (
    "compute_seconds",
    Formula("gradient_accumulation_steps * micro_seconds", "s", "all micro-batches of a step"),
)
_EXCHANGE = {
    "none": Formula("0 * compute_seconds", "s", "nothing is exchanged"),
    "gradients": Formula(
        "0.30 * 6 * parameters / link_rate", "s", f"what overlap does not hide; {_FITTED}"
    ),
    "weights": Formula(
        "max(6 * parameters * gradient_accumulation_steps * (gpus - 1) / gpus / link_rate "
        "- 0.6 * compute_seconds, 0)",
        "s",
        "ZeRO-3: weights twice and gradients once a micro-batch, behind 60 % of the products",
    ),
    "frozen": Formula(
        "max(2 * frozen_bytes * gradient_accumulation_steps * (gpus - 1) / gpus / link_rate "
        "- 0.6 * compute_seconds, 0)",
        "s",
        "ZeRO-3: frozen weights twice a micro-batch, behind 60 % of the products",
    ),
}
_LINK: Line = (
    "link_rate",
    Formula(
        "min(inside_rate, fabric_rate * gpus_per_node)",
        "B/s",
        "rings over nodes use every network card of a node",
    ),
)
_OPTIMIZER: Line = (
    "update_seconds",
    Formula(
        "1.49 * 18 * parameters / optimizer_shards / bandwidth",
        "s",
        f"states and weights are read and written; {_FITTED}",
    ),
)


def _step(moe: bool, adapter: bool) -> tuple[Line, ...]:
    flop = "2 * matmul_parameters" + (
        " + 2 * expert_layers * active_experts * expert_parameters" if moe else ""
    )
    update = "" if adapter else " + update_seconds"
    return (
        (
            "roofline_seconds",
            Formula(
                f"({flop}) * tokens * passes * gradient_accumulation_steps / peak",
                "s",
                "no step is faster than its products at the dense peak",
            ),
        ),
        (
            "step_seconds",
            Formula(
                f"max(roofline_seconds, slower * (compute_seconds + exchange_seconds{update} "
                "+ 0.0077 + 0.0046 * log2(max(1, gpus / 8))))",
                "s",
                f"one optimizer step; {_FITTED}",
            ),
        ),
        (
            "tokens_per_second",
            Formula("global_batch * sequence_length / step_seconds", "1/s", "all GPUs"),
        ),
        ("time_to_finish", Formula("steps * step_seconds", "s", "the whole run")),
    )


@cache
def time(*, moe: bool, adapter: bool, quantized: bool, exchange: str, across: bool) -> Sheet:
    """Needs shape, micro-batch, `memory`'s lines and the constants. `exchange` is `none`,
    `gradients`, `weights` or `frozen`, `across` nodes or inside one."""
    lines = [*_PRODUCTS, *((_EXPERTS,) if moe else ()), *_TRAFFIC]
    lines += [_DEQUANTIZE] if quantized else []
    device = " + ".join(name for name, _ in lines if name.endswith("_seconds"))
    lines.append(("device_seconds", Formula(device, "s", "one micro-batch on the GPU")))
    lines += [_LINK] if across else []
    lines += [_MICRO, _COMPUTE, ("exchange_seconds", _EXCHANGE[exchange])]
    lines += [] if adapter else [_OPTIMIZER]
    return Sheet((*lines, *_step(moe, adapter)))
