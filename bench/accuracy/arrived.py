"""How far off predictions are of points that nothing was fitted on yet, source by source.

    python -m bench.accuracy.arrived INFERENCE_CSV...

With the constants and anchors of the working tree, so before these points go into any fit. Prints
the table that docs/accuracy/arrived.md keeps. *Open* are points of confidence C.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

from bench.accuracy.refitted import cell
from gpuplan.accuracy.metrics.serving_priors import QUEUED_MILLISECONDS
from gpuplan.accuracy.points.points import Case, Point, read_points
from gpuplan.accuracy.predict import predict
from gpuplan.accuracy.show.score import kind
from gpuplan.plan.model import Estimate
from gpuplan.sizing.calibration.anchors import Anchors

Scored = tuple[float, bool]  # predicted / measured - 1, inside the interval


def main(paths: list[str]) -> None:
    rows: dict[tuple[str, str, str], tuple[list[Scored], list[Scored]]] = defaultdict(
        lambda: ([], [])
    )
    anchors = Anchors()
    for point in read_points([Path(path) for path in paths]):
        answer = predict(point, anchors)
        if isinstance(answer, Estimate) and isinstance(point.case, Case):
            scored = (answer.value / point.value - 1, answer.low <= point.value <= answer.high)
            rows[point.repository, _time(point), _kind(point.case)][point.confidence == "C"].append(
                scored
            )
    print("| source | time | points | median / 90th percentile / covered | open |")
    print("|---|---|---|---:|---:|")
    for names, of in sorted(rows.items()):
        print(f"| {' | '.join(names)} | {' | '.join(cell(some) if some else '' for some in of)} |")


def _time(point: Point) -> str:
    if point.metric == "tpot":
        return "per output token"
    return "to first token" + (", over 3 s" if point.value > QUEUED_MILLISECONDS else "")


def _kind(case: Case) -> str:
    if case.gpu.vendor == "amd":
        return "AMD"
    return "NVIDIA, " + {"mixture": "mixtures"}.get(kind(case), "dense")


if __name__ == "__main__":
    main(sys.argv[1:])
