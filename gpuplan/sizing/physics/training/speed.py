"""The constants of a training step for one setting: GPU, precision, framework, kind of model."""

from __future__ import annotations

import math
from collections.abc import Mapping

from gpuplan.catalog.model import Gpu, StandIn
from gpuplan.frozen import record
from gpuplan.models.model import Transformer
from gpuplan.plan.model import Shortfall
from gpuplan.sizing.data.training_speed import CONSTANTS, SOURCE
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.intervals import Factors
from gpuplan.sizing.hardware.measured import NotMeasured, generation, lacking

# Architectures that public training points were measured on.
GENERATIONS = frozenset(name.split(".")[1] for name in CONSTANTS if name.startswith("compute."))
LATE = 5.1  # the MLPerf round that brought new kernels for Blackwell
DISPATCHED = 3.0  # its release (26.04) that dispatches to other nodes once a node on all GPUs
DEEPEP = ("8.", "9.")  # compute capabilities that it did so on before; others by their full names
# Its first release (26.02) on cuDNN 9.17, whose attention reaches 0.53 of a GB200's peak, forward
# and backward at 8,192 tokens, where 9.10 to 9.13 reach 0.445 of a B200's (NVIDIA/cudnn-frontend,
# benchmark/sdpa_benchmark_training, commits b372d39 and 0b1577c). That no earlier one has it is
# inferred from dates.
CUDNN_9_17 = 2.0
# Where Megatron's gradients are summed in bf16 (Megatron-Bridge, perf_recipes/_common.py, commit
# 067f987d; NeMo-Framework-Launcher, examples/training: `grad_sync_dtype=bf16`), elsewhere in fp32.
BF16_GRADIENTS = frozenset({"megatron-bridge", "mlperf"})
GRAPHS = 4.0  # the release of Megatron-Bridge (26.06) that brought grouped kernels and graphs
NVFP4_BYTES = 0.5 + 1 / 16  # a weight, and one scale of 8 bits for 16 of them
MIDDLE_ROUND = 5.0  # the round of MLPerf Training that the constants are of
MIDDLE = 3.0  # the release (26.04) that the constants are of


@record
class Traits:
    """What decides the constants. `generation` is of the GPU, else of its `stand_in`; `release`
    counts Megatron-Bridge's, or is the MLPerf round. `asked` is the precision that was asked for,
    `power` the part of its own that a GPU may draw, `eager` a framework that does not compile."""

    generation: str
    stand_in: str
    gpu: str
    capability: str
    superchip: bool
    precision: str
    asked: str
    framework: str
    mixture: bool
    hybrid: bool
    adapter: bool
    quantized: bool
    many: bool
    release: float = MIDDLE
    power: float = 1.0
    eager: bool = False


def traits(
    model: Transformer, gpu: Gpu, precision: str, framework: str, **how: bool | float
) -> Traits:
    """`how`: the last fields of `Traits`, by name. Raises `NotMeasured`."""
    mixture, card = model.experts is not None, measured_on(gpu)
    return Traits(
        generation=card.architecture,
        stand_in="" if card is gpu else card.identifier,
        gpu=gpu.identifier,
        capability=gpu.compute_capability or "",
        superchip=gpu.superchip,
        precision=supported(gpu, precision, mixture=mixture),
        asked=precision,
        framework=framework,
        mixture=mixture,
        hybrid=model.linear is not None,
        **how,  # type: ignore[arg-type]
    )


def unmeasured(gpu: Gpu) -> tuple[Shortfall, ...]:
    """The gate that a GPU fails for which no measured training runs stand."""
    return () if generation(gpu, "training", GENERATIONS) else lacking("training")


def measured_on(gpu: Gpu) -> Gpu | StandIn:
    """The GPU whose architecture's constants are taken. Raises `NotMeasured`."""
    card = generation(gpu, "training", GENERATIONS)
    if card is None:
        raise NotMeasured(gpu, "training")
    return card


def supported(gpu: Gpu, precision: str, *, mixture: bool) -> str:
    """The precision whose measured rate stands for `precision`: nvfp4 was measured on dense models
    only, so experts count as in mxfp8. Raises `NotMeasured`."""
    name = measured_on(gpu).architecture
    if precision == "nvfp4" and mixture:
        precision = "mxfp8"
    for candidate in (precision, "fp8" if precision != "bf16" else "bf16", "bf16"):
        if f"compute.{name}.{candidate}" in CONSTANTS:
            return candidate
    return "bf16"


def factors(of: Traits, c: Mapping[str, float] = CONSTANTS) -> dict[str, float]:
    """The constants that a step's sheet names, without `peak`."""
    name, low = of.generation, of.precision
    faster = c.get(f"capability.{of.capability}", 1.0) * c.get(f"gpu.{of.gpu}", 1.0)
    faster *= c.get(f"superchip.{name}", 1.0) if of.superchip else 1.0
    higher = c.get(f"capability.{of.capability}.{low}", 1.0)
    cast = 1.0 if low == "bf16" else c["cast.nvfp4" if low == "nvfp4" else "cast"]
    old = c["foundry_attention"] if of.framework == "llm-foundry" else 1.0
    adapter = c["host.qlora" if of.quantized else "host.lora"]
    host = 0.0
    if of.framework == "trainer":
        host = adapter if of.adapter else c["host.full"]
    elif of.framework == "megatron-bridge" and of.mixture:
        own = f"host.experts.superchip.{name}" if of.superchip else "host.experts"
        host = c.get(own, c["host.experts"])
        host *= c["host.graphs"] if of.release >= GRAPHS else 1.0
    return {
        "compute": c[f"compute.{name}.{low}"] * faster * higher,
        "bf16_compute": c[f"compute.{name}.bf16"] * faster,
        "attention_compute": c[f"attention.{name}"] * faster * old * _attention(of, c),
        "operand_factor": c[f"operands.{name}"] * cast,
        "elementwise_bytes": c["elementwise"] * (c["elementwise_mixture"] if of.mixture else 1.0),
        "expert_compute": c["expert.bf16" if low == "bf16" else "expert"],
        "routing_factor": c["routing"],
        "logits_bytes": c["logits"],
        "adapter_factor": c["adapters"],
        "mamba_bytes": c["mamba"],
        "streams_factor": c["streams"],
        "tensor_exposed": c["tensor"],
        "context_bytes": c["context"],
        "dispatch_exposed": c["dispatch"],
        "remote_exposed": c["remote.plain" if _plain(of) else "remote"],
        "hop_overhead": c["hop"],
        "last_stage": c["last"],
        "bubble": c["bubble"],
        "gradients_exposed": c["gradients"],
        "hidden_part": c["hidden"],
        "update_factor": c["update"],
        "step_overhead": c["step"],
        "scale_overhead": c["scale"],
        "dequantize_seconds_each": c["dequantize"],
        "host_seconds": host,
        "slower": slower(of, c),
    }


def weight_traffic(of: Traits) -> float:
    """Bytes a weight and micro-batch: it is read forward and backward in its precision, and its
    gradient read and written, where it trains."""
    read = 2 * {"bf16": 2.0, "nvfp4": NVFP4_BYTES}.get(of.precision, 1.0)
    if of.adapter:
        return read
    return read + 2 * (2.0 if of.framework in BF16_GRADIENTS else 4.0)


def _attention(of: Traits, c: Mapping[str, float]) -> float:
    """Of the rate of the generation's newest kernels of attention, what the release's have."""
    newest = {"megatron-bridge": of.release >= CUDNN_9_17, "mlperf": of.release > LATE}
    old = not newest.get(of.framework, True)
    return c.get(f"attention.early.{of.generation}", 1.0) if old else 1.0


def slower(of: Traits, c: Mapping[str, float]) -> float:
    """The framework's factor on a step, and that of a GPU which may not draw its power."""
    return _framework(of, c) * math.pow(of.power, -c["power"])


def _framework(of: Traits, c: Mapping[str, float]) -> float:
    if of.framework == "trainer":
        factor = c["trainer"]
        if of.adapter:
            factor *= c["trainer_adapter"] * (c["trainer_parallel"] if of.many else 1.0)
        return factor
    factor = c["adapter"] if of.adapter else 1.0
    if of.framework == "mlperf":
        factor *= c["mlperf"]
        if of.release >= LATE:
            factor /= c.get(f"mlperf_late.{of.generation}", 1.0)
        factor *= c["mlperf_early"] ** (10 * max(0.0, MIDDLE_ROUND - of.release))
    elif of.framework in ("torchtune", "torchtitan"):
        factor *= c[of.framework]
        factor *= c["torchtitan.fp8"] if of.precision != "bf16" else 1.0
        factor *= c["eager"] if of.eager else 1.0
    elif of.framework == "megatron-bridge":
        factor /= c["release_mixture" if of.mixture else "release"] ** (of.release - MIDDLE)
        if of.mixture and not of.hybrid and of.release >= GRAPHS and _grouped(of):
            factor /= c.get(f"graphs.{of.generation}", 1.0)
    return factor


def _grouped(of: Traits) -> bool:
    """Whether grouped kernels were measured: those of 8 bits."""
    return of.asked not in ("bf16", "nvfp4")


def _plain(of: Traits) -> bool:
    """Whether tokens go to other nodes' experts by a plain all-to-all: until 26.02 DeepEP was not
    switched on for B300, whose full name Megatron-Bridge did not know
    (training/flex_dispatcher_backend.py), nor for what it had not been written for."""
    known = of.superchip or of.capability.startswith(DEEPEP)
    return of.framework == "megatron-bridge" and not known and of.release < DISPATCHED


def doubt(of: Traits) -> Factors:
    """How much farther the ends of a step's interval lie than points say. Those of the trainer on
    several GPUs are six, of adapters over nodes: in one node these may lose nothing, and full runs
    may lose as much."""
    if of.framework != "trainer" or not of.many:
        return 1.0, 1.0
    lost = CONSTANTS["trainer_parallel"]
    return (1 / lost, 1.0) if of.adapter else (1.0, lost)


UNITS = {
    "elementwise_bytes": "B",
    "logits_bytes": "B",
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
    stand_in = f" of {of.stand_in}" if of.stand_in else ""
    cited = f"{SOURCE}: {of.generation}{stand_in}, {of.precision}, {of.framework}"
    return {n: constant(v, UNITS.get(n, "1"), cited) for n, v in factors(of).items()}
