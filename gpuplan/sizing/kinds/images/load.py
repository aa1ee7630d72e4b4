"""What an image service or batch must serve, and the replicas that it takes: the sheets that the
search evaluates and the record prints."""

from __future__ import annotations

from functools import cache

from gpuplan.plan.times import TIMES
from gpuplan.sizing.ask.demand import DiffusionDemand, accepted, asked
from gpuplan.sizing.candidates.replicas import IDLE_ROOM, arriving
from gpuplan.sizing.candidates.sheets import ALL_REQUESTS, ONE_REPLICA, PEAK, RUNNING
from gpuplan.sizing.evidence.formula import Formula
from gpuplan.sizing.evidence.sheet import Scope, Sheet, sheet
from gpuplan.sizing.physics.images.sizes import percentile

PLAIN = ["request_latency"]
BEYOND = {"p50": 0.5, "p95": 0.05, "p99": 0.01}  # part of the requests
# Needs an objective for the latency. Not above 0: not even an idle replica is fast enough. With
# sizes that spread, {v} is how their times vary.
_ROOM = """
    queue_room: s = latency_limit / slowness - batch_seconds
        # what the objective leaves to a queue
    load_limit: 1 = min(0.95, 2 * queue_room / (batch_seconds{v} + 2 * queue_room))
        # the load at which an {queue} queue takes that long; at most 95 %
"""
ROOM = sheet(_ROOM.format(v="", queue="M/D/1"))
_CAPACITY = """
    {rate}: 1/s = replicas * batch / batch_seconds
        # every replica busy all the time
"""
CAPACITY = sheet(_CAPACITY.format(rate="images_per_second"))
VIDEO_CAPACITY = sheet(_CAPACITY.format(rate="videos_per_second"))
_LOAD = sheet("""
    replica_load: 1 = sized_rate * batch_seconds / (batch * replicas)
        # the busy part of a replica's time
""")
_MEAN = """
    request_latency: s = batch_seconds * (1 + replica_load{v} / (2 * (1 - replica_load)))
        # mean: a batch, and the wait of an {queue} queue
"""
# Of images of one size; of several, `sizes.percentile` solves for it.
_PERCENTILE = """
    request_latency_{s}: s = batch_seconds * (1 + 0.693147181
        * log2(max(replica_load / {beyond}, 1)) / (2 * (1 - replica_load)))
        # percentile: the wait of an M/D/1 queue, exponential tail (at low loads up to 20 % more)
"""
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


# By whether images have several sizes: the variation of their times, and the queue's name.
_QUEUES = {
    False: {"v": "", "queue": "M/D/1"},
    True: {"v": " * service_variation", "queue": "M/G/1"},
}


def spread(demand: DiffusionDemand) -> bool:
    """Whether images have several sizes."""
    return demand.pixels_p95.value > demand.pixels_mean.value


@cache
def _over_sizes(of_one: Sheet) -> Sheet:
    """The same where a batch takes the mean time over the sizes."""

    def replaced(formula: Formula) -> Formula:
        text = formula.expression.replace("batch_seconds", "service_seconds")
        return Formula(text, formula.unit, formula.source)

    return Sheet(tuple((name, replaced(formula)) for name, formula in of_one.lines))


def over_sizes(demand: DiffusionDemand, of_one: Sheet) -> Sheet:
    """`of_one` for the sizes of `demand`."""
    return _over_sizes(of_one) if spread(demand) else of_one


def rate_name(demand: DiffusionDemand) -> str:
    """What `capacity` gives."""
    return "images_per_second" if demand.frames is None else "videos_per_second"


def capacity(demand: DiffusionDemand) -> Sheet:
    return over_sizes(demand, CAPACITY if demand.frames is None else VIDEO_CAPACITY)


def needed(demand: DiffusionDemand) -> tuple[Sheet, Scope]:
    """The sheet up to `replicas`, and its inputs but times, batch and `load_limit`."""
    sheet, inputs = arriving(demand, _SERVICE, _LIMITED, ONE_REPLICA)
    return over_sizes(demand, sheet), inputs


def room(demand: DiffusionDemand) -> tuple[Sheet, Scope] | None:
    """The sheet of `load_limit`, and its inputs but times; None where it has to be solved for."""
    limits = asked(demand)
    if not limits:
        return Sheet(()), {"load_limit": IDLE_ROOM}
    if list(limits) != PLAIN:
        return None
    made = _of_several() if spread(demand) else ROOM
    return made, {"latency_limit": limits["request_latency"]}


@cache
def _of_several() -> Sheet:
    return _over_sizes(sheet(_ROOM.format(**_QUEUES[True])))


@cache
def _latency(names: tuple[str, ...], *, several: bool) -> Sheet:
    """The mean at a load, and of images of one size the percentiles of `names`."""
    times = sheet(_MEAN.format(**_QUEUES[several]))
    if several:
        return _over_sizes(times)
    for name in names:
        words = {"s": TIMES[name][1], "beyond": BEYOND[TIMES[name][1]]}
        times += sheet(_PERCENTILE.format(**words))
    return times


@cache
def _served(latency: Sheet, load: Sheet) -> Sheet:
    return load + latency + RUNNING


def percentiles(demand: DiffusionDemand) -> tuple[str, ...]:
    """The percentiles that are asked for or whose miss is accepted."""
    return tuple(n for n in asked(demand) | accepted(demand) if n not in PLAIN)


def served_by(demand: DiffusionDemand) -> Sheet:
    """The load, the times that are asked for and have a formula, and the images at once of a
    service."""
    latency = _latency(percentiles(demand), several=spread(demand))
    return _served(latency, over_sizes(demand, _LOAD))


def solved(demand: DiffusionDemand, values: dict[str, float]) -> dict[str, float]:
    """The percentiles of images of several sizes, of a replica at the values of `served_by`."""
    names = percentiles(demand) if spread(demand) else ()
    return {name: percentile(values, BEYOND[TIMES[name][1]]) for name in names}


def latencies(demand: DiffusionDemand, values: dict[str, float], load: float) -> dict[str, float]:
    """The times of all objectives of a replica that is busy for the part `load` of its time."""
    latency = _latency(percentiles(demand), several=spread(demand))
    times = latency(values | {"replica_load": load})
    times |= solved(demand, times)
    return {name: times[name] for name in asked(demand)}
