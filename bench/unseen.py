"""How often intervals hold a model that neither the constants nor the anchors have seen.

    PYTHONPATH=. python bench/unseen.py INFERENCE_CSV

The serving model is fitted again without each network, its anchors are solved again without it, and
its points are predicted with the interval that the bundled anchors give where no point shares the
network. Prints, by kind and engine: points, median error, and the part inside the interval. Needs
numpy and scipy.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import calibrate
import numpy as np

from gpuplan.accuracy.fit.calibrate import solve
from gpuplan.accuracy.metrics.serving import tpot
from gpuplan.accuracy.metrics.serving_priors import PRIORS
from gpuplan.accuracy.points.points import read_points
from gpuplan.accuracy.reckon import Reckoned
from gpuplan.sizing.calibration.anchors import Anchors, Features

QUANTITY = "time_per_output_token"


def refitted(path: Path) -> list[tuple[Features, float, bool]]:
    """Every point's features, the error of its prediction without its network, and whether the
    interval holds it."""
    found = calibrate.expressed(read_points([path]), "tpot")
    points, bundled = calibrate.Points(found), Anchors()(QUANTITY)
    reckoned = [tpot(served.case) for _, served in found]
    answers: list[tuple[Features, float, bool]] = []
    for model in sorted(set(points.model)):
        out = points.model == model
        times = points.times(calibrate.fit_tokens(points, ~out), np.ones(len(out), bool))[0] * 1e3
        pairs = [
            (point, replace(r, value=float(v)))
            for (point, _), r, v in zip(found, reckoned, times, strict=True)
            if isinstance(r, Reckoned)
        ]
        without = solve(
            [pair for pair, o in zip(pairs, out, strict=True) if not o], PRIORS[QUANTITY]
        )
        for (point, answer), o in zip(pairs, out, strict=True):
            if o:
                where = answer.features
                reach = bundled.reaches[without.reaches.index(without.reach(where))]
                value, sigma = answer.value * math.exp(without.mean(where)), without.sigma(where)
                low, high = (value * math.exp(z * sigma) for z in reach.ends(where))
                answers.append((where, abs(value / point.value - 1), low <= point.value <= high))
    return answers


def main(path: str) -> None:
    groups: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for where, error, inside in refitted(Path(path)):
        for group in ("all", str(where["kind"]), str(where["engine"])):
            groups[group].append((error, inside))
    for group, rows in groups.items():
        error, covered = statistics.median(e for e, _ in rows), statistics.mean(i for _, i in rows)
        print(f"{group:14} {len(rows):5} {error:6.1%} {covered:6.1%}")


if __name__ == "__main__":
    main(sys.argv[1])
