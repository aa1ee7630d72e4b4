"""Training points as runs: speed and memory.

Of the memory points those of the HF Trainer are expressed, whose descendant is the default engine;
beyond 4,096 tokens its data seldom reach the limit, so the excess counts 0.73.
"""

from __future__ import annotations

from gpuplan.accuracy.points import Case
from gpuplan.models.model import Transformer
from gpuplan.plan.model import Estimate, Fabric
from gpuplan.sizing.api import GpuOffer
from gpuplan.sizing.data import training as fitted
from gpuplan.sizing.devices import whole
from gpuplan.sizing.formula import Quantity, constant
from gpuplan.sizing.intervals import estimate, inverse
from gpuplan.sizing.run import (
    Division,
    Method,
    Prepared,
    Recompute,
    Run,
    Sharding,
    link,
    training_scope,
)
from gpuplan.units import GB, GIB

TRAINER_BATCH = 8  # sequences of a step on each GPU in the HF Trainer's points
TRAINER_RANK = 64
SPANS = ("tp", "pp", "cp", "ep")


def tokens_per_gpu(case: Case) -> Estimate | str:
    """Tokens per second and GPU."""
    found = _reckoned(case)
    if isinstance(found, str):
        return found
    run, micro = found
    rate = run.at(micro)["tokens_per_second"] / run.division.gpus
    return estimate(rate, inverse(fitted.INTERVALS["calibrated"]), "calibrated")


def step_time(case: Case) -> Estimate | str:
    """Seconds of a step."""
    found = _reckoned(case)
    if isinstance(found, str):
        return found
    run, micro = found
    seconds = run.at(micro)["step_seconds"]
    if run.division.gpus > 1 and _trainer(case):
        return estimate(seconds, fitted.INTERVALS["parallel"], "extrapolated")
    return estimate(seconds, fitted.INTERVALS["calibrated"], "calibrated")


def memory(case: Case) -> Estimate | str:
    """Peak memory over all GPUs, in the row's GiB or GB. The engine prints no interval for it."""
    if not case.row["engine"].startswith("HF Trainer + peft"):
        return "memory of another framework than the HF Trainer"
    found = _reckoned(case)
    if isinstance(found, str):
        return found
    run, micro = found
    unit = GIB if "GiB" in case.row["unit"] else GB
    used = run.needs(micro)["used_bytes"] * run.division.gpus / unit
    return estimate(used, (1.0, 1.0), "calibrated")


def _trainer(case: Case) -> bool:
    return case.row["engine"].startswith("HF")


def _reckoned(case: Case) -> tuple[Run, int] | str:
    """The run and its micro-batch, or why the engine cannot express them."""
    if not isinstance(case.model, Transformer):
        return "no language model"
    if any(case.number(c, 1) > 1 for c in SPANS):
        return "runs with tensor, pipeline, context or expert parallelism are not planned"
    micro, gpus = int(case.number("batch", 1)), int(case.number("n_gpus", 1))
    length = int(case.number("seq_len"))
    if length < 1:
        return "the sequence length is not given"
    if case.metric == "peak_gpu_memory_train" and length > 4096:
        length = round(4096 + 0.73 * (length - 4096))
    trainer = TRAINER_BATCH * gpus
    batch = trainer if _trainer(case) else case.number("global_batch", micro * gpus)
    return _run(case, case.model, batch, length), micro


def _run(case: Case, model: Transformer, batch: float, length: int) -> Run:
    gpus, how = int(case.number("n_gpus", 1)), _method(case)
    engine = "axolotl" if case.row["engine"].startswith("HF") else case.row["engine"].split()[0]
    device = whole(GpuOffer(gpu=case.gpu, gpus_per_node=8))
    scope, _ = training_scope(model, device, how, engine, many=gpus > 1)
    if engine == "llm-foundry":  # attention of 2023 in Triton
        slow = scope["attention_compute"].value * 0.49
        scope["attention_compute"] = constant(slow, "1", "llm-foundry")
    rate = 25e9 if case.gpu.architecture == "ampere" else 50e9
    fabric = Fabric(kind="infiniband", bytes_per_s_per_gpu=rate, resource=None)
    links = link(device, gpus, fabric)
    assert links is not None
    scope |= links | {"usable_fraction": constant(0.9, "1", "measurement")}
    for name, value in (("sequence_length", length), ("global_batch", batch), ("steps", 1)):
        scope[name] = Quantity(float(value), "1", "measurement")
    recompute: Recompute = "full" if case.row["recompute"] == "full" else "none"
    division = Division(gpus, _sharding(case, gpus), recompute)
    return Run(Prepared(model, how, scope), division)


def _sharding(case: Case, gpus: int) -> Sharding:
    told = case.row["sharding"]
    if gpus == 1:
        return "none"
    if "FSDP" in told or told == "zero3" or case.row["method"] == "Full-parameter":
        return "zero3"
    return "zero2" if "zero2" in told else "zero1"


def _method(case: Case) -> Method:
    quantized = case.row["method"] == "Q-LoRA"
    adapter = quantized or "lora" in case.row["method"].lower()
    low = case.gpu.peak_fp8 is not None and "fp8" in case.row["precision"]
    return Method(
        adapter=adapter,
        quantized=quantized,
        precision="fp8" if low else "bf16",
        optimizer="adamw",
        lora_rank=constant(TRAINER_RANK, "1", "recipe") if adapter else None,
    )
