"""Fits the constants of frameworks' training memory: prints what the trainer's row in
gpuplan/sizing/data/training_memory.py and the others in gpuplan/accuracy/data/memory.py hold.

    python -m bench.fitting.memory ../shared/data/accuracy/memory_public.csv [--check]

Each constant is drawn to its start below, which no fit moves: to what the framework's code says
where it says it, else to what the first fit read off the points. `--check` fits anew without each
model and prints the errors on it, and those of the tables as they are. Needs numpy and scipy.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from bench.fitting.fit import each_left_out, fit, summary
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

LOSS = 0.06
# Width of the logarithm of each constant. The trainer's is that which predicts models left out best
# (of 0.25, 0.5 and 1: 90 % within 8.2, 10.0 and 14.6 %).
WIDTH = {"trainer": 0.25, "swift": 0.5, "litgpt": 0.5, "torchtune": 0.5}
# Bytes a token of a layer in bf16, counted along Llama's forward pass in transformers with
# FlashAttention: a hidden size's checkpoint, what the backward pass of a layer keeps a hidden size
# (norms, queries, keys, values, their rotations) and a width of the MLP (gate, up, product), and
# what a recomputed layer holds of both beside its gradients.
LAYER = {"stored": 2.0, "hidden": 14.0, "wide": 8.0, "layer_hidden": 18.0, "layer_wide": 7.0}
START: dict[str, dict[str, float]] = {
    "trainer": {
        "stored": LAYER["stored"],
        "loss": 16.0,  # bf16 logits, fp32, the shifted copy, gradients in both: 2 + 4 + 4 + 4 + 2
        "loss_quantized": 10.0,  # bf16 logits, fp32 and its gradient: 2 + 4 + 4
        # what the first fit read off, to one or two digits
        "fixed": 2e9,
        "fixed_quantized": 0.4e9,
        "unpack": 14.0,
        "gathered": 14e9,
    },
    "swift": {
        **LAYER,
        "fixed": 0.9,
        "unpack": 1.8,
        "loss": 41.0,
        "beyond": 0.6,
        "scores": 22.0,
        "loss_quantized": 41.0,
        "loss_fp32": 55.0,
        "first": 0.84,
        "first_step": 0.27,
    },
    "litgpt": {
        **{n: LAYER[n] for n in ("stored", "hidden", "wide")},
        "fixed": 0.1,
        "unpack": 20.0,
        "loss": 7.6,
        "wide_plain": 4.0,
        "no_lora": 8.0,
        "scaled": 1.9,
        "wrapping": 1.5,
    },
    "torchtune": {
        **{n: LAYER[n] for n in ("stored", "hidden", "wide")},
        "fixed": 0.5,
        "unpack": 0.5,
        "loss": 11.0,
        "layers_gathered": 4.0,
        "chunked": 0.23,
        "eight_bit": 2.7,
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    points = read_points(options.files)
    for name in START:
        rows = [(p, p.case) for p in points if _fits(p, name) and isinstance(p.case, Case)]
        data = Rows(name, rows)
        constants = data.fitted(np.ones(len(rows), bool))
        print(f"{name}: {summary(data.errors(constants))}")
        print("  ", ", ".join(f'"{k}": {v:.4g}' for k, v in constants.items()))
        if options.check:
            unseen = np.zeros(len(rows))
            for out in each_left_out(np.array([case.model.identifier for _, case in rows])):
                unseen[out] = data.errors(data.fitted(~out))[out]
            print(f"   each model left out: {summary(unseen)}")
            print(f"   the table as it is:  {summary(data.errors({}))}")


def _fits(point: Point, name: str) -> bool:
    case = point.case
    if isinstance(case, str) or point.metric != "peak_gpu_memory_train":
        return False
    usable = point.confidence != "C" and isinstance(case.model, Transformer)
    return usable and framework(case.row["engine"]) == name


class Rows:
    """The points of a framework."""

    def __init__(self, name: str, rows: list[tuple[Point, Case]]) -> None:
        self.name = name
        self.table = (FRAMEWORKS if name == "trainer" else FINETUNE)[name]
        predicted = _trainer if name == "trainer" else _other
        self.runs = [predicted(name, case) for _, case in rows]
        self.values = [point.value * in_bytes(case) for point, case in rows]

    def errors(self, own: Mapping[str, float]) -> np.ndarray:
        """Logarithms of predicted over measured, with `own` constants over the table's."""
        constants = {self.name: self.table | dict(own)}
        pairs = zip(self.runs, self.values, strict=True)
        return np.array([math.log(run(constants) / value) for run, value in pairs])

    def fitted(self, of: np.ndarray) -> dict[str, float]:
        priors = {name: (start, WIDTH[self.name]) for name, start in START[self.name].items()}
        return fit(priors, lambda own: self.errors(own)[of], scale=LOSS, soft_priors=True)


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
