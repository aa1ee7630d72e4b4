"""Images of several sizes in one queue: the mean and the percentiles of their time.

Sizes are taken as ten, each of a tenth of the images: log-normal, with the mean that is stated, and
the largest as large as the stated 95th percentile. A time grows with the pixels by the power that
lies between the mean and the largest image. Waits have an exponential tail. Nothing is fitted:
beside simulated queues percentiles are within 20 % (tests/sizing/test_percentiles.py).
"""

from __future__ import annotations

import math
from functools import cache

from gpuplan.sizing.evidence.halving import halved
from gpuplan.sizing.evidence.sheet import sheet

# Standard normal quantiles of the middles of ten equal parts, those above the median.
QUANTILES = (0.125661, 0.385320, 0.674490, 1.036433, 1.644854)
MOST_SPREAD = 9.0  # pixels of the largest over the mean: beyond, a tenth of the images is all


def _mean_of_ten(exponent: str) -> str:
    """Mean of exp(`exponent` * quantile) over the ten sizes, as text."""
    powers = (f"exp({q} * {exponent}) + exp(-{q} * {exponent})" for q in QUANTILES)
    return f"({' + '.join(powers)}) / 10"


# Needs `size_sigma`, and the times of a mean image and of a large one.
SIZES = sheet(f"""
    size_power: 1 = log2(large_seconds / batch_seconds) / log2(largest_pixels / pixels)
        # a time grows with the pixels to this power
    size_mean: 1 = {_mean_of_ten("size_sigma")}
        # mean of ten sizes, each of a tenth of the images, over their median
    time_mean: 1 = {_mean_of_ten("(size_power * size_sigma)")} / size_mean ** size_power
        # mean of their times over that of the mean image
    time_square: 1 = {_mean_of_ten("(2 * size_power * size_sigma)")}
        / size_mean ** (2 * size_power)  # mean of the squares
    service_seconds: s = batch_seconds * time_mean  # a batch, mean over the sizes
    service_variation: 1 = time_square / time_mean ** 2  # mean square over the square of the mean
""")


@cache
def size_sigma(ratio: float) -> float:
    """The spread of ten log-normal sizes whose largest has `ratio` times the pixels of the mean;
    `ratio` is from 1 to `MOST_SPREAD`."""

    def narrower(sigma: float) -> bool:
        mean = sum(2 * math.cosh(q * sigma) for q in QUANTILES) / 10
        return math.exp(QUANTILES[-1] * sigma) / mean < ratio

    sigma, _ = halved(0.0, 8.0, narrower, 1e-7)
    return float(f"{sigma:.6g}")


def percentile(values: dict[str, float], beyond: float) -> float:
    """The time that the part `beyond` of all images exceeds, at the values of `SIZES`, a
    `replica_load` and the mean `request_latency`."""
    load, wait = values["replica_load"], values["request_latency"] - values["service_seconds"]
    scale, power = values["batch_seconds"], values["size_power"]
    spread = values["size_sigma"]
    times = [
        scale * (math.exp(sign * q * spread) / values["size_mean"]) ** power
        for q in QUANTILES
        for sign in (-1, 1)
    ]

    def exceeding(seconds: float) -> float:
        left = (seconds - time for time in times)
        waits = (1.0 if x < 0 else load * math.exp(-load * x / wait) for x in left)
        return sum(waits) / len(times)

    low, high = 0.0, max(times) + wait / load * math.log(max(load / beyond, 1.0)) + 1e-9
    while high - low > 1e-7 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if exceeding(middle) > beyond else (low, middle)
    return float(f"{high:.6g}")
