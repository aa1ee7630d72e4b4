"""What the formulas say of a measured point, and which anchors correct it."""

from __future__ import annotations

import math
from collections.abc import Callable

from gpuplan.plan.model import Basis, Estimate, record
from gpuplan.sizing.calibration.anchors import Correction, Features, Field, Term
from gpuplan.sizing.evidence.formula import canonical

Ends = tuple[float, float]  # of a 90 % interval, in standard deviations


@record
class Reckoned:
    """`value` by the formulas, in the point's unit; `quantity` names the anchors that correct it,
    `features` where it stands among them. `best`: what physics allows at most (or at least, for a
    time), where it is known: no correction goes beyond it. `planned` is the prediction as a plan
    makes it with some anchors, where one does; `anchored` gives a value in the unit of those."""

    value: float
    quantity: str
    features: Features
    best: float | None = None
    sense: str = "time"  # or "rate": more is better, and `best` is a maximum
    planned: Callable[[Field], Estimate] | None = None
    anchored: Callable[[float], float] = float

    def error(self, measured: float) -> float:
        """ln(measured / formula), in the unit of the anchors."""
        return math.log(self.anchored(measured) / self.anchored(self.value))


def corrected(reckoned: Reckoned, field: Field) -> Estimate:
    """The prediction: as a plan makes it, else the formula's value times what the nearest points
    say of it."""
    if reckoned.planned is not None:
        return reckoned.planned(field)
    return applied(reckoned, field.correction(reckoned.features))


def applied(reckoned: Reckoned, correction: Correction) -> Estimate:
    value = bounded(reckoned, reckoned.value * correction.factor)
    basis: Basis = "calibrated" if correction.known else "extrapolated"
    low, high = (
        bounded(reckoned, value * correction.low),
        bounded(reckoned, value * correction.high),
    )
    return Estimate(value=canonical(value), low=canonical(low), high=canonical(high), basis=basis)


def bounded(reckoned: Reckoned, value: float) -> float:
    """`value`, not better than physics allows."""
    if reckoned.best is None:
        return value
    return max(value, reckoned.best) if reckoned.sense == "time" else min(value, reckoned.best)


@record
class Prior:
    """How the points of a quantity resemble each other: the kernel of `anchors.Field`, before any
    point. `reaches` are groups from the narrowest to the widest (the last is `()`), and whether a
    prediction counts as calibrated where a point of the group exists. The interval of a group is
    measured by leaving the next narrower one out; of the narrowest, the points' `split_group`; of
    those without the text `apart`, where there is one, by leaving every value of it out.
    `ends` are the quantiles of the errors that an interval spans, nine tenths of them, for each
    value of the text `by` its own; to either side it spans `least` standard deviations. Of some of
    those values the ends are known, `held`: with a point of one's own of the group, without, and
    where the group may have no point of the same GPU.
    Measured values above `most`, in the row's unit, are of something else and correct nothing.
    `unit` of the anchors, where it is not that of the rows."""

    quantity: str
    terms: tuple[Term, ...]
    noise: float
    reaches: tuple[tuple[tuple[str, ...], bool], ...]
    ends: tuple[float, float] = (0.04, 0.96)
    by: str = ""
    held: tuple[tuple[str, tuple[Ends, Ends, Ends]], ...] = ()
    apart: str = ""
    least: float = 1.2
    most: float = math.inf
    unit: str = ""
