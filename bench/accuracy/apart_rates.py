"""How far sources are apart where they measured the same, of everything but served times: what no
prediction of a source from the others can do better.

    python -m bench.accuracy.apart_rates CSV... > docs/accuracy/apart_rates.md

The same is one model, GPU, number of GPUs, precision, length and method, and of times to train and
of steps one global batch; a source's value is the median of its points. Beside that, how
far points of one source are from its median. Prints a table.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from statistics import median

from bench.accuracy.refitted import middle_and_ninety
from bench.accuracy.refitted_rates import FAMILIES, pairs_of, row_of
from gpuplan.accuracy.fit.calibrate import Pair
from gpuplan.accuracy.metrics.rates import STEPS
from gpuplan.accuracy.points.points import Case, Point, read_points
from gpuplan.accuracy.points.runs import by_run

SAME = ("n_gpus", "precision", "seq_len", "input_len", "output_len", "method")
FEW = 2  # pairs of sources that a row needs


def setting(pair: Pair) -> tuple[str, ...]:
    """A benchmark of MLPerf Inference tells the lengths, and what its labels of precisions mean."""
    point, answer = pair
    case = point.case
    assert isinstance(case, Case)
    batched = ("global_batch",) if point.metric in (*STEPS, "time_to_train") else ()
    if "benchmark" in answer.features and "cell" in answer.features:
        return point.metric, str(answer.features["cell"]), case.row["n_gpus"]
    texts = (case.row[name] for name in (*SAME, *batched))
    return point.metric, case.model.identifier, case.gpu.identifier, *texts


def apart(pairs: Sequence[Pair]) -> tuple[list[float], list[float]]:
    """How many times two sources differ, of each setting and two sources, and how many times a
    point differs from its source's median; as logarithms."""
    cells: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for pair in pairs:
        cells[setting(pair)][pair[0].repository].append(pair[0].value)
    between, within = [], []
    for sources in cells.values():
        middles = {name: median(values) for name, values in sources.items()}
        between += [
            abs(math.log(middles[a] / middles[b])) for a, b in combinations(sorted(middles), 2)
        ]
        within += [
            abs(math.log(value / middles[name]))
            for name, values in sources.items()
            for value in values
            if len(values) > 1
        ]
    return between, within


def rows(points: Sequence[Point]) -> Iterator[tuple[str, list[float], list[float]]]:
    by_row: dict[str, list[Pair]] = defaultdict(list)
    for family in FAMILIES:
        for pair in pairs_of(family, points):
            by_row[row_of(pair)].append(pair)
    for row, pairs in sorted(by_row.items()):
        yield row, *apart(pairs)


def main(paths: list[str]) -> None:
    points = [
        p
        for p in by_run(read_points([Path(p) for p in paths]))
        if isinstance(p.case, Case) and p.confidence != "C"
    ]
    print("| prediction | pairs of sources | apart | points of one source | from its median |")
    print("|---|---:|---:|---:|---:|")
    for row, between, within in rows(points):
        if len(between) >= FEW:
            print(f"| {row} | {len(between)} | {_of(between)} | {len(within)} | {_of(within)} |")
    print("\nA cell is `median % / 90th percentile %`.")


def _of(logs: Sequence[float]) -> str:
    if not logs:
        return "–"
    return " / ".join(f"{100 * math.expm1(end):.1f}" for end in middle_and_ninety(logs))


if __name__ == "__main__":
    main(sys.argv[1:])
