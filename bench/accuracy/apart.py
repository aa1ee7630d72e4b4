"""How far two sources are apart where they measured the same: what no prediction can do better.

    python -m bench.accuracy.apart INFERENCE_CSV... > docs/accuracy/apart.md

Pairs are of one model, GPU, engine, precision and layout, by two sources, whatever their release of
the engine. Each point of the first meets the one of the second whose load is nearest, at most twice
or half as many requests and tokens; the formulas take out what is left of that difference. Prints a
table.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from bench.fitting import calibrate
from gpuplan.accuracy.metrics.serving import tpot, ttft
from gpuplan.accuracy.points.points import Point, read_points
from gpuplan.accuracy.reckon import Reckoned
from gpuplan.sizing.calibration.anchors import Features

LOAD = ("batch", "input", "output")  # coordinates of the anchors: base-2 logarithms
MOST = 1.1  # of each by which two loads may differ; 1,000 tokens and 500 drawn ones pass
TIMES = (("tpot", "per output token", tpot), ("ttft", "to first token", ttft))


class Measured(NamedTuple):
    features: Features
    value: float
    formulas: float

    def far(self, other: Measured) -> list[float]:
        return [abs(float(self.features[k]) - float(other.features[k])) for k in LOAD]


def measured(points: list[Point], metric: str) -> Iterator[Measured]:
    how = next(function for name, _, function in TIMES if name == metric)
    for point, served in calibrate.expressed(points, metric):
        answer = how(served.case)
        if isinstance(answer, Reckoned):
            yield Measured(answer.features, point.value, answer.value)


def pairs(points: Sequence[Measured]) -> Iterator[tuple[Measured, Measured]]:
    by_layout = defaultdict(lambda: defaultdict(list))
    for one in points:
        by_layout[one.features["layout"]][one.features["source"]].append(one)
    for sources in by_layout.values():
        for first, second in combinations(sorted(sources, key=lambda s: len(sources[s])), 2):
            for one in sources[first]:
                near = min(sources[second], key=lambda other: sum(one.far(other)))
                if max(one.far(near)) <= MOST:
                    yield one, near


def main(paths: list[str]) -> None:
    points = read_points([Path(path) for path in paths])
    print("| time | measured by | and by | GPU, engine | pairs | apart | apart, load taken out |")
    print("|---|---|---|---|---:|---:|---:|")
    for metric, name, _ in TIMES:
        rows = defaultdict(list)
        for one, near in pairs([*measured(points, metric)]):
            key = (one.features, near.features["source"])
            shown = (key[0]["source"], key[1], f"{key[0]['gpu']}, {key[0]['engine']}")
            ratio = one.value / near.value
            rows[shown].append((ratio, ratio * near.formulas / one.formulas))
        for shown, ratios in sorted(rows.items()):
            both = " | ".join(_apart([r[i] for r in ratios]) for i in (0, 1))
            print(f"| {name} | {' | '.join(map(str, shown))} | {len(ratios)} | {both} |")
    print("\n*Apart* is the median of how much longer the longer of two times is: + where that is")
    print("the first source's.")


def _apart(ratios: list[float]) -> str:
    logs = sorted(map(math.log, ratios))
    size = sorted(map(abs, logs))[len(logs) // 2]
    return f"{math.copysign(math.expm1(size), logs[len(logs) // 2]):+.0%}"


if __name__ == "__main__":
    main(sys.argv[1:])
