"""The latency of a server that takes all waiting requests into its next step.

A step takes `fixed_seconds` and `added_seconds` for each request in it. The mean is the closed
form of Inoue, "Queueing Analysis of GPU-Based Inference Servers with Dynamic Batching" (Performance
Evaluation 2021, arXiv:1912.06322), with what requests of unlike sizes add; percentiles have an
exponential tail beside the wait for the running step. Beside simulated queues means are within
20 %, percentiles within 25 % (tests/sizing/test_pooling.py).
"""

from __future__ import annotations

from functools import cache

from gpuplan.plan.times import TIMES
from gpuplan.sizing.evidence.sheet import Sheet, sheet

PLAIN = "request_latency"
# Of each statistic: steps of the steady state that pass until an answer, the part of the requests
# beyond it, and the standard deviations of a request's own size.
PERCENTILES = {"p50": (1.5, 0.5, 0.0), "p95": (2.1, 0.05, 1.645), "p99": (2.25, 0.01, 2.326)}

_MEAN = """
    offered: 1/s = sized_rate / replicas  # requests of one replica
    replica_load: 1 = offered * service_seconds  # of what it can do with its steps full
    filling: 1 = offered * added_seconds  # by which a second of a step fills the next one
    few_seconds: s = (added_seconds + fixed_seconds) / (2 * (1 - filling))
        * (1 + 2 * offered * fixed_seconds + (1 - offered * fixed_seconds) / (1 + filling))
        # bound of the mean latency where steps hold few requests: Inoue 2021, phi 0
    many_seconds: s = 1.5 * fixed_seconds / (1 - filling)
        + added_seconds / 2 * (filling + 2) / (1 - filling ** 2)
        # bound of the mean latency where steps hold many: Inoue 2021, phi 1
    uneven_seconds: s = offered * added_seconds ** 2 * size_variation / (2 * (1 - filling))
        # what requests of unlike sizes add (Pollaczek and Khinchine)
    before_seconds: s = {answered}
        + offered * host_seconds ** 2 / (2 * (1 - offered * host_seconds))
        # {where}, an M/D/1 queue of its own
    request_latency: s = before_seconds + min(few_seconds, many_seconds) + uneven_seconds
        # mean: until the running step ends, and the step that it is in
"""
_PARTS = sheet("""
    steady_seconds: s = fixed_seconds / (1 - filling)  # a step of the steady state
    random_seconds: s = max(
        offered * added_seconds ** 2 * (1 + size_variation) / (2 * (1 - filling)),
        request_latency - before_seconds - added_seconds - 1.5 * steady_seconds)
        # of the mean wait what comes and goes with the arrivals, at least that of an M/G/1 queue
""")
_TAIL = """
    request_latency_{s}: s = before_seconds + added_seconds * (1 + {z} * sqrt(size_variation))
        + {steps} * steady_seconds + 0.693147181 * random_seconds / filling
        * log2(max(filling / {beyond}, 1))
        # percentile: a long request, the steps it waits for, an exponential tail
"""


@cache
def latency(
    names: tuple[str, ...], where: str = "in the API server", answered: str = "host_seconds"
) -> Sheet:
    """The mean at the load `sized_rate`, and the percentiles of `names`. Before the steps a request
    is `answered` seconds `where` it holds up others for `host_seconds`."""
    times = sheet(_MEAN.format(where=where, answered=answered))
    statistics = [TIMES[name][1] for name in names if name != PLAIN]
    if statistics:
        times += _PARTS
    for statistic in statistics:
        steps, beyond, z = PERCENTILES[statistic]
        times += sheet(_TAIL.format(s=statistic, steps=steps, beyond=beyond, z=z))
    return times
