"""How far off predictions of everything but served times are of what neither the constants nor the
anchors have seen.

    PYTHONPATH=. python bench/unseen_rates.py CSV... > docs/accuracy/refitted_rates.md

As bench/unseen.py does for served times: the constants of training steps, of MLPerf Training, of
offline throughput and of MLPerf Inference are fitted again without each model, GPU generation or
source, their anchors are solved again without it, and its points are predicted with the widths of
the bundled intervals. A source that has more than half of the points is not left out. Prints a
table. Needs numpy and scipy.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import fit_benchmarks
import fit_training
import numpy as np
import offline as fit_offline
from unseen import WAYS, cell, scored, solved

from gpuplan.accuracy.data import benchmarks as benchmark_data
from gpuplan.accuracy.data import offline as offline_data
from gpuplan.accuracy.fit.calibrate import Pair, usable
from gpuplan.accuracy.fit.validate import reckoned
from gpuplan.accuracy.metrics import steps
from gpuplan.accuracy.points.points import Case, Point, read_points
from gpuplan.accuracy.points.runs import by_run
from gpuplan.accuracy.predict import PRIORS
from gpuplan.sizing.data import training_speed

Constants = dict[str, float]
Fit = Callable[[Sequence[Point]], None]  # constants of these points, put where they are used
# The kind of a point: the row of the table in which it counts.
Answer = tuple[str, str, float, bool]  # row, source, predicted / measured - 1, inside the interval


class Family(NamedTuple):
    """Quantities whose constants are fitted together, and the ways in which they can be."""

    quantities: tuple[str, ...]
    fit: Fit
    ways: tuple[str, ...] = WAYS


def fit_steps(points: Sequence[Point]) -> None:
    data = fit_training.Rows(fit_training.rows(points))
    start = dict(training_speed.CONSTANTS)
    everything = np.ones(len(data.rows), bool)
    training_speed.CONSTANTS.update(fit_training.fitted(data, everything, start))
    steps._on_machines.cache_clear()  # noqa: SLF001 - it holds the constants


def fit_runs(points: Sequence[Point]) -> None:
    """MLPerf Training: language models have the step of the others."""
    fit_steps(points)
    speeds = fit_benchmarks.FIXED | fit_benchmarks.speed(list(points))
    benchmark_data.CONSTANTS.update(speeds | fit_benchmarks.samples(list(points), speeds))


def fit_protocol(name: str) -> Fit:
    def fit(points: Sequence[Point]) -> None:
        for protocol, rows, answer in fit_offline.protocols(points):
            if protocol == name:
                start = fit_offline.STARTS[name]
                known = fit_offline.answered(rows, answer, start)
                offline_data.CONSTANTS[name].update(fit_offline.fitted(known, start, answer))
        if name == "mlperf":
            offline_data.LATENCY.update(fit_offline.fit_latency(points))

    return fit


# Without a benchmark of MLPerf Training its samples to the target are not known at all.
FAMILIES = (
    Family(("training_step", "training_step_mixture"), fit_steps),
    Family(
        ("time_to_train", "benchmark_rate", "benchmark_step"), fit_runs, ("generation", "source")
    ),
    Family(("maximum_throughput",), fit_protocol("maximum")),
    Family(("static_throughput",), fit_protocol("static")),
    Family(("first_token_alone",), fit_protocol("first_token")),
    Family(
        ("mlperf_throughput", "mlperf_token_latency", "mlperf_first_latency"),
        fit_protocol("mlperf"),
    ),
)


@contextmanager
def kept() -> Iterator[None]:
    """Puts all constants back."""
    places = [
        training_speed.CONSTANTS,
        benchmark_data.CONSTANTS,
        offline_data.LATENCY,
        *offline_data.CONSTANTS.values(),
    ]
    before = [dict(place) for place in places]
    try:
        yield
    finally:
        for place, values in zip(places, before, strict=True):
            place.update(values)
        steps._on_machines.cache_clear()  # noqa: SLF001 - it holds the constants


def name_of(point: Point, way: str) -> str:
    case = point.case
    assert isinstance(case, Case)
    if way == "source":
        return point.repository
    return case.gpu.architecture if way == "generation" else case.model.identifier


def row_of(pair: Pair) -> str:
    point, answer = pair
    if answer.quantity.startswith("training_step"):
        kind = "mixtures" if answer.quantity.endswith("mixture") else "dense"
        return f"training speed, {answer.features['framework']}, {kind}"
    return point.metric.replace("_", " ")


def answers(family: Family, points: Sequence[Point], way: str) -> Iterator[Answer]:
    mine = [p for p, _ in pairs_of(family, points)]
    count = Counter(name_of(point, way) for point in mine)
    for name in sorted(count):
        if way == "source" and 2 * count[name] > len(mine):
            continue
        gone = [p for p in points if isinstance(p.case, Case) and name_of(p, way) == name]
        ids = set(map(id, gone))
        with kept():
            with redirect_stdout(sys.stderr):
                print(f"{way} {name}: {count[name]} points", flush=True)
                family.fit([p for p in points if id(p) not in ids])
            yield from predicted(pairs_of(family, mine), ids)


def pairs_of(family: Family, points: Sequence[Point]) -> list[Pair]:
    pairs = reckoned(points)
    return [pair for quantity in family.quantities for pair in pairs.get(quantity, ())]


def predicted(pairs: Sequence[Pair], gone: set[int]) -> Iterator[Answer]:
    by_quantity: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_quantity[pair[1].quantity].append(pair)
    for quantity, of in by_quantity.items():
        prior = PRIORS[quantity]
        field = solved(prior, usable([pair for pair in of if id(pair[0]) not in gone], prior))
        for pair in usable([pair for pair in of if id(pair[0]) in gone], prior):
            yield row_of(pair), pair[0].repository, *scored(field, pair)[1:]


def judged(
    of: Sequence[Answer], way: str, row: str, measured: Counter[tuple[str, str]]
) -> list[Answer]:
    """Without sources that have more than half of a row's points, where sources are left out."""
    every = sum(count for (name, _), count in measured.items() if name == row)
    return [a for a in of if way != "source" or 2 * measured[row, a[1]] <= every]


def main(paths: list[str]) -> None:
    points = [
        p
        for p in by_run(read_points([Path(p) for p in paths]))
        if isinstance(p.case, Case) and p.confidence != "C"
    ]
    rows: dict[str, dict[str, list[Answer]]] = {}
    measured: Counter[tuple[str, str]] = Counter()
    for family in FAMILIES:
        measured.update((row_of(p), p[0].repository) for p in pairs_of(family, points))
        for way in WAYS:
            for answer in answers(family, points, way) if way in family.ways else ():
                rows.setdefault(answer[0], defaultdict(list))[way].append(answer)
    print("| prediction | " + " | ".join(f"{way} left out" for way in WAYS) + " |")
    print("|---|" + "---:|" * len(WAYS))
    for row, by_way in sorted(rows.items()):
        cells = " | ".join(_cell(judged(by_way.get(way, ()), way, row, measured)) for way in WAYS)
        print(f"| {row} | {cells} |")
    print("\nA cell is `median % / 90th percentile % / covered %` of so many points.")


def _cell(rows: Sequence[Answer]) -> str:
    return cell([(error, inside) for _, _, error, inside in rows]) if rows else "–"


if __name__ == "__main__":
    main(sys.argv[1:])
