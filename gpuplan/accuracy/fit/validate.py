"""Predictions of points that did not take part: cross-validation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from gpuplan.accuracy.fit.calibrate import Pair, calibrate, held_out, points_of, usable
from gpuplan.accuracy.points.points import Point
from gpuplan.accuracy.predict import PRIORS, predict, reckon
from gpuplan.accuracy.reckon import Reckoned
from gpuplan.plan.model import Estimate
from gpuplan.sizing.calibration.anchors import Anchors, Field


def reckoned(points: Iterable[Point]) -> Mapping[str, list[Pair]]:
    """The points that anchors may correct, by quantity."""
    found: dict[str, list[Pair]] = defaultdict(list)
    for point in points:
        answer = reckon(point)
        if isinstance(answer, Reckoned):
            found[answer.quantity].append((point, answer))
    return found


def fields(points: Iterable[Point], *, alone: bool) -> dict[str, Field]:
    """Anchors of these points, by quantity, and unless `alone` of the bundled ones beside them.
    Alone, quantities that no point measures have empty ones: as wide as the prior is."""
    found: dict[str, Field] = {}
    measured = reckoned(points)
    for quantity in sorted(PRIORS if alone else measured):
        pairs = measured.get(quantity, [])
        known = {point.identifier for point, _ in pairs}
        bundled = [] if alone else points_of(Anchors()(quantity), quantity)
        others = [pair for pair in bundled if pair[0].identifier not in known]
        found[quantity] = calibrate([*others, *pairs], PRIORS[quantity])
    return found


def without(
    points: Sequence[Point], way: str, anchored: Mapping[str, Field]
) -> list[tuple[Point, Estimate | str]]:
    """Each point and its prediction from the others, in the points' order: without its `group`, its
    `model` or its `gpu` (`way`). Points that correct nothing, and what formulas alone predict, are
    predicted by all. Those of confidence C are left away."""
    found: dict[int, Estimate] = {}
    for quantity, pairs in reckoned(points).items():
        prior = PRIORS[quantity]
        reaches = anchored[quantity].reaches
        for held in held_out(usable(pairs, prior), prior, lambda pair: _name(pair, way), reaches):
            found[id(held.pair[0])] = held.estimate
    everything = Anchors(anchored)
    return [
        (point, found.get(id(point)) or predict(point, everything))
        for point in points
        if point.confidence != "C"
    ]


def _name(pair: Pair, way: str) -> str:
    point, answer = pair
    return point.group if way == "group" else str(answer.features.get(way, ""))
