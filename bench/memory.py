"""Fits the constants of measured frameworks' training memory: prints what data/memory.py holds.

    python bench/memory.py ../shared/data/accuracy/memory_public.csv

Least squares on logarithms with a soft loss of 6 %; each constant is drawn to what the framework's
code says by a log-normal prior. Needs scipy.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares

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
        constants, errors = fit(name, names, rows)
        errors.sort()
        middle, ninety = errors[len(errors) // 2], errors[int(0.9 * len(errors))]
        print(f"{name}: {len(errors)} points, median {middle:.1%}, P90 {ninety:.1%}")
        print("  ", ", ".join(f'"{k}": {v:.4g}' for k, v in constants.items()))


def _fits(point: Point, name: str) -> bool:
    case = point.case
    if isinstance(case, str) or point.metric != "peak_gpu_memory_train":
        return False
    usable = point.confidence != "C" and isinstance(case.model, Transformer)
    return usable and framework(case.row["engine"]) == name


def fit(
    name: str, names: tuple[str, ...], rows: list[tuple[Point, Case]]
) -> tuple[dict[str, float], list[float]]:
    runs = [(body(c.model), finetune(c, name), p.value * in_bytes(c)) for p, c in rows]
    start = np.log([FINETUNE[name][n] for n in names])

    def errors(at: Any) -> list[float]:
        own = {name: FINETUNE[name] | dict(zip(names, np.exp(at), strict=True))}
        return [math.log(finetuned(shape, run, own) / value) for shape, run, value in runs]

    def residuals(at: Any) -> list[float]:
        return [e / LOSS for e in errors(at)] + list((at - start) / PRIOR)

    found = least_squares(residuals, start, loss="soft_l1").x
    constants = {n: float(v) for n, v in zip(names, np.exp(found), strict=True)}
    return constants, [abs(math.expm1(e)) for e in errors(found)]


if __name__ == "__main__":
    main()
