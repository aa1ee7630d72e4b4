"""How far off predictions of everything but served times are of what neither the constants nor the
anchors have seen, and how much wider their intervals must be for it.

    python -m bench.accuracy.refitted_rates CSV... > docs/accuracy/refitted_rates.md

As bench/accuracy/refitted.py does for served times: the constants of training steps, of MLPerf
Training, of offline throughput and of MLPerf Inference are fitted again without each model, GPU
generation or source, their anchors are solved again without it, and its points are predicted. A
source that has more than half of the points is not left out. Writes
gpuplan/accuracy/data/stretch.py, factors on intervals that are measured with constants which saw
the points; prints a table with them. They are reckoned from the intervals of the bundled anchors,
which have the factors that are there: before another run comes `make anchors`. Needs numpy and
scipy.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np

from bench.accuracy.refitted import WAYS, cell, scored, solved
from bench.fitting import benchmarks as fit_benchmarks
from bench.fitting import offline as fit_offline
from bench.fitting import training as fit_training
from bench.fitting.fit import table, write
from gpuplan.accuracy.data import benchmarks as benchmark_data
from gpuplan.accuracy.data import offline as offline_data
from gpuplan.accuracy.fit.calibrate import Pair, stretch, usable
from gpuplan.accuracy.fit.validate import reckoned
from gpuplan.accuracy.metrics import steps
from gpuplan.accuracy.points.points import Case, Point, read_points
from gpuplan.accuracy.points.runs import by_run
from gpuplan.accuracy.predict import PRIORS
from gpuplan.accuracy.reckon import Prior
from gpuplan.sizing.calibration.anchors import Field
from gpuplan.sizing.data import training_speed

Constants = dict[str, float]
Fit = Callable[[Sequence[Point]], None]  # constants of these points, put where they are used
Key = tuple[str, str, int]  # quantity, kind of its `by`, reach
COVERED = 0.9
FEW, LEAST = 15, 12  # points of a row for which its own factor counts half, and none
WIDEST = 1.8
ABOUT = """Factors on the ends of intervals

By quantity, kind and reach: the constants of the formulas have seen the points by which intervals
are measured, and of points that they did not see errors lie farther apart.
"""


class Answer(NamedTuple):
    """Of a point: the `row` of the table in which it counts, who measured it, what was left `out`,
    predicted / measured - 1, and how far it lies, in ends of the interval without factors."""

    row: str
    source: str
    out: str
    error: float
    far: float
    key: Key


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
            yield from predicted(pairs_of(family, mine), ids, name)


def pairs_of(family: Family, points: Sequence[Point]) -> list[Pair]:
    pairs = reckoned(points)
    return [pair for quantity in family.quantities for pair in pairs.get(quantity, ())]


def predicted(pairs: Sequence[Pair], gone: set[int], out: str) -> Iterator[Answer]:
    by_quantity: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_quantity[pair[1].quantity].append(pair)
    for quantity, of in by_quantity.items():
        prior = PRIORS[quantity]
        field = solved(prior, usable([pair for pair in of if id(pair[0]) not in gone], prior))
        for pair in usable([pair for pair in of if id(pair[0]) in gone], prior):
            far, key = placed(field, prior, pair)
            yield Answer(row_of(pair), pair[0].repository, out, scored(field, pair)[1], far, key)


def placed(field: Field, prior: Prior, pair: Pair) -> tuple[float, Key]:
    point, answer = pair
    features = answer.features
    reach, kind = field.reach(features), str(features[prior.by]) if prior.by else ""
    place = field.reaches.index(reach)
    z = (answer.error(point.value) - field.mean(features)) / field.sigma(features)
    far = z / reach.ends(features)[z > 0]
    return far * stretch(prior, place, kind), (prior.quantity, kind, place)


def factors(rows: Mapping[str, Mapping[str, Sequence[Answer]]]) -> dict[Key, float]:
    """Of each reach: what the row needs, in the way, that needs most."""
    together = defaultdict[Key, dict[tuple[str, str], list[float]]](lambda: defaultdict(list))
    for row, by_way in rows.items():
        for way, of in by_way.items():
            for answer in of:
                together[answer.key][row, way].append(answer.far)
    wide = {}
    for key, ways in sorted(together.items()):
        needs = [_needed(of) for of in ways.values() if len(of) >= LEAST]
        if needs and max(needs) > 1:
            wide[key] = float(f"{min(max(needs), WIDEST):.3g}")
    return wide


def _needed(far: Sequence[float]) -> float:
    part = len(far) / (len(far) + FEW)
    return float(np.quantile(far, COVERED)) ** part


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
                rows.setdefault(answer.row, defaultdict(list))[way].append(answer)
    every = {
        row: {way: judged(of, way, row, measured) for way, of in by_way.items()}
        for row, by_way in rows.items()
    }
    shown(every)


def shown(rows: Mapping[str, Mapping[str, Sequence[Answer]]]) -> None:
    """The table, and the factors that it takes, written."""
    wide = factors(rows)
    write("accuracy/data/stretch.py", ABOUT, module(wide))
    halves = [factors(_half(rows, n)) for n in (0, 1)]

    def cell_of(of: Sequence[Answer]) -> str:
        if not of:
            return "–"
        text = cell([(a.error, a.far <= wide.get(a.key, 1.0)) for a in of])
        others = sum(a.far <= halves[not _second(a)].get(a.key, 1.0) for a in of) / len(of)
        return text.replace(" of ", f" ({100 * others:.0f}) of ")

    print("| prediction | " + " | ".join(f"{way} left out" for way in WAYS) + " |")
    print("|---|" + "---:|" * len(WAYS))
    for row, by_way in sorted(rows.items()):
        print(f"| {row} | {' | '.join(cell_of(by_way.get(way, ())) for way in WAYS)} |")
    print(f"\n{NOTE}")


NOTE = """\
A cell is `median % / 90th percentile % / covered % (the same by others)` of so many points: how
wide intervals are was learnt from these same points; *by others*, each half of the models,
generations and sources took it from the other half."""


def _half(
    rows: Mapping[str, Mapping[str, Sequence[Answer]]], second: int
) -> dict[str, dict[str, list[Answer]]]:
    return {
        row: {way: [a for a in of if _second(a) == second] for way, of in by_way.items()}
        for row, by_way in rows.items()
    }


def _second(answer: Answer) -> int:
    return crc32(answer.out.encode()) % 2


def module(wide: Mapping[Key, float]) -> Iterator[str]:
    nested: dict[str, dict[str, dict[int, float]]] = {}
    for (quantity, kind, place), factor in wide.items():
        nested.setdefault(quantity, {}).setdefault(kind, {})[place] = factor
    yield from table("STRETCH: dict[str, dict[str, dict[int, float]]]", nested)


if __name__ == "__main__":
    main(sys.argv[1:])
