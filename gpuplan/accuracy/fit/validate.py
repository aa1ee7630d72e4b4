"""Predictions of points that did not take part: cross-validation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from gpuplan.accuracy.fit.calibrate import Pair, calibrate, held_out, points_of, usable
from gpuplan.accuracy.points.points import Case, Point
from gpuplan.accuracy.points.runs import by_run
from gpuplan.accuracy.predict import PRIORS, predict, reckon
from gpuplan.accuracy.reckon import Reckoned
from gpuplan.diagnostics import Diagnostic, error
from gpuplan.errors import Rejected
from gpuplan.plan.model import Estimate
from gpuplan.sizing.calibration.anchors import Anchors, Field

MOST_POINTS = 4_000  # of a quantity: half a minute and 800 MiB


def too_many_points(quantity: str, count: int) -> Diagnostic:
    return error(
        "GP005",
        f"{count:,} points of {quantity}, and anchors are made of {MOST_POINTS:,} at most",
        help="leave out rows that repeat a setting",
    )


def reckoned(points: Iterable[Point]) -> Mapping[str, list[Pair]]:
    """The points that anchors may correct, by quantity."""
    by_quantity: dict[str, list[Pair]] = defaultdict(list)
    for point in points:
        answer = reckon(point)
        if isinstance(answer, Reckoned):
            by_quantity[answer.quantity].append((point, answer))
    return by_quantity


def fields(points: Iterable[Point], *, alone: bool) -> dict[str, Field]:
    """Anchors of these points, by quantity, and unless `alone` of the bundled ones beside them.
    Alone, quantities that no point measures have empty ones: as wide as the prior is. Raises
    `Rejected` where they are too many."""
    measured = reckoned(by_run(list(points)))
    together: dict[str, list[Pair]] = {}
    for quantity in sorted(PRIORS if alone else measured):
        pairs = measured.get(quantity, [])
        known = {point.identifier for point, _ in pairs}
        bundled = [] if alone else points_of(Anchors()(quantity), quantity)
        others = [pair for pair in bundled if pair[0].identifier not in known]
        together[quantity] = [*others, *pairs]
    counts = {quantity: len(pairs) for quantity, pairs in together.items()}
    if problems := [too_many_points(*each) for each in counts.items() if each[1] > MOST_POINTS]:
        raise Rejected(problems)
    return {quantity: calibrate(pairs, PRIORS[quantity]) for quantity, pairs in together.items()}


def without(
    points: Sequence[Point], way: str, anchored: Mapping[str, Field]
) -> list[tuple[Point, Estimate | str]]:
    """Each point and its prediction from the others, in the points' order: without its `group`, its
    `model`, its `gpu`, the `generation` of that or its `source` (`way`). Points that correct
    nothing, and what formulas alone predict, are predicted by all. Those of confidence C are left
    away."""
    points, estimates = by_run(points), dict[int, Estimate]()
    for quantity, pairs in reckoned(points).items():
        prior = PRIORS[quantity]
        reaches = anchored[quantity].reaches
        for held in held_out(usable(pairs, prior), prior, lambda pair: _name(pair, way), reaches):
            estimates[id(held.pair[0])] = held.estimate
    everything = Anchors(anchored)
    return [
        (point, estimates.get(id(point)) or predict(point, everything))
        for point in points
        if point.confidence != "C"
    ]


def _name(pair: Pair, way: str) -> str:
    point, answer = pair
    if way == "group":
        return point.group
    if way == "source":
        return point.repository
    if way == "generation" and isinstance(point.case, Case):
        return point.case.gpu.architecture
    return str(answer.features.get(way, ""))
