"""How far off predictions are of what neither the constants nor the anchors have seen.

    python -m bench.accuracy.refitted INFERENCE_CSV... > docs/accuracy/refitted.md

The serving model is fitted again without each network, GPU generation or source, its anchors are
solved again without it, and its points are predicted with the intervals of the bundled anchors for
where they then stand. A source that has more than half of the points is not left out, and points of
several GeForce cards are no test: their exchange is fitted on nothing else. Prints a table. Needs
numpy and scipy.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.fitting import calibrate
from gpuplan.accuracy.fit.calibrate import Pair, solve, usable
from gpuplan.accuracy.metrics.serving import tpot, ttft
from gpuplan.accuracy.metrics.serving_priors import PRIORS
from gpuplan.accuracy.points.points import Case, read_points
from gpuplan.accuracy.reckon import Prior, Reckoned, corrected
from gpuplan.sizing.calibration.anchors import Anchors, Features, Field
from gpuplan.sizing.hardware.efficiency import WITHOUT_PEERS

WAYS = ("model", "generation", "source")


def of_amd(features: Features) -> bool:
    return str(features["generation"]).startswith("cdna")


KINDS: Mapping[str, Callable[[Features], bool]] = {
    "NVIDIA, dense": lambda f: not of_amd(f) and f["kind"] == "dense",
    "NVIDIA, mixtures": lambda f: not of_amd(f) and f["kind"] == "mixture",
    "AMD": of_amd,
}
Answer = tuple[Features, float, bool]  # of a point: predicted / measured - 1, inside the interval


class Serving:
    """The served points of both times, with what fits and anchors need of them."""

    def __init__(self, paths: list[Path], *, aside: bool = False) -> None:
        """With the points of pages that are set `aside`, or without."""
        points = read_points(paths)
        if aside:
            points = [
                replace(p, confidence=p.case.row["confidence"]) if isinstance(p.case, Case) else p
                for p in points
            ]
        self.served = [calibrate.expressed(points, metric) for metric in ("tpot", "ttft")]
        self.arrays = [calibrate.Points(served) for served in self.served]
        self.known = calibrate.fit_tokens(self.arrays[0], np.ones(len(self.served[0]), bool))
        self.reckoned = [
            [how(one.case) for _, one in pairs]
            for how, pairs in zip((tpot, ttft), self.served, strict=True)
        ]

    def names(self, column: int, way: str) -> list[str]:
        return [str(served.features[way]) for _, served in self.served[column]]

    def without(self, way: str, name: str) -> Iterator[tuple[int, list[Pair], np.ndarray]]:
        """Of both times: every point by constants that did not see `name`, not as a plan makes it,
        which has others, and which are of it."""
        out = [np.array([n == name for n in self.names(c, way)]) for c in (0, 1)]
        constants = calibrate.fit_tokens(self.arrays[0], ~out[0], self.known)
        first = calibrate.fit_first(self.arrays[1], constants, ~out[1])
        everything = [np.ones(len(o), bool) for o in out]
        seconds = (
            self.arrays[0].times(constants, everything[0])[0],
            calibrate.first_of(self.arrays[1], constants, first, everything[1]),
        )
        for column in (0, 1):
            yield column, [*self._pairs(column, seconds[column])], out[column]

    def _pairs(self, column: int, seconds: np.ndarray) -> Iterator[Pair]:
        rows = zip(self.served[column], self.reckoned[column], seconds, strict=True)
        for (point, _), answer, value in rows:
            assert isinstance(answer, Reckoned)
            yield point, replace(answer, value=float(value) * 1e3, best=None, planned=None)


def answers(serving: Serving, way: str) -> list[list[Answer]]:
    answers_of: list[list[Answer]] = [[], []]
    for column, rest, gone in left_out(serving, way):
        field = solved(tuple(PRIORS.values())[column], rest)
        answers_of[column] += [scored(field, pair) for pair in gone]
    return answers_of


def left_out(serving: Serving, way: str) -> Iterator[tuple[int, list[Pair], list[Pair]]]:
    """Of both times and each name: the points of others, and its own that are a test."""
    count = Counter(serving.names(0, way))
    for name in sorted(count):
        if way == "source" and 2 * count[name] > count.total():
            continue
        for column, pairs, out in serving.without(way, name):
            rest = [p for p, left in zip(pairs, out, strict=True) if not left]
            gone = [p for p, left in zip(pairs, out, strict=True) if left and not exchanging(p)]
            prior = tuple(PRIORS.values())[column]
            yield column, usable(rest, prior), usable(gone, prior)


def solved(prior: Prior, pairs: Sequence[Pair]) -> Field:
    """The anchors of these points, with the widths of the bundled intervals."""
    return solve(pairs, prior, Anchors()(prior.quantity).reaches)


def scored(field: Field, pair: Pair) -> Answer:
    point, answer = pair
    says = corrected(answer, field)
    return answer.features, says.value / point.value - 1, says.low <= point.value <= says.high


def exchanging(pair: Pair) -> bool:
    """Several GeForce cards, whose exchange is fitted on such points alone."""
    case = pair[0].case
    assert isinstance(case, Case)
    return case.gpu.line == WITHOUT_PEERS and case.number("tp", 1) > 1


def main(given: list[str]) -> None:
    paths = [Path(path) for path in given]
    show(Serving(paths), WAYS)
    print("\nA cell is `median % / 90th percentile % / covered %` of so many points.")
    print("\nWith the points of the pages that are set aside, in the fit and in the score:\n")
    show(Serving(paths, aside=True), ("source",))


def show(serving: Serving, ways: Sequence[str]) -> None:
    print("| prediction | points | " + " | ".join(f"{way} left out" for way in ways) + " |")
    print("|---|---|" + "---:|" * len(ways))
    by_way = [answers(serving, way) for way in ways]
    for column, name in enumerate(("time per output token", "time to first token up to 3 s")):
        for kind, chosen in KINDS.items():
            rows = [[a for a in answers_of[column] if chosen(a[0])] for answers_of in by_way]
            if all(rows):
                cells = " | ".join(cell([answer[1:] for answer in of]) for of in rows)
                print(f"| {name} | {kind} | {cells} |")


def cell(rows: Sequence[tuple[float, bool]]) -> str:
    """Of errors, and whether the measurement was inside the interval."""
    middle, ninety = middle_and_ninety([abs(error) for error, _ in rows])
    covered = sum(inside for _, inside in rows) / len(rows)
    return f"{100 * middle:.1f} / {100 * ninety:.1f} / {100 * covered:.0f} of {len(rows)}"


def middle_and_ninety(sizes: Sequence[float]) -> tuple[float, float]:
    """The median, of two the larger, and the 90th percentile."""
    ordered = sorted(sizes)
    return ordered[len(ordered) // 2], ordered[math.ceil(0.9 * len(ordered)) - 1]


if __name__ == "__main__":
    main(sys.argv[1:])
