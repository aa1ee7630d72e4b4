"""Corrections by near points against matrices (Rasmussen and Williams 2006, ch. 2)."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np
import pytest

from gpuplan.sizing.calibration.corrections import Corrected, step, widened
from gpuplan.sizing.calibration.gaussian import NEIGHBOURS, NOBODYS, Process, Term, log2
from gpuplan.sizing.calibration.points import Points
from gpuplan.sizing.evidence.intervals import doubted, estimate, inverse, metric, probability

TERMS = (
    Term(amplitude=0.5, same=("engine",)),
    Term(amplitude=0.3, same=("engine", "cell"), scales=(("batch", 2.0), ("input", 3.0))),
)
NOISE = 0.1
# Engine, cell, batch, input, measured.
ROWS = [
    ("vllm", "a", 0.0, 5.0, 0.20),
    ("vllm", "a", 3.0, 6.0, 0.10),
    ("vllm", "b", 1.0, 5.0, -0.15),
    ("sglang", "a", 1.0, 5.0, 0.40),
]
HERE = {"engine": "vllm", "cell": "a", "batch": 1.0, "input": 5.5}


def covariance(one: tuple, other: tuple) -> float:
    if one[0] != other[0]:
        return 0.0
    total = 0.5**2
    if one[1] == other[1]:
        distance = ((one[2] - other[2]) / 2) ** 2 + ((one[3] - other[3]) / 3) ** 2
        total += 0.3**2 * math.exp(-distance / 2)
    return total


MATRIX = np.array([[covariance(a, b) for b in ROWS] for a in ROWS]) + NOISE**2 * np.eye(4)
WEIGHTS = np.linalg.solve(MATRIX, [row[4] for row in ROWS])
PROCESS = Process(
    TERMS,
    NOISE,
    Points(
        names=("engine", "cell"),
        places=("batch", "input"),
        texts=[row[:2] for row in ROWS],
        numbers=[row[2:4] for row in ROWS],
        weights=[float(w) for w in WEIGHTS],
        noises=[NOISE**2] * 4,
    ),
)


def at(batch: float) -> np.ndarray:
    return np.array([covariance(("vllm", "a", batch, 5.5), row) for row in ROWS])


def test_the_mean_is_that_of_the_matrices() -> None:
    assert PROCESS.mean(HERE) == pytest.approx(at(1.0) @ WEIGHTS)
    values = [0.0, 1.0, 2.5, 9.0]
    assert [*map(PROCESS.along(HERE, "batch"), values)] == pytest.approx(
        [at(v) @ WEIGHTS for v in values]
    )
    assert PROCESS.along(HERE, "input")(5.5) == pytest.approx(at(1.0) @ WEIGHTS)


def test_each_term_says_what_it_adds_and_of_how_many_points() -> None:
    shared, near = PROCESS.parts(HERE)
    assert (shared.points, near.points) == (3, 2)
    assert shared.value == pytest.approx(0.25 * sum(WEIGHTS[:3]))
    assert shared.value + near.value == pytest.approx(PROCESS.mean(HERE))
    assert PROCESS.parts({**HERE, "engine": "other"}) == []
    (alone,) = PROCESS.parts({**HERE, "cell": "other"})
    assert alone.points == 3


def test_the_nearest_are_those_of_the_largest_covariance() -> None:
    found = PROCESS.nearest(HERE)
    assert [n for _, n in found] == [0, 1, 2]
    assert [value for value, _ in found] == pytest.approx([at(1.0)[n] for n in (0, 1, 2)])


@pytest.mark.parametrize("seed", range(12))
def test_of_many_points_none_is_nearer_than_those_that_are_found(seed: int) -> None:
    draw = random.Random(seed)
    rows = [
        (draw.choice("vwx"), draw.choice("abcd"), draw.choice([0.0, 1.0, 4.0]), draw.uniform(0, 9))
        for _ in range(120)
    ]
    numbers, texts = [row[2:] for row in rows], [row[:2] for row in rows]
    points = Points(
        ("engine", "cell"), ("batch", "input"), texts, numbers, [1.0] * 120, [0.01] * 120
    )
    here = ("v", "a", 1.0, 5.0)
    features = dict(zip(("engine", "cell", "batch", "input"), here, strict=True))
    process = Process(TERMS, NOISE, points)
    far = sorted((-covariance(here, row), n) for n, row in enumerate(rows))
    found = process.nearest(features)
    assert [n for _, n in found] == [n for value, n in far if value][:NEIGHBOURS]
    assert [value for value, _ in found] == pytest.approx([-value for value, _ in far[:NEIGHBOURS]])
    same = process.sharing(["cell"])
    among = [n for value, n in far if value and rows[n][1] == "b"][:NEIGHBOURS]
    assert [n for _, n in process.nearest(features, same.kinds("b"))] == among


def test_the_spread_is_that_of_the_matrices() -> None:
    found = PROCESS.nearest(HERE)
    column = np.array([value for value, _ in found])
    known = column @ np.linalg.solve(MATRIX[:3, :3], column)
    expected = math.sqrt(0.5**2 + 0.3**2 + NOISE**2 - known)
    assert PROCESS.sigma(HERE, found) == pytest.approx(expected)
    assert PROCESS.sigma(HERE, []) == pytest.approx(math.sqrt(0.25 + 0.09 + 0.01))
    certain = [(0.59, 0)]  # more than a point can say: no less than the noise
    assert PROCESS.sigma(HERE, certain) == pytest.approx(NOISE)


def test_one_text_is_shared_with_nobody() -> None:
    terms = (*TERMS, Term(amplitude=0.4, same=("warming",)))

    def process(warming: tuple[str, str]) -> Process:
        return Process(
            terms,
            NOISE,
            Points(
                names=("engine", "cell", "warming"),
                places=("batch", "input"),
                texts=[("vllm", "other", text) for text in warming],
                numbers=[(1.0, 5.5)] * 2,
                weights=[1.0, 2.0],
                noises=[NOISE**2] * 2,
            ),
        )

    unlike, alike = {**HERE, "warming": NOBODYS}, {**HERE, "warming": "yes"}
    assert process((NOBODYS, NOBODYS)).mean(unlike) == pytest.approx(3 * 0.25)
    assert process(("yes", NOBODYS)).mean(alike) == pytest.approx(3 * 0.25 + 0.4**2)
    spread = math.sqrt(0.25 + 0.09 + 0.01)
    assert process((NOBODYS, NOBODYS)).sigma(unlike, []) == pytest.approx(spread)
    assert process((NOBODYS, NOBODYS)).sigma(alike, []) == pytest.approx(math.hypot(spread, 0.4))
    ((nearest, _),) = process(("yes", NOBODYS)).nearest(unlike, [1])
    assert nearest == pytest.approx(0.25)


def test_coordinates_are_logarithms_with_an_end() -> None:
    assert [log2(v) for v in (8, 1, 0.0625, 0.01, 0)] == [3, 0, -4, -4, -4]
    assert log2(3) == 1.585


def test_a_load_is_taken_in_steps_of_two_up_to_a_thousand() -> None:
    loads = (0.1, 1, 1.4, 1.42, 2, 5.6, 5.7, 1024, 1449, 9999)
    assert [step(n) for n in loads] == [0, 0, 0, 1, 1, 2, 3, 10, 10, 10]


class Falling:
    """A field whose correction falls by half from load to load."""

    def along(self, features: object, name: str) -> Callable[[float], float]:
        assert name == "batch"
        return lambda value: -math.log(2) * value


def test_a_time_never_falls_where_the_load_grows() -> None:
    """Corrected by halves from step to step, it stays what it was at the end of the first."""
    fallen = Corrected(
        "token",
        Falling(),  # type: ignore[arg-type]
        at=lambda sequences: {"batch": 0.0},
        modelled=lambda sequences: 3.0 * sequences**0.5,
    )
    assert [fallen.factor(n) for n in (1, 2, 8)] == pytest.approx([1, 0.5, 0.125])
    assert fallen.floor(1) == 0
    assert fallen.floor(2) == pytest.approx(3 * 2**0.25)
    assert fallen.floor(8) == pytest.approx(3 * 2**0.25)
    assert fallen.inputs(2) == pytest.approx({"token_correction": 0.5, "token_floor": 3 * 2**0.25})


def test_intervals() -> None:
    assert inverse((0.5, 4.0)) == (0.25, 2.0)
    assert widened((0.5, 2.0), 2) == (0.25, 4.0)
    low, high = doubted((math.exp(-3), math.exp(0.6)), (math.exp(-4), math.exp(0.8)))
    assert (math.log(low), math.log(high)) == pytest.approx((-5, 1.0))
    made = estimate(10.0, (0.5, 1.5), "measured")
    assert (made.value, made.low, made.high) == (10, 5, 15)


def test_an_objective_at_the_end_of_the_interval_is_met_with_95_percent() -> None:
    assert probability(10, 15, (0.5, 1.5), "at_most") == pytest.approx(0.95, abs=1e-4)
    assert probability(10, 5, (0.5, 1.5), "at_most") == pytest.approx(0.05, abs=1e-4)
    assert probability(10, 10, (0.5, 1.5), "at_most") == 0.5
    assert probability(10, 5, (0.5, 1.5), "at_least") == pytest.approx(0.95, abs=1e-4)
    made = metric("m", "s", 10, factors=(0.5, 1.5), basis="measured", limit=15)
    assert (made.limit, made.probability) == (15, pytest.approx(0.95, abs=1e-4))
    assert metric("m", "s", 10, factors=(0.5, 1.5), basis="measured").probability is None
