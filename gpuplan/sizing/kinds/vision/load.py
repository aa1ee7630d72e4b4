"""What a service or batch that reads images must answer, and the replicas that it takes: the sheets
that the search evaluates and the record prints."""

from __future__ import annotations

from gpuplan.sizing.ask.demand import VisionDemand, accepted, asked
from gpuplan.sizing.candidates.replicas import arriving
from gpuplan.sizing.candidates.sheets import ALL_REQUESTS, PEAK
from gpuplan.sizing.evidence.formula import constant
from gpuplan.sizing.evidence.sheet import Scope, Sheet, sheet
from gpuplan.sizing.physics.batching import PLAIN, latency

IDLE_ROOM = constant(0.8, "1", "busy part of a replica, where no latency is asked for")
_IMAGES = sheet("""
    images_per_second: 1/s = requests_per_second * images  # images that are read
""")
CAPACITY = (
    sheet("""
    requests_per_second: 1/s = replicas * load_limit / service_seconds
        # requests of every replica at the load that its objectives allow
""")
    + _IMAGES
)
FULL = (
    sheet("""
    requests_per_second: 1/s = replicas / service_seconds  # every step of every replica full
""")
    + _IMAGES
)
RUNNING = sheet("""
    concurrency: 1 = ceil(sized_rate * request_latency)  # Little's law at the peak
""")
FINISH = sheet("""
    time_to_finish: s = all_requests * service_seconds / replicas
        # what is slowest works without a pause: GPUs, cores or storage
""")
_SERVICE = PEAK + sheet("""
    replicas: 1 = max(1, ceil(sized_rate * slowness * service_seconds / load_limit - 1e-9))
        # as slow as the confidence allows, each busy for the part that the latency leaves
""")
_LIMITED = ALL_REQUESTS + sheet("""
    sized_rate: 1/s = all_requests / time_limit  # all requests within the time limit
    replicas: 1 = max(1, ceil(all_requests * slowness * service_seconds / time_limit - 1e-9))
        # as slow as the confidence allows
""")
_UNLIMITED = ALL_REQUESTS + sheet("""
    sized_rate: 1/s = 0 * all_requests / second  # nothing limits the time
    replicas: 1 = 1  # one, without a time limit
""")


def needed(demand: VisionDemand) -> tuple[Sheet, Scope]:
    """The sheet up to `replicas`, and its inputs but times and `load_limit`."""
    return arriving(demand, _SERVICE, _LIMITED, _UNLIMITED)


def times(demand: VisionDemand) -> Sheet:
    """The mean latency, and the percentiles that are asked for or whose miss is accepted."""
    names = tuple(n for n in asked(demand) | accepted(demand) if n != PLAIN)
    return latency(names, "on the cores that decode", "answered_seconds")


def latencies(demand: VisionDemand, values: dict[str, float], load: float) -> dict[str, float]:
    """The times of all objectives of a replica that is busy for the part `load` of its time."""
    rate = load / values["service_seconds"]
    found = times(demand)(values | {"sized_rate": rate, "replicas": 1.0})
    return {name: found[name] for name in asked(demand)}
