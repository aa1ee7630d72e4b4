"""The constants of a training step for one setting: GPU, precision, framework, kind of model."""

from __future__ import annotations

from collections.abc import Mapping

from gpuplan.catalog.model import Gpu
from gpuplan.models.model import Transformer
from gpuplan.plan.records import record
from gpuplan.sizing.data.training_speed import CONSTANTS, SOURCE
from gpuplan.sizing.evidence.formula import Quantity, constant

# Architectures whose own kernels nobody published training points of.
NEAREST = {"turing": "ampere", "volta": "ampere"}
LATE = 5.1  # the MLPerf round that brought new kernels for Blackwell
GRAPHS = 4.0  # the release of Megatron-Bridge (26.06) that brought grouped kernels and graphs
MIDDLE = 3.0  # the release (26.04) that the constants are of


@record
class Traits:
    """What decides the constants. `release` counts Megatron-Bridge's, or is the MLPerf round;
    `domain_gpus` are joined by NVLink."""

    generation: str
    gpu: str
    precision: str
    framework: str
    mixture: bool
    hybrid: bool
    grace: bool
    ultra: bool
    adapter: bool
    quantized: bool
    many: bool
    release: float = MIDDLE


def traits(
    model: Transformer, gpu: Gpu, precision: str, framework: str, **how: bool | float
) -> Traits:
    """`how`: `adapter`, `quantized`, `many`, `release` of `Traits`."""
    architecture, mixture = gpu.architecture, model.experts is not None
    hybrid = model.linear is not None
    return Traits(
        generation=NEAREST.get(architecture, architecture),
        gpu=gpu.identifier,
        precision=supported(architecture, precision, mixture=mixture),
        framework=framework,
        mixture=mixture,
        hybrid=hybrid,
        grace=gpu.identifier.startswith("gb"),
        ultra=architecture == "blackwell" and "300" in gpu.identifier,
        **how,  # type: ignore[arg-type]
    )


def supported(architecture: str, precision: str, *, mixture: bool) -> str:
    """The precision whose measured rate stands for `precision`: nvfp4 was measured on dense models
    only, so experts count as in mxfp8."""
    name = NEAREST.get(architecture, architecture)
    if precision == "nvfp4" and mixture:
        precision = "mxfp8"
    for candidate in (precision, "fp8" if precision != "bf16" else "bf16", "bf16"):
        if f"compute.{name}.{candidate}" in CONSTANTS:
            return candidate
    return "bf16"


def factors(of: Traits, c: Mapping[str, float] = CONSTANTS) -> dict[str, float]:
    """The constants that a step's sheet names, without `peak`."""
    name = of.generation if f"compute.{of.generation}.bf16" in c else "ampere"
    low = of.precision if f"compute.{name}.{of.precision}" in c else "bf16"
    faster = (c["ultra"] if of.ultra else 1.0) * (c["grace"] if of.grace else 1.0)
    faster *= c.get(f"gpu.{of.gpu}", 1.0)
    higher = c["nvfp4_ultra"] if of.ultra and low == "nvfp4" else 1.0
    cast = 1.0 if low == "bf16" else c["cast.nvfp4" if low == "nvfp4" else "cast"]
    old = c["foundry_attention"] if of.framework == "llm-foundry" else 1.0
    adapter = c["host.qlora" if of.quantized else "host.lora"]
    host = 0.0
    if of.framework == "trainer":
        host = adapter if of.adapter else c["host.full"]
    elif of.framework == "megatron-bridge" and of.mixture:
        host = c["host.experts.grace" if of.grace else "host.experts"]
        host *= c["host.graphs"] if of.release >= GRAPHS else 1.0
    return {
        "compute": c[f"compute.{name}.{low}"] * faster * higher,
        "bf16_compute": c[f"compute.{name}.bf16"] * faster,
        "attention_compute": c[f"attention.{name}"] * faster * old,
        "operand_factor": c[f"operands.{name}"] * cast,
        "elementwise_bytes": c["elementwise"] * (c["elementwise_mixture"] if of.mixture else 1.0),
        "expert_compute": c["expert.bf16" if low == "bf16" else "expert"],
        "routing_factor": c["routing"],
        "mamba_bytes": c["mamba"],
        "streams_factor": c["streams"],
        "tensor_exposed": c["tensor"],
        "context_bytes": c["context"],
        "dispatch_exposed": c["dispatch"],
        "remote_exposed": c["remote"],
        "hop_overhead": c["hop"],
        "bubble": c["bubble"],
        "gradients_exposed": c["gradients"],
        "hidden_part": c["hidden"],
        "fabric_gain": c["fabric"],
        "update_factor": c["update"],
        "step_overhead": c["step"],
        "scale_overhead": c["scale"],
        "dequantize_seconds_each": c["dequantize"],
        "host_seconds": host,
        "slower": slower(of, c),
    }


def slower(of: Traits, c: Mapping[str, float]) -> float:
    """The framework's factor on a step."""
    blackwell = of.generation == "blackwell"
    if of.framework == "trainer":
        found = c["trainer"]
        if of.adapter:
            found *= c["trainer_adapter"] * (c["trainer_parallel"] if of.many else 1.0)
        return found
    found = c["adapter"] if of.adapter else 1.0
    if of.framework == "mlperf":
        found *= c["mlperf"]
        if of.release >= LATE and blackwell:
            found /= c["mlperf_late"]
    elif of.framework == "torchtune":
        found *= c["torchtune"]
    elif of.framework == "megatron-bridge":
        found /= c["release_mixture" if of.mixture else "release"] ** (of.release - MIDDLE)
        if of.mixture and not of.hybrid and blackwell and of.release >= GRAPHS:
            found /= c["graphs"]
    return found


UNITS = {
    "elementwise_bytes": "B",
    "mamba_bytes": "B",
    "context_bytes": "B",
    "hop_overhead": "s",
    "step_overhead": "s",
    "scale_overhead": "s",
    "dequantize_seconds_each": "s",
    "host_seconds": "s",
}


def scope(of: Traits) -> dict[str, Quantity]:
    """The same with units and their source."""
    cited = f"{SOURCE}: {of.generation}, {of.precision}, {of.framework}"
    return {n: constant(v, UNITS.get(n, "1"), cited) for n, v in factors(of).items()}
