"""The second layer: measured points that correct what the formulas say near them.

The regression of `gaussian.py` on ln(measured / formula). Far from any point the correction is 1.
The weights are solved when the points are stored: `gpuplan accuracy --calibrate`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from gpuplan.frozen import record
from gpuplan.sizing.calibration.gaussian import (
    NEIGHBOURS,
    Features,
    Process,
    Term,
)
from gpuplan.sizing.calibration.points import Points, taker

__all__ = ["Anchor", "Anchors", "Correction", "Effect", "Features", "Field", "Reach", "Term"]

BUNDLED = Path(__file__).parents[1] / "data" / "anchors"


@record
class Reach:
    """The ends of 90 % intervals, in standard deviations, where some point shares the texts of
    `same`; `known`: there, predictions count as calibrated. `kinds`: other ends, for values of the
    text `by`."""

    same: tuple[str, ...]
    low: float
    high: float
    known: bool
    by: str = ""
    kinds: tuple[tuple[str, float, float], ...] = ()

    def ends(self, features: Features) -> tuple[float, float]:
        for value, low, high in self.kinds:
            if features[self.by] == value:
                return low, high
        return self.low, self.high


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

    def described(self, unit: str) -> str:
        """The setting, both values and where it was published."""
        numbers = [f"{n} {2.0**v:.4g}" for n, v in self.features.items() if isinstance(v, float)]
        values = f"measured {self.measured:.4g} {unit}, formulas {self.formula:.4g} {unit}"
        return f"{', '.join([self.group, *numbers])}: {values}; {self.source}"


@record
class Effect:
    """A part of a correction's logarithm, and which points it comes from."""

    name: str
    value: float
    source: str


@record
class Correction:
    """`factor` on the formula's value; `low` and `high` as multiples of the corrected value."""

    factor: float
    low: float
    high: float
    known: bool


class Field:
    """The anchors of one quantity. `reaches` go from the nearest to the farthest; the last shares
    nothing. `make` gives a stored point by its number."""

    def __init__(
        self,
        terms: Sequence[Term],
        noise: float,
        reaches: Sequence[Reach],
        points: Points,
        make: Callable[[int], Anchor],
        *,
        source: str = "",
        unit: str = "",
    ) -> None:
        self.terms, self.noise, self.reaches = tuple(terms), noise, tuple(reaches)
        self.points, self._make, self.source, self.unit = points, make, source, unit
        self._process = Process(terms, noise, points)
        self._sharing = [
            (reach, taker(reach.same), self._process.sharing(reach.same)) for reach in self.reaches
        ]

    @cached_property
    def anchors(self) -> tuple[Anchor, ...]:
        return tuple(self._make(number) for number in range(len(self.points.weights)))

    def mean(self, features: Features) -> float:
        """The logarithm of the factor."""
        return self._process.mean(features)

    def factor(self, features: Features) -> float:
        """On the formula's value, from the effects as they are recorded."""
        return math.exp(math.fsum(effect.value for effect in self.effects(features)))

    def along(self, features: Features, name: str) -> Callable[[float], float]:
        """`mean` by the value of the number `name`."""
        return self._process.along(features, name)

    def effects(self, features: Features) -> list[Effect]:
        """The parts of `mean`, of the terms that some point shares."""
        effects = []
        for part in self._process.parts(features):
            label = "_".join(part.term.same) or "all"
            effects.append(
                Effect(
                    name=f"near_{label}" if part.term.scales else label,
                    value=float(f"{part.value:.6g}"),
                    source=f"{part.points} measured points of {_shared(features, part.term.same)}",
                )
            )
        return effects

    def correction(self, features: Features) -> Correction:
        reach, sigma = self.reach(features), self.sigma(features)
        low, high = reach.ends(features)
        return Correction(
            factor=math.exp(self.mean(features)),
            low=math.exp(low * sigma),
            high=math.exp(high * sigma),
            known=reach.known,
        )

    def beside(self, features: Features, measured: Features) -> tuple[float, float]:
        """The ends of an interval, as factors, if the same setting had been `measured` at another
        load: the noise of that measurement and of the next one, what of the known spread is left,
        and what a load tells not of another."""
        noise = self.noise**2
        spread = max(self.sigma(features) ** 2 - noise, 0.0)
        left = spread * noise / (spread + noise) + self._process.apart(features, measured)
        sigma = math.sqrt(min(left, spread) + noise)
        low, high = self.reaches[0].ends(features)
        return math.exp(low * sigma), math.exp(high * sigma)

    def nearest(self, features: Features) -> tuple[Anchor, ...]:
        """The points with the largest covariance, of those that share the most texts."""
        return tuple(self._make(number) for _, number in self._nearest(features))

    def sigma(self, features: Features) -> float:
        """The standard deviation of the logarithm of a new measurement."""
        return self._process.sigma(features, self._nearest(features))

    def reach(self, features: Features) -> Reach:
        for reach, take, groups in self._sharing:
            if not reach.same or groups[take(features)]:
                return reach
        raise ValueError("the last reach must share nothing")

    def _nearest(self, features: Features) -> list[tuple[float, int]]:
        """Of the points that share as much as at least `NEIGHBOURS` of them do."""
        for _, take, groups in self._sharing:
            key = take(features)
            if len(groups[key]) >= NEIGHBOURS:
                return self._process.nearest(features, groups.kinds(key))
        return self._process.nearest(features)


def _shared(features: Features, same: Sequence[str]) -> str:
    """In words. A model is known by its dimensions, which nobody wants to read."""
    words = [str(features[name]) for name in same]
    model = str(features.get("model", ""))
    if model:
        words = [word.replace(model, "this model") for word in words]
    return ", ".join(words).replace("|", ", ") or "any kind"


class Anchors:
    """Fields by quantity: `own` ones, and for the others those that come with gpuplan."""

    def __init__(self, own: Mapping[str, Field] | None = None) -> None:
        self._own = dict(own or {})

    def __call__(self, quantity: str) -> Field:
        return self._own.get(quantity) or _bundled(quantity)


@cache
def _bundled(quantity: str) -> Field:
    return read((BUNDLED / f"{quantity}.json").read_text("utf-8"))


def read(text: str) -> Field:
    """A field from the JSON that `gpuplan accuracy --calibrate` writes. Raises `ValueError`,
    `KeyError`, `TypeError`, `IndexError` for other texts."""
    data: Any = json.loads(text)
    words, rows = data["words"], data["points"]
    names, places = data["texts"], data["numbers"]
    codes = [tuple(row[2]) for row in rows]
    texts = {code: tuple([words[w] for w in code]) for code in set(codes)}
    points = Points(
        names=names,
        places=places,
        texts=[texts[code] for code in codes],
        numbers=[row[3] for row in rows],
        weights=[row[4] for row in rows],
        noises=[row[5] for row in rows],
    )

    def make(number: int) -> Anchor:
        identifier, group, _, _, weight, noise, measured, formula, source = rows[number]
        features = dict(zip(names, points.texts[number], strict=True))
        return Anchor(
            identifier=identifier,
            group=words[group],
            features=features | dict(zip(places, map(float, points.numbers[number]), strict=True)),
            weight=weight,
            noise=noise,
            measured=measured,
            formula=formula,
            source=data["sources"][source],
        )

    terms = [
        Term(amplitude=a, same=tuple(s), scales=tuple((n, x) for n, x in scales))
        for a, s, scales in data["terms"]
    ]
    reaches = [
        Reach(
            same=tuple(same),
            low=low,
            high=high,
            known=known,
            by=by,
            kinds=tuple((value, least, most) for value, least, most in kinds),
        )
        for same, low, high, known, by, kinds in data["reaches"]
    ]
    return Field(
        terms, data["noise"], reaches, points, make, source=data["source"], unit=data["unit"]
    )
