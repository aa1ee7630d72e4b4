"""Seconds of one step of an inference engine: a decode step of a batch, or the prefill of a prompt.

The kernels (`kernels.py`) are added up with factors, and the engine's own time with overheads, both
calibrated on served models (`data/serving.py`). A step never beats the roofline: the formula takes
the larger.
"""

from __future__ import annotations

from functools import cache

from gpuplan.sizing.evidence.formula import Formula
from gpuplan.sizing.evidence.sheet import Sheet
from gpuplan.sizing.physics.serving import kernels
from gpuplan.sizing.physics.serving.kernels import Line, Phase

__all__ = ["Phase", "step"]


@cache
def step(
    phase: Phase,
    *,
    moe: bool,
    parallel: bool,
    windowed: bool,
    linear: bool = False,
    sparse: bool = False,
    spread: bool = False,
    staged: bool = False,
) -> Sheet:
    """The sheet of a `decode` or `prefill` step of `tokens`, of which `outputs` are sampled;
    `work_seconds` leaves the engine's overhead out. `linear`: some layers have a state; `sparse`:
    latent attention to chosen tokens; `spread`: attention is data-parallel; `staged`: the layers
    are a pipeline over groups of GPUs."""
    parts: list[tuple[str, tuple[Line, ...]]] = [
        ("attention", kernels.attention(phase, windowed=windowed, sparse=sparse)),
        ("projection", kernels.PRODUCTS),
        ("dense", kernels.DENSE),
        ("head", kernels.HEAD),
    ]
    if moe:
        parts.append(("expert", kernels.EXPERTS))
    if linear:
        parts.append(("state", kernels.STATES[phase]))
    if sparse:
        parts.append(
            ("index", kernels.INDEX) if phase == "decode" else ("gathered", kernels.GATHER)
        )
    if parallel:
        parts.append(("all_reduce", kernels.ALL_REDUCE))
    if spread:
        parts.append(("exchange", kernels.EXCHANGE))
    if staged:
        parts.append(("transfer", (kernels.TRANSFER,)))
    lines = [line for _, part in parts for line in part]
    names = frozenset(name for name, _ in parts)
    return Sheet((*lines, kernels.ELEMENTWISE, *_totals(phase, names)))


_FACTORS = {
    "projection": "matmul_factor * ",
    "dense": "matmul_factor * ",
    "attention": "attention_factor * ",
    "state": "attention_factor * ",
    "index": "attention_factor * ",
    "gathered": "attention_factor * ",
    "head": "",
    "expert": "expert_factor * ",
    "all_reduce": "link_factor * ",
    "exchange": "link_factor * ",
    "transfer": "link_factor * ",
}
# The parts that read, and those that compute, at the peak of their format.
READ = ("matmul", "attention", "head", "expert", "state")
COMPUTED_AT = {
    "projection": "matmul",
    "dense": "dense",
    "attention": "bf16",
    "expert": "expert",
}
_COMPUTED = {
    "projection": "projection_flop / matmul_peak",
    "dense": "dense_flop / dense_peak",
    "attention": "attention_flop / bf16_peak",
    "expert": "2 * expert_layers * expert_parameters * routed_tokens * active_experts"
    " / expert_peak",
}


def _totals(phase: Phase, names: frozenset[str]) -> tuple[Line, ...]:
    read = " + ".join(f"{n}_bytes" for n in READ if n == "matmul" or n in names)
    computed = " + ".join(text for n, text in _COMPUTED.items() if n in names)
    work = " + ".join(f"{f}{n}_seconds" for n, f in _FACTORS.items() if n in names)
    work += " + elementwise_factor * elementwise_seconds"
    overhead = "step_overhead + layers * layer_overhead + scaled_inputs * scaling_overhead"
    overhead += " + block_inputs * block_overhead"
    overhead += " + expert_layers * routing_overhead" if "expert" in names else ""
    overhead += " + linear_layers * state_overhead" if "state" in names else ""
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
