"""Predictions of points that did not take part: cross-validation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from gpuplan.accuracy.calibrate import Pair, calibrate, held_out, points_of, usable
from gpuplan.accuracy.points import Point
from gpuplan.accuracy.predict import PRIORS, reckon
from gpuplan.accuracy.reckon import Reckoned
from gpuplan.plan.model import Estimate
from gpuplan.sizing.anchors import Anchors, Field


def reckoned(points: Iterable[Point]) -> Mapping[str, list[Pair]]:
    """The points that anchors may correct, by quantity."""
    found: dict[str, list[Pair]] = defaultdict(list)
    for point in points:
        answer = reckon(point)
        if isinstance(answer, Reckoned):
            found[answer.quantity].append((point, answer))
    return found


def fields(points: Iterable[Point], *, alone: bool) -> dict[str, Field]:
    """Anchors of these points, by quantity, and unless `alone` of the bundled ones beside them."""
    found: dict[str, Field] = {}
    for quantity, pairs in sorted(reckoned(points).items()):
        known = {point.identifier for point, _ in pairs}
        bundled = [] if alone else points_of(Anchors()(quantity), quantity)
        others = [pair for pair in bundled if pair[0].identifier not in known]
        found[quantity] = calibrate([*others, *pairs], PRIORS[quantity])
    return found


def without(
    points: Sequence[Point], way: str, anchored: Mapping[str, Field]
) -> list[tuple[Point, Estimate | str]]:
    """Each usable point and its prediction from the others, in the points' order: without its
    `group`, its `model` or its `gpu` (`way`). What formulas alone predict stays as it is."""
    found: dict[int, Estimate] = {}
    by_quantity = reckoned(points)
    for quantity, pairs in by_quantity.items():
        for held in held_out(usable(pairs), PRIORS[quantity], lambda pair: _name(pair, way)):
            found[id(held.pair[0])] = held.estimate(anchored[quantity])
    answers: list[tuple[Point, Estimate | str]] = []
    for point in points:
        answer = found.get(id(point)) or reckon(point)
        if not isinstance(answer, Reckoned):
            answers.append((point, answer))
    return answers


def _name(pair: Pair, way: str) -> str:
    point, answer = pair
    return point.group if way == "group" else str(answer.features.get(way, ""))
