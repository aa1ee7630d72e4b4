"""Fits the constants of frameworks' training memory: prints what the trainer's row in
gpuplan/sizing/data/training_memory.py and the others in gpuplan/accuracy/data/memory.py hold.

    python bench/memory.py ../shared/data/accuracy/memory_public.csv

Each constant is drawn to what the framework's code says. Needs numpy and scipy.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from pathlib import Path

from fit import fit, summary

from gpuplan.accuracy.data.memory import FINETUNE
from gpuplan.accuracy.metrics.memory import in_bytes
from gpuplan.accuracy.metrics.training_memory import finetune, trainer
from gpuplan.accuracy.points.memory_names import framework
from gpuplan.accuracy.points.points import Case, Point, read_points
from gpuplan.accuracy.protocols.body import body
from gpuplan.accuracy.protocols.finetune import finetuned
from gpuplan.models.model import Transformer
from gpuplan.sizing.data.training_memory import FRAMEWORKS
from gpuplan.sizing.evidence.sheet import floats
from gpuplan.sizing.memory.training import framework_memory

Constants = Mapping[str, Mapping[str, float]]

LOSS, PRIOR = 0.06, 0.5
LAYER = ("stored", "hidden", "wide", "fixed", "unpack", "loss")
FITTED = {
    "trainer": (
        "stored",
        "loss",
        "loss_quantized",
        "fixed",
        "fixed_quantized",
        "unpack",
        "gathered",
    ),
    "swift": (
        *LAYER,
        "layer_hidden",
        "layer_wide",
        "beyond",
        "scores",
        "loss_quantized",
        "loss_fp32",
        "first",
        "first_step",
    ),
    "litgpt": (*LAYER, "wide_plain", "no_lora", "scaled", "wrapping"),
    "torchtune": (*LAYER, "layers_gathered", "chunked", "eight_bit"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    points = read_points(parser.parse_args().files)
    for name, names in FITTED.items():
        rows = [(p, p.case) for p in points if _fits(p, name) and isinstance(p.case, Case)]
        constants, errors = fitted(name, names, rows)
        print(f"{name}: {summary(errors)}")
        print("  ", ", ".join(f'"{k}": {v:.4g}' for k, v in constants.items()))


def _fits(point: Point, name: str) -> bool:
    case = point.case
    if isinstance(case, str) or point.metric != "peak_gpu_memory_train":
        return False
    usable = point.confidence != "C" and isinstance(case.model, Transformer)
    return usable and framework(case.row["engine"]) == name


def fitted(
    name: str, names: tuple[str, ...], rows: list[tuple[Point, Case]]
) -> tuple[dict[str, float], list[float]]:
    table = FRAMEWORKS if name == "trainer" else FINETUNE
    predicted = _trainer if name == "trainer" else _other
    runs = [predicted(name, c) for _, c in rows]
    values = [p.value * in_bytes(c) for p, c in rows]

    def errors(own: dict[str, float]) -> list[float]:
        constants = {name: table[name] | own}
        return [math.log(run(constants) / value) for run, value in zip(runs, values, strict=True)]

    priors = {n: (table[name][n], PRIOR) for n in names}
    constants = fit(priors, errors, scale=LOSS, soft_priors=True)
    return constants, errors(constants)


Predicted = Callable[[Constants], float]


def _trainer(name: str, case: Case) -> Predicted:
    """Bytes of all GPUs by the planner's memory sheet."""
    run, micro = trainer(case), max(1, int(case.number("batch", 1.0)))
    method, given = run.prepared.method, run.modelled(micro)

    def predicted(constants: Constants) -> float:
        scope = framework_memory(
            name,
            method.optimizer,
            method.lora_rank,
            adapter=method.adapter,
            quantized=method.quantized,
            constants=constants,
        )
        if method.quantized:
            del scope["frozen_bytes_each"]  # GPTQ's
        return run.memory(given | floats(scope))["gpu_memory"] * run.division.gpus

    return predicted


def _other(name: str, case: Case) -> Predicted:
    shape, run = body(case.model), finetune(case, name)
    return lambda constants: finetuned(shape, run, constants)


if __name__ == "__main__":
    main()
