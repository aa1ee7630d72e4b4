"""The second layer: measured points that correct what the formulas say near them.

Gaussian-process regression of ln(measured / formula) (Rasmussen and Williams 2006, ch. 2): a sum of
kernels "same engine", "same model", … that may fade with the distance in load and lengths. Far from
any point the correction is 1. The weights are solved when the points are stored (`gpuplan accuracy
--calibrate`), so that a correction is a sum over the points that share something with the setting.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from gpuplan.plan.records import record

Features = Mapping[str, str | float]  # texts: what must be the same; numbers: where, often log2
NEIGHBOURS = 12  # points that decide the width of an interval, and that `explain` may name


@record
class Term:
    """`amplitude`² where all texts of `same` are equal, fading with the distance in the numbers of
    `scales`, each in its own length."""

    amplitude: float
    same: tuple[str, ...]
    scales: tuple[tuple[str, float], ...] = ()

    def at(self, here: Features, there: Features) -> float:
        """The covariance of two settings that share the texts."""
        distance = 0.0
        for name, length in self.scales:
            distance += ((float(here[name]) - float(there[name])) / length) ** 2
        return self.amplitude**2 * math.exp(-distance / 2)


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
    `measured` and `formula` are in the field's unit."""

    identifier: str
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
    return "|".join(str(features[name]) for name in same)


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
        self._shared = [_grouped(self.anchors, r.same) for r in self.reaches]
        self._sums: list[dict[str, float]] = []
        self._fading: list[tuple[Term, dict[str, list[Anchor]]]] = []
        self._flat: list[tuple[Term, dict[str, float]]] = []
        for term in self.terms:
            groups = _grouped(self.anchors, term.same)
            if term.scales:
                self._fading.append((term, groups))
            else:
                sums = {k: math.fsum(a.weight for a in g) for k, g in groups.items()}
                self._flat.append((term, {k: term.amplitude**2 * v for k, v in sums.items()}))

    def mean(self, features: Features) -> float:
        """The logarithm of the factor."""
        total = 0.0
        for term, sums in self._flat:
            total += sums.get(key(features, term.same), 0.0)
        for term, groups in self._fading:
            found = groups.get(key(features, term.same), ())
            total += math.fsum(a.weight * term.at(features, a.features) for a in found)
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

    def covariance(self, here: Features, there: Features) -> float:
        return math.fsum(
            t.at(here, there) for t in self.terms if key(here, t.same) == key(there, t.same)
        )

    def nearest(self, features: Features) -> tuple[Anchor, ...]:
        """The points with the largest covariance."""
        ranked = [(self.covariance(features, a.features), a) for a in self._close(features)]
        ranked.sort(key=lambda pair: (-pair[0], pair[1].identifier))
        return tuple(a for value, a in ranked[:NEIGHBOURS] if value > 0)

    def sigma(self, features: Features, nearest: Sequence[Anchor]) -> float:
        """The standard deviation of the logarithm of a new measurement, given those points."""
        prior = math.fsum(t.amplitude**2 for t in self.terms) + self.noise**2
        column = [self.covariance(features, a.features) for a in nearest]
        rows = [
            [self.covariance(a.features, b.features) + (a.noise if a is b else 0) for b in nearest]
            for a in nearest
        ]
        return math.sqrt(max(prior - _explained(rows, column), self.noise**2))

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


def _grouped(anchors: Sequence[Anchor], same: Sequence[str]) -> dict[str, list[Anchor]]:
    groups: dict[str, list[Anchor]] = {}
    for anchor in anchors:
        groups.setdefault(key(anchor.features, same), []).append(anchor)
    return groups


def _explained(rows: list[list[float]], column: list[float]) -> float:
    """column · rows⁻¹ · column, by Cholesky's factor."""
    lower: list[list[float]] = []
    solved: list[float] = []
    for i, row in enumerate(rows):
        here: list[float] = []
        for j in range(i):
            done = math.fsum(here[k] * lower[j][k] for k in range(j))
            here.append((row[j] - done) / lower[j][j])
        here.append(math.sqrt(row[i] - math.fsum(x * x for x in here)))
        lower.append(here)
        done = math.fsum(here[k] * solved[k] for k in range(i))
        solved.append((column[i] - done) / here[i])
    return math.fsum(x * x for x in solved)


@cache
def field(quantity: str) -> Field:
    """The bundled anchors of a quantity, a file of `data/anchors`. Raises `FileNotFoundError`."""
    path = files("gpuplan.sizing") / "data" / "anchors" / f"{quantity}.json"
    return read(path.read_text("utf-8"))


def read(text: str) -> Field:
    """A field from the JSON that `gpuplan accuracy --calibrate` writes."""
    data: Any = json.loads(text)
    names, places, sources = data["texts"], data["numbers"], data["sources"]
    words = data["words"]
    anchors = []
    for identifier, texts, numbers, weight, noise, measured, formula, source in data["points"]:
        features: dict[str, str | float] = {n: words[w] for n, w in zip(names, texts, strict=True)}
        features |= zip(places, numbers, strict=True)
        anchors.append(
            Anchor(
                identifier=identifier,
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
