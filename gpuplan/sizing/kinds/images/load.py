"""What an image service or batch must serve, and the replicas that it takes: the sheets that the
search evaluates and the record prints."""

from __future__ import annotations

from gpuplan.sizing.ask.demand import DiffusionDemand, ImageBatchDemand, ImageServiceDemand
from gpuplan.sizing.candidates.sheets import ALL_REQUESTS, PEAK, limits
from gpuplan.sizing.evidence.formula import constant
from gpuplan.sizing.evidence.sheet import Scope, Sheet, sheet

IDLE_ROOM = constant(0.8, "1", "busy part of a replica, where no latency is asked for")
# Needs an objective for the latency. Not above 0: not even an idle replica is fast enough.
ROOM = sheet("""
    queue_room: s = latency_limit / slowness - batch_seconds
        # what the objective leaves to a queue
    load_limit: 1 = min(0.95, 2 * queue_room / (batch_seconds + 2 * queue_room))
        # the load at which an M/D/1 queue takes that long; at most 95 %
""")
CAPACITY = sheet("""
    images_per_second: 1/s = replicas * batch / batch_seconds
        # every replica busy all the time
""")
SERVED = sheet("""
    replica_load: 1 = sized_rate * batch_seconds / (batch * replicas)
        # the busy part of a replica's time
    request_latency: s = batch_seconds * (1 + replica_load / (2 * (1 - replica_load)))
        # mean: a batch, and the wait of an M/D/1 queue
    concurrency: 1 = ceil(sized_rate * request_latency)  # Little's law at the peak
""")
FINISH = sheet("""
    time_to_finish: s = all_requests * batch_seconds / (batch * replicas)  # every replica busy
""")
_SERVICE = PEAK + sheet("""
    replicas: 1 = max(1, ceil(sized_rate * slowness * batch_seconds / (batch * load_limit)
        - 1e-9))
        # as slow as the confidence allows, each busy for the part that the latency leaves
""")
_LIMITED = ALL_REQUESTS + sheet("""
    replicas: 1 = max(1, ceil(all_requests * slowness * batch_seconds / (batch * time_limit)
        - 1e-9))  # as slow as the confidence allows
""")
_UNLIMITED = ALL_REQUESTS + sheet("""
    replicas: 1 = 1  # one, without a time limit
""")


def needed(demand: DiffusionDemand) -> tuple[Sheet, Scope]:
    """The sheet up to `replicas`, and its inputs but times, batch and `load_limit`."""
    scope: Scope = {"growth": demand.growth.factor}
    if isinstance(demand, ImageServiceDemand):
        return _SERVICE, scope | {"peak_rate": demand.arrivals.peak}
    assert isinstance(demand, ImageBatchDemand)
    limit = limits(demand.limit)
    return _LIMITED if limit else _UNLIMITED, scope | limit | {"requests": demand.requests}


def room(demand: DiffusionDemand) -> tuple[Sheet, Scope]:
    """The sheet of `load_limit`, and its inputs but times."""
    latency = demand.request_latency if isinstance(demand, ImageServiceDemand) else None
    if latency is None:
        return Sheet(()), {"load_limit": IDLE_ROOM}
    return ROOM, {"latency_limit": latency}
