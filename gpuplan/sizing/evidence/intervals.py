"""Estimates with their 90 % interval, and the probability of meeting an objective.

Errors are taken as log-normal on either side of the prediction, with the interval's two widths.
"""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist
from typing import Literal

from gpuplan.plan.model import Basis, Estimate, Metric
from gpuplan.plan.times import TIMES
from gpuplan.sizing.evidence.formula import Formula, Ledger, Quantity, canonical, constant

_NORMAL = NormalDist()
Z90 = 1.645  # half of a 90 % interval, in standard deviations
Factors = tuple[float, float]
Sense = Literal["at_most", "at_least"]
SLOWNESS = Formula(
    "interval_high ** (confidence_z / 1.645)",
    "1",
    "factor on the predicted time that is not exceeded with the wanted confidence",
)


def estimate(value: float, factors: Factors, basis: Basis) -> Estimate:
    """`factors` are the interval's ends as multiples of the value."""
    low, high = factors
    return Estimate(
        value=canonical(value),
        low=canonical(value * low),
        high=canonical(value * high),
        basis=basis,
    )


def inverse(factors: Factors) -> Factors:
    """The interval of a rate from that of its time."""
    low, high = factors
    return 1 / high, 1 / low


def doubted(factors: Factors, doubt: Factors) -> Factors:
    """An interval with a further, independent doubt: deviations of the logarithm add in squares."""
    low, high = (math.hypot(*map(math.log, pair)) for pair in zip(factors, doubt, strict=True))
    return math.exp(-low), math.exp(high)


def normal(z: float) -> float:
    """P(Z ≤ z) of a standard normal."""
    return _NORMAL.cdf(z)


@cache
def quantile(probability: float) -> float:
    """The z with `normal(z) == probability`, to nine digits."""
    return canonical(_NORMAL.inv_cdf(probability))


def at_confidence(factors: Factors, confidence: float) -> float:
    """The factor on a prediction that is not exceeded with probability `confidence`."""
    return SLOWNESS(interval_high=factors[1], confidence_z=quantile(confidence))


def record_slowness(ledger: Ledger, factors: Factors, confidence: float, cited: str) -> Quantity:
    """The same as evidence; `cited` says whose interval it is."""
    return ledger.derive(
        "slowness",
        SLOWNESS,
        interval_high=constant(canonical(factors[1]), "1", cited),
        confidence_z=constant(quantile(confidence), "1", f"normal quantile of {confidence:g}"),
    )


def probability(value: float, limit: float, factors: Factors, sense: Sense) -> float:
    """P(true ≤ limit), or P(true ≥ limit) for `at_least`."""
    distance = math.log(limit / value)
    width = math.log(factors[1] if distance > 0 else 1 / factors[0]) / Z90
    met = normal(distance / width)
    return canonical(round(met if sense == "at_most" else 1 - met, 6))


def metric(
    name: str,
    unit: str,
    value: float,
    *,
    factors: Factors,
    basis: Basis,
    limit: float | None = None,
    sense: Sense = "at_most",
) -> Metric:
    chance = None if limit is None else probability(value, limit, factors, sense)
    return Metric(
        name=name,
        unit=unit,
        estimate=estimate(value, factors, basis),
        limit=limit,
        sense=sense,
        probability=chance,
        statistic=TIMES[name][1] if name in TIMES else None,
    )
