"""Public MLPerf Training results → gpuplan/accuracy/data/benchmarks.py.

    python -m bench.fitting.benchmarks TRAINING_CSV…

First the speed of the benchmarks that are no language models, then the samples to the target:
minutes times the rate that the laws say. Needs numpy and scipy; run bench/fitting/training.py
before.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from bench.fitting.fit import DATE, Priors, by_cell, fit, rounded, summary, table, write
from gpuplan.accuracy.data.references import REFERENCES
from gpuplan.accuracy.metrics import benchmarks
from gpuplan.accuracy.metrics.benchmarks import CONVERGENCE, FLOP, GPT3_TOKENS, TINYGRAD, Load
from gpuplan.accuracy.metrics.rates import LOGGED
from gpuplan.accuracy.points.points import Case, Point, read_points

# Start and width (of the logarithm).
SPEED: dict[str, tuple[float, float]] = {
    "fraction.bert": (0.65, 0.3),
    "fraction.flux": (0.65, 0.3),
    "fraction.sd": (0.35, 0.3),
    "fraction.gpt3": (1.0, 0.5),
    "fraction.bert.blackwell": (0.5, 0.3),
    "fraction.sd.blackwell": (0.3, 0.3),
    "fraction.gpt3.blackwell": (0.8, 0.5),
    "generation.ampere": (0.9, 0.2),
    "generation.ada": (0.8, 0.3),
    "generation.blackwell": (0.85, 0.01),
    "generation.cdna3": (0.75, 0.3),
    "generation.cdna4": (0.75, 0.3),
    "gpu.h200-sxm-141gb": (1.04, 0.05),
    "gpu.gb200-186gb": (1.03, 0.05),
    "gpu.gb300-288gb": (1.15, 0.1),
    "overhead.bert": (5e-3, 0.7),
    "overhead.flux": (0.10, 0.7),
    "overhead.sd": (0.01, 0.7),
    "overhead.gpt3": (0.01, 0.7),
    "overhead.scale": (3e-3, 0.7),
    # A B200 in the preview of MLPerf Inference 4.1 wrote 11264 tokens/s (llama2-70b offline), and
    # in 5.1 12.4 % more.
    "software.preview": (1.12, 0.05),
}
# The generation that the others are relative to, and one whose points are all tinygrad's.
FIXED = {"generation.hopper": 1.0, "generation.rdna3": 1.0}
# Over the reference's samples: evaluation and start-up take some, better settings save some.
SAMPLES: dict[str, tuple[float, float]] = {
    **{f"excess.{benchmark}": (1.04, 0.07) for benchmark in REFERENCES},
    "samples.nvfp4": (1.05, 0.05),
    "software.tinygrad": (10.0, 0.7),
}
Measured = list[tuple[Point, Case, Load]]


def fitted(
    priors: Priors[str],
    errors: Callable[[Mapping[str, float]], list[float]],
    measured: Measured,
) -> dict[str, float]:
    cells = [f"{load.benchmark} {case.gpu.identifier}" for _, case, load in measured]
    constants = fit(priors, errors, scale=0.08, weights=1.5 * by_cell(cells, 0.5), most=30)
    print(summary(errors(constants)))
    return rounded(constants)


def chosen(points: list[Point], metrics: tuple[str, ...]) -> Measured:
    measured: Measured = []
    for point in points:
        if point.metric in metrics and point.confidence != "C" and isinstance(point.case, Case):
            load = benchmarks.load(point.case)
            if isinstance(load, Load):
                measured.append((point, point.case, load))
    return measured


def speed(points: list[Point]) -> dict[str, float]:
    measured = [
        m for m in chosen(points, ("samples_per_s_per_gpu", LOGGED)) if m[2].benchmark in FLOP
    ]

    def errors(c: Mapping[str, float]) -> list[float]:
        logs = []
        for point, case, load in measured:
            value = point.value
            if point.metric != LOGGED:
                value *= load.gpus
            elif load.benchmark == "gpt3":
                value /= GPT3_TOKENS
            logs.append(math.log(float(benchmarks.rate(case, load, FIXED | c)) / value))
        return logs

    return fitted(SPEED, errors, measured)


def samples(points: list[Point], speeds: dict[str, float]) -> dict[str, float]:
    measured, rates = [], []
    for point, case, load in chosen(points, ("time_to_train",)):
        rate = benchmarks.rate(case, load, speeds | {"software.tinygrad": 1.0})
        if not isinstance(rate, str):
            measured.append((point, case, load))
            rates.append(rate)

    def errors(c: Mapping[str, float]) -> list[float]:
        return [
            math.log(
                CONVERGENCE(benchmarks.needed(case, load, c) | {"samples_per_second": rate})[
                    "seconds_to_train"
                ]
                / 60
                * (c["software.tinygrad"] if load.software == TINYGRAD else 1.0)
                / point.value
            )
            for (point, case, load), rate in zip(measured, rates, strict=True)
        ]

    return fitted(SAMPLES, errors, measured)


def main(paths: list[str]) -> None:
    points = read_points([Path(path) for path in paths])
    constants = FIXED | speed(points)
    constants |= samples(points, constants)
    about = """Constants of MLPerf Training

Fractions of the dense bf16 peak, overheads in seconds; samples to the target over those of the
reference. Generations are relative to Hopper; of RDNA 3 all points are tinygrad's, whose factor
stands for it.
"""
    source = f"fitted on public MLPerf Training results 4.0 to 5.1 ({DATE})"
    lines = (f"SOURCE = {source!r}", *table("CONSTANTS: dict[str, float]", constants))
    write("accuracy/data/benchmarks.py", about, lines)


if __name__ == "__main__":
    main(sys.argv[1:])
