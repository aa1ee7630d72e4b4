"""The latency of steps that take all requests that wait, worked out a second time by hand."""

from __future__ import annotations

import math
from itertools import product

import pytest

from gpuplan.sizing.physics.batching import latency

NAMES = tuple(f"request_latency_{s}" for s in ("p50", "p95", "p99"))
# Steps until an answer, the part of the requests beyond it, deviations of a request's own size.
TAILS = {"p50": (1.5, 0.5, 0.0), "p95": (2.1, 0.05, 1.645), "p99": (2.25, 0.01, 2.326)}
LOADS = [*product((0.002, 0.01), (0.001, 0.05), (0.0, 2.0), (0.1, 0.5, 0.9))]


def by_hand(fixed: float, added: float, sizes: float, rate: float, host: float) -> dict[str, float]:
    filling = rate * added
    few = (added + fixed) / (2 * (1 - filling))
    few *= 1 + 2 * rate * fixed + (1 - rate * fixed) / (1 + filling)
    many = 1.5 * fixed / (1 - filling) + added / 2 * (filling + 2) / (1 - filling**2)
    uneven = rate * added**2 * sizes / (2 * (1 - filling))
    before = host + rate * host**2 / (2 * (1 - rate * host))
    mean = before + min(few, many) + uneven
    steady = fixed / (1 - filling)
    queue = rate * added**2 * (1 + sizes) / (2 * (1 - filling))
    random = max(queue, mean - before - added - 1.5 * steady)
    told = {"request_latency": mean}
    for name, (steps, beyond, z) in TAILS.items():
        tail = math.log(max(filling / beyond, 1)) * random / filling
        own = added * (1 + z * math.sqrt(sizes))
        told[f"request_latency_{name}"] = before + own + steps * steady + tail
    return told


@pytest.mark.parametrize(("added", "fixed", "sizes", "load"), LOADS)
@pytest.mark.parametrize("host", [0.0, 0.001])
def test_means_and_percentiles_are_those_of_their_texts(
    added: float, fixed: float, sizes: float, load: float, host: float
) -> None:
    """At a load that is the part of what full steps do; three replicas share the requests."""
    rate = load / added
    if rate * host >= 0.99:
        return
    scope = {
        "sized_rate": 3 * rate,
        "replicas": 3.0,
        "service_seconds": added,
        "added_seconds": added,
        "fixed_seconds": fixed,
        "size_variation": sizes,
        "host_seconds": host,
    }
    told = latency(NAMES)(scope)
    for name, seconds in by_hand(fixed, added, sizes, rate, host).items():
        assert told[name] == pytest.approx(seconds, rel=1e-6), name
    assert told["replica_load"] == pytest.approx(load)


def test_both_ends_of_the_tail_are_met() -> None:
    """The queue alone, where steps cost next to nothing; what is left of the mean elsewhere."""
    ends = set()
    for added, fixed, sizes, load in LOADS:
        rate = load / added
        queue = rate * added**2 * (1 + sizes) / (2 * (1 - load))
        whole = by_hand(fixed, added, sizes, rate, 0.0)["request_latency"]
        ends.add(queue > whole - added - 1.5 * fixed / (1 - load))
    assert ends == {True, False}
