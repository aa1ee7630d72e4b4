"""Points of kinds that write no text: the functions that plans rest on meet them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from gpuplan.accuracy.points.points import Point, read_points
from gpuplan.accuracy.predict import reckon, rests
from gpuplan.accuracy.reckon import Reckoned
from gpuplan.accuracy.show.score import kind

POINTS = Path(__file__).parents[2] / "bench/points/kinds_public.csv"


def points() -> list[Point]:
    return read_points([POINTS])


def reckoned(model: str) -> list[tuple[Point, Reckoned]]:
    found = [(p, reckon(p)) for p in points() if not isinstance(p.case, str)]
    pairs = [(p, r) for p, r in found if isinstance(r, Reckoned)]
    return [(p, r) for p, r in pairs if p.case.row["model"] == model and p.confidence != "C"]


@pytest.mark.parametrize(("model", "count", "most"), [("bert-large", 60, 0.25), ("bge", 2, 0.15)])
def test_formulas_alone_are_near_what_was_measured(model: str, count: int, most: float) -> None:
    """Without any correction, and no constant was fitted to these points."""
    names = {p.case.row["model"] for p in points() if not isinstance(p.case, str)}
    (name,) = (n for n in names if n.startswith(model))
    found = reckoned(name)
    assert len(found) >= count
    errors = [abs(r.value / p.value - 1) for p, r in found]
    assert median(errors) <= most


def test_no_rate_is_beyond_the_roofline() -> None:
    for point, found in reckoned("bert-large"):
        assert found.best is not None
        assert found.value <= found.best
        assert point.value <= found.best


def test_plans_rest_on_what_predicts_them() -> None:
    found = [p for p in points() if not isinstance(p.case, str) and kind(p.case) == "reader"]
    assert found
    assert all(rests(p) for p in found)


def test_a_text_twice_as_long_takes_more_than_twice() -> None:
    (point, found) = next(iter(reckoned("bert-large")))
    length = 2 * point.case.number("input_len")
    row = {**point.case.row, "input_len": str(length)}
    longer = reckon(replace(point, case=replace(point.case, row=row)))
    assert isinstance(longer, Reckoned)
    assert longer.value < found.value / 2


def test_speech_is_near_what_was_measured_without_a_fit() -> None:
    found = reckoned("whisper-large-v3")
    assert len(found) >= 25
    assert all(0.65 <= p.value / r.value <= 1.1 for p, r in found)
    assert all(r.best is not None and p.value <= r.best for p, r in found)
