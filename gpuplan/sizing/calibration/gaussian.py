"""Gaussian-process regression over settings that share texts and lie near each other in numbers.

Rasmussen and Williams (2006), ch. 2. The kernel is a sum of terms: `amplitude`² where some texts
are equal, fading with the distance in some numbers. What has nothing of a kind has the text
`NOBODYS`, which is shared with nobody. A term that does not fade is one sum a text, so that a
prediction costs an exponential only for the points of the narrow groups.
"""

from __future__ import annotations

import math
import operator
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpuplan.frozen import record
from gpuplan.sizing.calibration.points import (
    Groups,
    Members,
    Place,
    Places,
    Points,
    indexed,
    other_axes,
    taker,
)

Features = Mapping[str, str | float]  # texts: what must be the same; numbers: where, often log2
Keys = tuple[object, ...]  # the texts of each term
Weights = dict[float, float]  # by the place on an axis
NOBODYS = "nobody's"  # a text
ROUNDED = 1 + 1e-9  # what sums of other orders may differ by
NEIGHBOURS = 10  # points that decide the width of an interval, and that `explain` may name


@record
class Term:
    """`amplitude`² where all texts of `same` are equal, fading with the distance in the numbers of
    `scales`, each in its own length."""

    amplitude: float
    same: tuple[str, ...]
    scales: tuple[tuple[str, float], ...] = ()


@record
class Part:
    """What a term adds to the mean, and how many points it comes from."""

    term: Term
    value: float
    points: int


class Process:
    """The mean and the spread of a new setting, given the stored ones."""

    def __init__(self, terms: Sequence[Term], noise: float, points: Points) -> None:
        self.terms, self.noise = tuple(terms), noise
        self._squares = [t.amplitude**2 for t in self.terms]
        self._fading = [n for n, t in enumerate(self.terms) if t.scales]
        self._take = [taker(t.same) for t in self.terms]
        self._names, kinds = points.names, indexed(map(tuple, points.texts))
        self._kinds, self._of_kind = list(kinds), list(kinds.values())
        self._kind = {i: kind for kind, numbers in enumerate(self._of_kind) for i in numbers}
        self._groups: dict[tuple[str, ...], Groups] = {}
        self._alike = [self._group(t.same) for t in self.terms]
        self._members = [Members(groups, self._of_kind, _told) for groups in self._alike]
        self._taking = [self._texts(t.same) for t in self.terms]
        self._known: dict[int, Keys] = {}
        scales = {t.scales: Places(points, t.scales) for t in self.terms if t.scales}
        self._where = {n: scales[self.terms[n].scales] for n in self._fading}
        self._noises, self._weights = points.noises, points.weights
        self._sums: dict[tuple[int, object], float] = {}
        self._shared: dict[tuple[int, int], float] = {}
        self._factors: dict[tuple[int, ...], Sequence[Sequence[float]]] = {}
        self._split: dict[tuple[int, object, int], dict[Place, Weights]] = {}

    def _texts(self, same: Sequence[str]) -> Callable[[Any], object]:
        """What takes these texts from a point's."""
        return taker([self._names.index(name) for name in same])

    def sharing(self, same: Sequence[str]) -> Members:
        """The points by what they have of the texts `same`."""
        return Members(self._group(same), self._of_kind)

    def _group(self, same: Sequence[str]) -> Groups:
        """The kinds by what they have of the texts `same`, which several terms may name."""
        if (named := tuple(same)) not in self._groups:
            self._groups[named] = Groups(list(map(self._texts(named), self._kinds)))
        return self._groups[named]

    def _keys(self, kind: int) -> Keys:
        """What a kind shares with others, by term."""
        if kind not in self._known:
            texts = self._kinds[kind]
            self._known[kind] = tuple([_told(take(texts)) for take in self._taking])
        return self._known[kind]

    def mean(self, features: Features) -> float:
        return math.fsum(part.value for part in self.parts(features))

    def along(self, features: Features, name: str) -> Callable[[float], float]:
        """The mean by the value of the number `name`; points of one value are added up."""
        total, shares = 0.0, defaultdict[float, Weights](dict)
        for n, term in enumerate(self.terms):
            key = self._take[n](features)
            if not self._members[n][key]:
                continue
            names = [scale[0] for scale in term.scales]
            if name in names:
                axis = names.index(name)
                rest = other_axes(self._here(n, features), axis)
                self._share(n, rest, self._beside(n, key, axis), shares[term.scales[axis][1]])
            else:
                total += self._part(n, key, features)
        return lambda value: total + _faded(value, shares)

    def _share(self, n: int, rest: Place, beside: Mapping[Place, Weights], shares: Weights) -> None:
        """Adds the points' shares in the mean to `shares`, by their place on an axis."""
        for others, weights in beside.items():
            left = self._squares[n] * fading(rest, others)
            for place, weight in weights.items():
                shares[place] = shares.get(place, 0.0) + left * weight

    def _beside(self, n: int, key: object, axis: int) -> dict[Place, Weights]:
        """The weights of a key's points by their other places, and by that on the axis."""
        if (n, key, axis) not in self._split:
            groups = self._split[n, key, axis] = defaultdict[Place, Weights](dict)
            for i in self._members[n][key]:
                place = self._where[n][i]
                weights = groups[other_axes(place, axis)]
                weights[place[axis]] = weights.get(place[axis], 0.0) + self._weights[i]
        return self._split[n, key, axis]

    def _part(self, n: int, key: object, features: Features) -> float:
        members = self._members[n][key]
        if not self.terms[n].scales:
            if (n, key) not in self._sums:
                self._sums[n, key] = math.fsum([self._weights[i] for i in members])
            return self._squares[n] * self._sums[n, key]
        here, where = self._here(n, features), self._where[n]
        return self._squares[n] * sum([self._weights[i] * fading(here, where[i]) for i in members])

    def parts(self, features: Features) -> list[Part]:
        """What each term that some point shares adds to the mean."""
        parts = []
        for n, term in enumerate(self.terms):
            key = self._take[n](features)
            members = self._members[n][key]
            if not members:
                continue
            value = self._part(n, key, features)
            parts.append(Part(term=term, value=value, points=len(members)))
        return parts

    def nearest(
        self, features: Features, among: Sequence[int] | None = None
    ) -> list[tuple[float, int]]:
        """Of the points of the kinds `among`, or of all, those with the largest covariance, and
        that. A kind whose points could have too little even here is not looked at."""
        keys = [_told(take(features)) for take in self._take]
        places = {n: self._here(n, features) for n in self._fading}
        most = self._most(keys)
        kinds: Sequence[int] = range(len(most)) if among is None else among
        ranked: list[tuple[float, int]] = []
        for kind in sorted(kinds, key=most.__getitem__, reverse=True):
            if len(ranked) == NEIGHBOURS and most[kind] * ROUNDED < -ranked[-1][0]:
                break
            known = self._keys(kind)
            common = self._common(keys, known)
            near = [n for n in self._fading if keys[n] == known[n] is not None]
            for i in self._of_kind[kind]:
                total = common
                for n in near:
                    total += self._squares[n] * fading(places[n], self._where[n][i])
                if total > 0:
                    ranked.append((-total, i))
            ranked = sorted(ranked)[:NEIGHBOURS]
        return [(-value, i) for value, i in ranked]

    def _most(self, keys: Sequence[object]) -> list[float]:
        """The most that a point of each kind can share with what has these keys, but for the last
        digits."""
        everybodys = sum(s for s, t in zip(self._squares, self.terms, strict=True) if not t.same)
        most = [everybodys] * len(self._kinds)
        for n, term in enumerate(self.terms):
            if term.same:
                square = self._squares[n]
                for kind in self._alike[n][keys[n]]:
                    most[kind] += square
        return most

    def sigma(self, features: Features, nearest: Sequence[tuple[float, int]]) -> float:
        """The standard deviation of a new measurement, given the points that `nearest` found."""
        lower = self._factor(tuple([i for _, i in nearest]))
        known = _explained(lower, [value for value, _ in nearest])
        keys = [_told(take(features)) for take in self._take]
        squares = zip(self._squares, keys, strict=True)
        prior = math.fsum(s for s, key in squares if key is not None) + self.noise**2
        return math.sqrt(max(prior - known, self.noise**2))

    def _factor(self, numbers: tuple[int, ...]) -> Sequence[Sequence[float]]:
        """Cholesky's factor of the points' covariance; many settings are near the same ones."""
        if numbers not in self._factors:
            rows = [[self._between(i, j) for j in numbers[: n + 1]] for n, i in enumerate(numbers)]
            for row, i in zip(rows, numbers, strict=True):
                row[-1] += self._noises[i]
            self._factors[numbers] = _lower(rows)
        return self._factors[numbers]

    def apart(self, one: Features, other: Features) -> float:
        """The variance of the difference of two settings that differ in numbers alone."""
        return math.fsum(
            2 * self._squares[n] * (1 - fading(self._here(n, one), self._here(n, other)))
            for n in self._fading
        )

    def _here(self, n: int, features: Features) -> Place:
        return tuple([float(features[name]) / length for name, length in self.terms[n].scales])

    def _between(self, i: int, j: int) -> float:
        """The covariance of two points."""
        kinds = self._kind[i], self._kind[j]
        one, other = self._keys(kinds[0]), self._keys(kinds[1])
        if kinds not in self._shared:
            self._shared[kinds] = self._common(one, other)
        total = self._shared[kinds]
        for n in self._fading:
            if one[n] == other[n] is not None:
                total += self._squares[n] * fading(self._where[n][i], self._where[n][j])
        return total

    def _common(self, one: Sequence[object], other: Sequence[object]) -> float:
        """Of the terms that do not fade."""
        return math.fsum(
            square
            for square, term, a, b in zip(self._squares, self.terms, one, other, strict=True)
            if a == b is not None and not term.scales
        )


def _told(key: object) -> object:
    """A key as it is shared, or None."""
    return None if key == NOBODYS or (isinstance(key, tuple) and NOBODYS in key) else key


def log2(value: float) -> float:
    """A load or a length as a coordinate; below 1/16 nothing is told apart."""
    return round(math.log2(max(value, 1 / 16)), 4)


def fading(here: Place, there: Place) -> float:
    return math.exp(-(math.dist(here, there) ** 2) / 2)


def _faded(value: float, shares: Mapping[float, Weights]) -> float:
    """What is left at `value` of shares that lie on an axis, by its length."""
    total, exp = 0.0, math.exp
    for length, by_place in shares.items():
        here = value / length
        for place, share in by_place.items():
            distance = here - place
            total += share * exp(-distance * distance / 2)
    return total


def _lower(rows: Sequence[Sequence[float]]) -> list[list[float]]:
    """Cholesky's factor of a matrix whose lower half is `rows`."""
    lower: list[list[float]] = []
    for row in rows:
        here: list[float] = []
        for rest, other in zip(row, lower, strict=False):
            here.append((rest - sum(map(operator.mul, here, other))) / other[-1])
        here.append(math.sqrt(row[-1] - sum(map(operator.mul, here, here))))
        lower.append(here)
    return lower


def _explained(lower: Sequence[Sequence[float]], column: Sequence[float]) -> float:
    """column · matrix⁻¹ · column, by Cholesky's factor."""
    solved: list[float] = []
    for row, value in zip(lower, column, strict=True):
        solved.append((value - sum(map(operator.mul, row, solved))) / row[-1])
    return math.fsum(x * x for x in solved)
