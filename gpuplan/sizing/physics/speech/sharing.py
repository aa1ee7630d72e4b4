"""Windows that share a GPU: how many there are, and how long a request takes.

A request brings all its windows together. With `m` requests at once each takes `latency(m)`; a
queue whose places share a server evenly has so many requests with the probability that this text
computes, whatever their sizes (Kelly, "Reversibility and Stochastic Networks", 1979, 3.3).
"""

from __future__ import annotations

import math
from collections.abc import Callable

MOST_LOAD = 0.95  # of what a replica can do with every place taken


def between(points: dict[float, float]) -> Callable[[float], float]:
    """Straight lines between points, and on beyond the last."""
    places = sorted(points)

    def value(place: float) -> float:
        if len(places) == 1:
            return points[places[0]]
        after = next((n for n, p in enumerate(places) if n and p >= place), len(places) - 1)
        low, high = places[after - 1], places[after]
        return points[low] + (points[high] - points[low]) * (place - low) / (high - low)

    return value


def mean_latency(rate: float, latency: Callable[[float], float], places: int) -> float:
    """Seconds of a request, of which so many arrive a second and at most `places` run at once; the
    others wait. Infinite where they are more than a full replica answers."""
    full = places / latency(places)
    if rate >= full:
        return math.inf
    weight, total, requests = 1.0, 1.0, 0.0
    for count in range(1, places + 1):
        weight *= rate * latency(count) / count
        total += weight
        requests += count * weight
    beyond = rate / full
    # Those that wait: a geometric tail of states in which every place is taken.
    total += weight * beyond / (1 - beyond)
    requests += weight * beyond * (places / (1 - beyond) + 1 / (1 - beyond) ** 2)
    return requests / total / rate
