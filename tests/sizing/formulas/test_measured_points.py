"""A correction is measured over formula, of the formula that was there when points were stored. One
that changes without `make anchors` is corrected for the errors of another, in every plan near them.

The rows of `measured.csv` are published points that take every formula and constant of serving,
training and images between them; their sources stand in `gpuplan/sizing/data/anchors`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from gpuplan.accuracy.points.points import Point, read_points
from gpuplan.accuracy.predict import predict, reckon, rests
from gpuplan.accuracy.reckon import Reckoned
from gpuplan.plan.model import Estimate
from gpuplan.sizing.calibration.anchors import Anchor, Anchors

POINTS = read_points([Path(__file__).with_name("measured.csv")])


@cache
def stored(quantity: str) -> dict[str, Anchor]:
    return {anchor.identifier: anchor for anchor in Anchors()(quantity).anchors}


@pytest.mark.parametrize("metric", sorted({point.metric for point in POINTS}))
def test_points_are_stored_with_what_the_formulas_say_of_them(metric: str) -> None:
    for point in (p for p in POINTS if p.metric == metric):
        reckoned = reckon(point)
        assert isinstance(reckoned, Reckoned)
        assert rests(point)
        anchor = stored(reckoned.quantity)[point.identifier]
        assert reckoned.anchored(reckoned.value) == pytest.approx(anchor.formula, rel=1e-5), anchor
        for name, place in anchor.features.items():
            near = place if isinstance(place, str) else pytest.approx(place, abs=1e-3)
            assert reckoned.features[name] == near


def test_predictions_span_what_was_measured() -> None:
    """Their intervals hold nine tenths of points that took no part, and more of those that did."""

    def spanned(point: Point) -> bool:
        found = predict(point, Anchors())
        assert isinstance(found, Estimate)
        assert found.low <= found.value <= found.high
        return found.low <= point.value <= found.high

    assert sum(map(spanned, POINTS)) >= 0.95 * len(POINTS)
