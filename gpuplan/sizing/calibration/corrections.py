"""What measured points say of a replica's times: factors on the formulas, by load.

The load is taken in steps of two, and a time never falls where the load grows: the search for the
most sequences halves intervals, and more work must never seem to need fewer GPUs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from gpuplan.frozen import frozen
from gpuplan.plan.model import Basis
from gpuplan.sizing.calibration.anchors import Features, Field
from gpuplan.sizing.evidence.formula import Formula, Ledger, Quantity, canonical, constant
from gpuplan.sizing.evidence.intervals import Factors, inverse

REFERENCE = 32.0  # sequences at which the width of an interval is taken
LAST = 10  # the base-2 logarithm of the most sequences
SHOWN = 5  # nearest points in the evidence


@dataclass
class Corrected:
    """The time `name` of a replica. `at(sequences)` are the features of a load, `modelled` the time
    by the formulas alone; `confirmed` takes it as measured already, at so many sequences."""

    name: str
    anchors: Field
    at: Callable[[float], Features]
    modelled: Callable[[float], float]
    confirmed: float | None = None
    _factors: dict[int, float] = field(default_factory=dict)
    _ends: dict[int, float] = field(default_factory=dict)
    _floors: dict[int, float] = field(default_factory=dict)

    def factor(self, sequences: float) -> float:
        return self._factor(step(sequences))

    def floor(self, sequences: float) -> float:
        """The most that the time is at less load, seconds, where more is corrected downwards."""
        here = step(sequences)
        if here not in self._floors:
            self._floors[here] = self._floor(here)
        return self._floors[here]

    def _floor(self, here: int) -> float:
        """By the formulas alone a time never falls where the load grows, so that what it is at more
        load bounds what it is at less: most steps need not be reckoned."""
        most, bound = 0.0, math.inf
        for place in reversed(range(here)):
            factor = self._factor(place)
            if factor > self._factor(here) and bound * factor > most:
                bound = self._end(place)
                most = max(most, bound * factor)
        return most

    @cached_property
    def interval(self) -> tuple[Factors, Basis]:
        """Its ends as factors on the corrected time."""
        if self.confirmed is not None:
            ends = self.anchors.beside(self.at(REFERENCE), self.at(self.confirmed))
            return ends, "calibrated"
        correction = self.anchors.correction(self.at(REFERENCE))
        basis: Basis = "calibrated" if correction.known else "extrapolated"
        return (correction.low, correction.high), basis

    def _factor(self, place: int) -> float:
        if place not in self._factors:
            one, mean = self._along
            self._factors[place] = math.exp(mean(one + place))
        return self._factors[place]

    @cached_property
    def _along(self) -> tuple[float, Callable[[float], float]]:
        """The load of one sequence, and the logarithm of the factor by the load."""
        one = self.at(1)
        return float(one["batch"]), self.anchors.along(one, "batch")

    def _end(self, place: int) -> float:
        """The time by the formulas alone at the end of a step."""
        if place not in self._ends:
            self._ends[place] = self.modelled(2.0 ** (place + 0.5))
        return self._ends[place]

    def inputs(self, sequences: float) -> dict[str, float]:
        return {
            f"{self.name}_correction": self.factor(sequences),
            f"{self.name}_floor": self.floor(sequences),
        }

    def record(self, ledger: Ledger, sequences: float, prefix: str) -> dict[str, Quantity]:
        """The same as evidence."""
        features = self.at(2.0 ** step(sequences))
        factor = record_correction(ledger, f"{prefix}{self.name}", self.anchors, features)
        cited = "the most at less load: a time never falls where the load grows"
        floor = constant(canonical(self.floor(sequences)), "s", cited)
        return {f"{self.name}_correction": factor, f"{self.name}_floor": floor}


@frozen
class SteadyCorrection:
    """What the points of `anchors` say of the "time", or of a rate by its `name`, at `features`,
    whatever the load; nothing, and the interval is `unmeasured`, where none was measured. A
    `partition` was measured nowhere: it is as fast as its part of the GPU, less surely."""

    name: str
    features: Features
    anchors: Field | None
    unmeasured: Factors
    partition: bool = False

    @cached_property
    def factor(self) -> float:
        return self.anchors.factor(self.features) if self.anchors else 1.0

    @cached_property
    def interval(self) -> tuple[Factors, Basis]:
        """Of the corrected time: its ends as factors."""
        if self.anchors is None or self.partition:
            return self.unmeasured, "extrapolated"
        near = self.anchors.correction(self.features)
        factors = (near.low, near.high)
        basis: Basis = "calibrated" if near.known else "extrapolated"
        return factors if self.name == "time" else inverse(factors), basis

    @property
    def input(self) -> dict[str, float]:
        return {f"{self.name}_correction": self.factor}

    def record(self, ledger: Ledger) -> dict[str, Quantity]:
        """The same as evidence."""
        factor = constant(1.0, "1", "assumption: none of its kind and precision was measured")
        if self.anchors is not None:
            factor = record_correction(ledger, self.name, self.anchors, self.features)
        return {f"{self.name}_correction": factor}


def record_correction(ledger: Ledger, name: str, anchors: Field, features: Features) -> Quantity:
    """The factor on what formulas say as evidence: the effects that make it, the nearest points."""
    effects = anchors.effects(features)
    said = f"what {anchors.source} say of the formulas"
    if effects:
        inputs = {e.name: constant(e.value, "1", e.source) for e in effects}
        formula = Formula(f"exp({' + '.join(inputs)})", "1", said)
        factor = ledger.derive(f"{name}_correction", formula, **inputs)
    else:
        factor = ledger.given(f"{name}_correction", constant(1, "1", f"{said}: none is near"))
    for number, anchor in enumerate(anchors.nearest(features)[:SHOWN], 1):
        ratio = constant(anchor.measured / anchor.formula, "1", anchor.described(anchors.unit))
        ledger.given(f"{name}_nearest.{number}", ratio)
    return factor


def step(sequences: float) -> int:
    """The power of two that stands for a load."""
    return min(max(round(math.log2(max(sequences, 1))), 0), LAST)


def widened(factors: Factors, by: float) -> Factors:
    """An interval whose ends are `by` times as far, in the logarithm."""
    return factors[0] ** by, factors[1] ** by
