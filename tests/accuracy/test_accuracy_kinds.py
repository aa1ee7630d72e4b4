"""Points of kinds that write no text: the functions that plans rest on meet them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from gpuplan.accuracy.points.points import Case, Point, read_points
from gpuplan.accuracy.predict import reckon, rests
from gpuplan.accuracy.reckon import Reckoned
from gpuplan.accuracy.show.score import kind

POINTS = Path(__file__).parents[2] / "bench/points/kinds_public.csv"


def points() -> list[tuple[Point, Case]]:
    return [(p, p.case) for p in read_points([POINTS]) if isinstance(p.case, Case)]


def reckoned(model: str) -> list[tuple[Point, Reckoned]]:
    found = [(p, c, reckon(p)) for p, c in points() if p.confidence != "C"]
    named = [(p, r) for p, c, r in found if c.row["model"].startswith(model)]
    return [(p, r) for p, r in named if isinstance(r, Reckoned)]


def test_every_point_is_predicted() -> None:
    assert len(points()) == len(read_points([POINTS])) > 80


@pytest.mark.parametrize(("model", "count", "most"), [("bert-large", 60, 0.25), ("bge", 2, 0.15)])
def test_formulas_alone_are_near_what_was_measured(model: str, count: int, most: float) -> None:
    """Without any correction, and no constant was fitted to these points."""
    found = reckoned(model)
    assert len(found) >= count
    errors = [abs(r.value / p.value - 1) for p, r in found]
    assert median(errors) <= most


def test_no_rate_is_beyond_the_roofline() -> None:
    for point, found in reckoned("bert-large"):
        assert found.best is not None
        assert found.value <= found.best
        assert point.value <= found.best


def test_plans_rest_on_what_predicts_them() -> None:
    assert {kind(c) for _, c in points()} == {"reader", "speech", "vision"}
    assert all(rests(p) for p, _ in points())


def test_a_text_twice_as_long_takes_more_than_twice() -> None:
    point, case = next((p, c) for p, c in points() if c.row["model"] == "bert-large")
    found = reckon(point)
    row = {**case.row, "input_len": str(2 * case.number("input_len"))}
    longer = reckon(replace(point, case=replace(case, row=row)))
    assert isinstance(found, Reckoned)
    assert isinstance(longer, Reckoned)
    assert longer.value < found.value / 2


def test_speech_is_near_what_was_measured_without_a_fit() -> None:
    found = reckoned("whisper-large-v3")
    assert len(found) >= 25
    assert all(0.65 <= p.value / r.value <= 1.1 for p, r in found)
    assert all(r.best is not None and p.value <= r.best for p, r in found)
