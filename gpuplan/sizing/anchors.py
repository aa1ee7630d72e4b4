"""The second layer: measured points that correct what the formulas say near them.

Gaussian-process regression of ln(measured / formula) (Rasmussen and Williams 2006, ch. 2): a sum of
kernels "same engine", "same model", … that may fade with the distance in load and lengths. Far from
any point the correction is 1. The weights are solved when the points are stored (`gpuplan accuracy
--calibrate`), so that a correction is a sum over the points that share something with the setting.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from gpuplan.diagnostics import error
from gpuplan.errors import Rejected
from gpuplan.plan.records import record

Features = Mapping[str, str | float]  # texts: what must be the same; numbers: where, often log2
Place = tuple[float, ...]  # numbers of a term, in units of its lengths
Spot = tuple[tuple[object, ...], tuple[Place, ...]]  # by term: the texts, and the numbers
NEIGHBOURS = 12  # points that decide the width of an interval, and that `explain` may name


@record
class Term:
    """`amplitude`² where all texts of `same` are equal, fading with the distance in the numbers of
    `scales`, each in its own length."""

    amplitude: float
    same: tuple[str, ...]
    scales: tuple[tuple[str, float], ...] = ()


@record
class Reach:
    """The ends of 90 % intervals, in standard deviations, where some point shares the texts of
    `same`; `known`: there, predictions count as calibrated."""

    same: tuple[str, ...]
    low: float
    high: float
    known: bool


@record
class Anchor:
    """A measured point: the `weight` of its kernel, and the `noise` variance of its logarithm.
    `measured` and `formula` are in the field's unit; points of one `group` are not independent."""

    identifier: str
    group: str
    features: Features
    weight: float
    noise: float
    measured: float
    formula: float
    source: str


@record
class Correction:
    """`factor` on the formula's value; `low` and `high` as multiples of the corrected value; the
    nearest points first."""

    factor: float
    low: float
    high: float
    known: bool
    nearest: tuple[Anchor, ...]


def key(features: Features, same: Sequence[str]) -> str:
    if len(same) == 1:
        return str(features[same[0]])
    return "|".join([str(features[name]) for name in same])


class Field:
    """The anchors of one quantity. `reaches` go from the nearest to the farthest; the last shares
    nothing."""

    def __init__(
        self,
        terms: Sequence[Term],
        noise: float,
        reaches: Sequence[Reach],
        anchors: Sequence[Anchor],
        *,
        source: str = "",
    ) -> None:
        self.terms, self.noise, self.source = tuple(terms), noise, source
        self.reaches, self.anchors = tuple(reaches), tuple(anchors)
        self._squares = [t.amplitude**2 for t in self.terms]
        self._prior = math.fsum(self._squares)
        self._getters = [operator.itemgetter(*t.same) for t in self.terms]
        spots = [self._spot(a.features) for a in self.anchors]
        self._spots = {id(a): spot for a, spot in zip(self.anchors, spots, strict=True)}
        self._shared = [_grouped(self.anchors, r.same) for r in self.reaches]
        self._groups: list[dict[object, list[tuple[float, Place]]]] = []
        self._sums: list[dict[object, float]] = []
        for n, term in enumerate(self.terms):
            groups: dict[object, list[tuple[float, Place]]] = {}
            for anchor, (keys, places) in zip(self.anchors, spots, strict=True):
                groups.setdefault(keys[n], []).append((anchor.weight, places[n]))
            square = term.amplitude**2
            sums = {k: square * math.fsum(w for w, _ in g) for k, g in groups.items()}
            self._groups.append(groups if term.scales else {})
            self._sums.append({} if term.scales else sums)

    def mean(self, features: Features) -> float:
        """The logarithm of the factor."""
        keys, places = self._spot(features)
        total = 0.0
        for n, name in enumerate(keys):
            total += self._sums[n].get(name, 0.0)
            if found := self._groups[n].get(name):
                here = places[n]
                total += self._squares[n] * sum([w * _fading(here, far) for w, far in found])
        return total

    def correction(self, features: Features) -> Correction:
        nearest, reach = self.nearest(features), self.reach(features)
        sigma = self.sigma(features, nearest)
        return Correction(
            factor=math.exp(self.mean(features)),
            low=math.exp(reach.low * sigma),
            high=math.exp(reach.high * sigma),
            known=reach.known,
            nearest=nearest,
        )

    def nearest(self, features: Features) -> tuple[Anchor, ...]:
        """The points with the largest covariance, of those that share the most texts."""
        here = self._spot(features)
        found = [(self._between(here, self._spots[id(a)]), a) for a in self._close(features)]
        found.sort(key=lambda pair: (-pair[0], pair[1].identifier))
        return tuple(a for value, a in found[:NEIGHBOURS] if value > 0)

    def sigma(self, features: Features, nearest: Sequence[Anchor]) -> float:
        """The standard deviation of the logarithm of a new measurement, given those points."""
        here = self._spot(features)
        spots = [self._spots[id(a)] for a in nearest]
        column = [self._between(here, there) for there in spots]
        rows = [[self._between(a, b) for b in spots[: n + 1]] for n, a in enumerate(spots)]
        for n, anchor in enumerate(nearest):
            rows[n][n] += anchor.noise
        known = _explained(rows, column)
        return math.sqrt(max(self._prior + self.noise**2 - known, self.noise**2))

    def reach(self, features: Features) -> Reach:
        for reach, groups in zip(self.reaches, self._shared, strict=True):
            if not reach.same or key(features, reach.same) in groups:
                return reach
        raise ValueError("the last reach must share nothing")

    def _close(self, features: Features) -> Iterable[Anchor]:
        """Points that share as much as at least `NEIGHBOURS` of them do."""
        for reach, groups in zip(self.reaches, self._shared, strict=True):
            found = groups.get(key(features, reach.same), ())
            if len(found) >= NEIGHBOURS:
                return found
        return self.anchors

    def _spot(self, features: Features) -> Spot:
        """Each term's key, and its numbers in units of the term's lengths."""
        keys = tuple([get(features) for get in self._getters])
        places = [tuple([float(features[n]) / x for n, x in t.scales]) for t in self.terms]
        return keys, tuple(places)

    def _between(self, here: Spot, there: Spot) -> float:
        """The covariance of two settings."""
        total = 0.0
        keys, places = here
        others, far = there
        for n, square in enumerate(self._squares):
            if keys[n] == others[n]:
                total += square * _fading(places[n], far[n]) if places[n] else square
        return total


def _fading(here: Place, there: Place) -> float:
    return math.exp(-(math.dist(here, there) ** 2) / 2)


def _grouped(anchors: Sequence[Anchor], same: Sequence[str]) -> dict[str, list[Anchor]]:
    groups: dict[str, list[Anchor]] = {}
    for anchor in anchors:
        groups.setdefault(key(anchor.features, same), []).append(anchor)
    return groups


def _explained(rows: Sequence[list[float]], column: Sequence[float]) -> float:
    """column · matrix⁻¹ · column, by Cholesky's factor; `rows` is the lower half."""
    lower: list[list[float]] = []
    solved: list[float] = []
    for row, value in zip(rows, column, strict=True):
        here: list[float] = []
        for rest, other in zip(row, lower, strict=False):
            done = sum(map(operator.mul, here, other))
            here.append((rest - done) / other[-1])
        done = sum(map(operator.mul, here, solved))
        here.append(math.sqrt(row[-1] - sum(map(operator.mul, here, here))))
        lower.append(here)
        solved.append((value - done) / here[-1])
    return math.fsum(x * x for x in solved)


class Anchors:
    """The fields of a folder that `gpuplan accuracy --calibrate` wrote; a quantity that has no file
    there, or all without a folder, are the bundled ones."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._read: dict[str, Field] = {}

    def __call__(self, quantity: str) -> Field:
        """Raises `Rejected` where the file cannot be read."""
        if quantity not in self._read:
            self._read[quantity] = self._find(quantity)
        return self._read[quantity]

    def _find(self, quantity: str) -> Field:
        path = self._folder / f"{quantity}.json" if self._folder else None
        if path is None or not path.exists():
            return _bundled(quantity)
        try:
            return read(path.read_text("utf-8"))
        except (OSError, ValueError, KeyError, TypeError, IndexError) as problem:
            text = f"cannot read the anchors in {path}: {problem}"
            remedy = "write them again with 'gpuplan accuracy CSV --calibrate DIR'"
            raise Rejected([error("GP009", text, help=remedy)]) from None


@cache
def _bundled(quantity: str) -> Field:
    path = files("gpuplan.sizing") / "data" / "anchors" / f"{quantity}.json"
    return read(path.read_text("utf-8"))


def read(text: str) -> Field:
    """A field from the JSON that `gpuplan accuracy --calibrate` writes."""
    data: Any = json.loads(text)
    names, places, sources = data["texts"], data["numbers"], data["sources"]
    words = data["words"]
    anchors = []
    for identifier, group, texts, numbers, *values, source in data["points"]:
        weight, noise, measured, formula = values
        features: dict[str, str | float] = {n: words[w] for n, w in zip(names, texts, strict=True)}
        features |= zip(places, numbers, strict=True)
        anchors.append(
            Anchor(
                identifier=identifier,
                group=words[group],
                features=features,
                weight=weight,
                noise=noise,
                measured=measured,
                formula=formula,
                source=sources[source],
            )
        )
    terms = [
        Term(amplitude=a, same=tuple(s), scales=tuple((n, x) for n, x in scales))
        for a, s, scales in data["terms"]
    ]
    reaches = [
        Reach(same=tuple(s), low=low, high=high, known=known)
        for s, low, high, known in data["reaches"]
    ]
    return Field(terms, data["noise"], reaches, anchors, source=data["source"])
