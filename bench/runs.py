"""Public training measurements as runs that the engine can predict: speed and memory.

Layouts with tensor, pipeline, context or expert parallelism are left out: the engine plans none. Of
the memory points those of the HF Trainer are scored, whose descendant is the default engine; beyond
4,096 tokens its data seldom reach the limit, so the excess counts 0.73.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from points import Case

from gpuplan.models.model import Transformer
from gpuplan.plan.model import Fabric
from gpuplan.sizing.api import GpuOffer
from gpuplan.sizing.data import training as fitted
from gpuplan.sizing.devices import whole
from gpuplan.sizing.formula import Quantity, constant
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

TRAINER_BATCH = 8  # sequences of a step on each GPU in the HF Trainer's points
TRAINER_RANK = 64


def speeds(cases: Iterable[Case]) -> Iterator[tuple[Case, float, str]]:
    """Case, predicted value in the case's unit, basis."""
    for case in cases:
        if case.metric not in ("tokens_per_s_per_gpu", "step_time") or not _data_parallel(case):
            continue
        trainer, gpus = case.row["engine"].startswith("HF"), int(case.number("n_gpus", 1))
        micro = int(case.number("batch", 1))
        batch = TRAINER_BATCH * gpus if trainer else case.number("global_batch", micro * gpus)
        run = _run(case, batch, int(case.number("seq_len")))
        values = run.at(micro)
        predicted = values["step_seconds"] if trainer else values["tokens_per_second"] / gpus
        yield case, predicted, "parallel" if gpus > 1 and trainer else "calibrated"


def memories(cases: Iterable[Case]) -> Iterator[tuple[Case, float]]:
    """Case and predicted peak bytes over all GPUs."""
    for case in cases:
        trainer = case.row["engine"].startswith("HF Trainer + peft")
        if case.metric != "peak_gpu_memory_train" or not trainer:
            continue
        gpus, length = int(case.number("n_gpus", 1)), int(case.number("seq_len"))
        if length > 4096:
            length = round(4096 + 0.73 * (length - 4096))
        run = _run(case, TRAINER_BATCH * gpus, length)
        yield case, run.needs(int(case.number("batch", 1)))["used_bytes"] * gpus


def _data_parallel(case: Case) -> bool:
    return all(case.number(c, 1) <= 1 for c in ("tp", "pp", "cp", "ep"))


def _run(case: Case, batch: float, length: int) -> Run:
    assert isinstance(case.model, Transformer)
    gpus, how = int(case.number("n_gpus", 1)), _method(case)
    engine = "axolotl" if case.row["engine"].startswith("HF") else case.row["engine"].split()[0]
    device = whole(GpuOffer(gpu=case.gpu, gpus_per_node=8))
    scope, _ = training_scope(case.model, device, how, engine, many=gpus > 1)
    if engine == "llm-foundry":  # attention of 2023 in Triton
        slow = scope["attention_compute"].value * 0.49
        scope["attention_compute"] = constant(slow, "1", "llm-foundry")
    rate = 25e9 if case.gpu.architecture == "ampere" else 50e9
    fabric = Fabric(kind="infiniband", bytes_per_s_per_gpu=rate, resource=None)
    links = link(device, gpus, fabric)
    assert links is not None
    scope |= links | {"usable_fraction": constant(0.9, "1", "bench")}
    for name, value in (("sequence_length", length), ("global_batch", batch), ("steps", 1)):
        scope[name] = Quantity(float(value), "1", "measurement")
    recompute: Recompute = "full" if case.row["recompute"] == "full" else "none"
    division = Division(gpus, _sharding(case, gpus), recompute)
    return Run(Prepared(case.model, how, scope), division)


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


STEP_INTERVALS = fitted.INTERVALS
