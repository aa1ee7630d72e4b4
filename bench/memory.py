"""Fits the constants of measured frameworks' training memory: prints what data/memory.py holds.

    python bench/memory.py ../shared/data/accuracy/memory_public.csv

Each constant is drawn to what the framework's code says. Needs numpy and scipy.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from fit import fit, summary

from gpuplan.accuracy.data.memory import FINETUNE
from gpuplan.accuracy.metrics.memory import finetune, in_bytes
from gpuplan.accuracy.points.memory_names import framework
from gpuplan.accuracy.points.points import Case, Point, read_points
from gpuplan.accuracy.protocols.body import body
from gpuplan.accuracy.protocols.finetune import finetuned
from gpuplan.models.model import Transformer

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
        "beyond",
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
    runs = [(body(c.model), finetune(c, name), p.value * in_bytes(c)) for p, c in rows]

    def errors(own: dict[str, float]) -> list[float]:
        constants = {name: FINETUNE[name] | own}
        return [math.log(finetuned(shape, run, constants) / value) for shape, run, value in runs]

    priors = {n: (FINETUNE[name][n], PRIOR) for n in names}
    constants = fit(priors, errors, scale=LOSS, soft_priors=True)
    return constants, errors(constants)


if __name__ == "__main__":
    main()
