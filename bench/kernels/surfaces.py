"""Surfaces: the seconds of one launch of a kernel as a function of its bytes and operations.

A kernel takes `launch + (reading ** norm + computing ** norm) ** (1 / norm)` seconds with
`reading = bytes / (bandwidth * read) * (1 + sqrt(small / bytes))` and
`computing = flop / (peak * compute)`; the same texts as in the sizing's `kernels.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import least_squares

Row = tuple[float, ...]
Time = Callable[[np.ndarray, np.ndarray], np.ndarray]
ROWS = 3000
# launch, read, small (bytes), compute, norm
LOW = (5e-7, 0.05, 1e2, 0.01, 0.7)
HIGH = (1.2e-4, 1.0, 3e7, 1.0, 6.0)
START = (6e-6, 0.8, 1e6, 0.5, 2.0)
# Beside these: how evenly tokens spread, least tokens of a tile. The norm is soft, so that reading
# and computing alone may be faster than they can be together.
EXPERTS = (
    (1e-6, 0.1, 1e2, 0.02, 0.5, 0.3, 1.0),
    (1.2e-4, 3.0, 5e9, 4.0, 6.0, 2.0, 128.0),
    (6e-6, 0.8, 1e6, 0.3, 1.5, 0.8, 8.0),
)


def seconds(
    c: np.ndarray, bytes_: np.ndarray, flop: np.ndarray, bandwidth: float, peak: float
) -> np.ndarray:
    read = bytes_ / (bandwidth * c[1]) * (1 + np.sqrt(c[2] / np.maximum(bytes_, 1)))
    compute = flop / (peak * c[3])
    return c[0] + np.power(read ** c[4] + compute ** c[4], 1 / c[4])


def fit(
    predict: Callable[[np.ndarray, np.ndarray], np.ndarray],
    measured: np.ndarray,
    low: Row = LOW,
    high: Row = HIGH,
    start: Row = START,
) -> Row:
    """The numbers for which `predict(numbers, rows)` is nearest to `measured` seconds, in the
    logarithm, and the median residual."""
    at = np.linspace(0, len(measured) - 1, min(len(measured), ROWS)).astype(int)

    def residual(log: np.ndarray, rows: np.ndarray = at) -> np.ndarray:
        return np.log(predict(np.exp(log), rows)) - np.log(measured[rows])

    bounds = (np.log(low), np.log(high))
    best = least_squares(residual, np.log(start), bounds=bounds, loss="soft_l1", f_scale=0.1)
    error = float(np.median(np.abs(np.expm1(residual(best.x, np.arange(len(measured)))))))
    return (*(float(f"{v:.4g}") for v in np.exp(best.x)), round(error, 3))


def plain(
    bytes_: np.ndarray, flop: np.ndarray, latency: np.ndarray, bandwidth: float, peak: float
) -> Row:
    """Five numbers for a kernel whose bytes and operations are known. `latency` in ms."""
    order = np.lexsort((flop, bytes_))
    order = order[latency[order] > 0]
    b, f, measured = bytes_[order], flop[order], latency[order] * 1e-3
    return fit(lambda c, rows: seconds(c, b[rows], f[rows], bandwidth, peak), measured)
