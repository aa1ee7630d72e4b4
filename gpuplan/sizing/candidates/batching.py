"""Replicas whose steps take all requests that wait: what they must answer, how busy they may be,
and how many it takes. Searches evaluate the sheets, records print them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

from gpuplan.sizing.ask.demand import SERVICES, PoolingDemand, VisionDemand, accepted, asked
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.gates import memory_gate, refused
from gpuplan.sizing.candidates.replicas import (
    IDLE,
    IDLE_ROOM,
    MEMORY,
    SOLVED,
    Values,
    and_filled,
    arriving,
    busiest,
    counted,
    record_replicas,
    too_slow,
)
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.candidates.sheets import ALL_REQUESTS, MEAN_LOAD, PEAK, RUNNING
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.evidence.sheet import Scope, Sheet, floats, sheet
from gpuplan.sizing.hardware.devices import Device
from gpuplan.sizing.physics.batching import PLAIN

Batching = PoolingDemand | VisionDemand
CAPACITY = sheet("""
    requests_per_second: 1/s = replicas * load_limit / service_seconds
        # requests of every replica at the load that its objectives allow
""")
FULL = sheet("""
    requests_per_second: 1/s = replicas / service_seconds  # every step of every replica full
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


def needed(demand: Batching) -> tuple[Sheet, Scope]:
    """The sheet up to `replicas`, and its inputs but times and `load_limit`."""
    return arriving(demand, _SERVICE, _LIMITED, _UNLIMITED)


def percentiles(demand: Batching) -> tuple[str, ...]:
    """Those that are asked for or whose miss is accepted; a batch has none."""
    limits = asked(demand) | accepted(demand) if isinstance(demand, SERVICES) else {}
    return tuple(n for n in limits if n != PLAIN)


def latencies(demand: Batching, times: Sheet, values: Values, load: float) -> Values:
    """The `times` of all objectives of a replica that is busy for the part `load` of its time."""
    rate = load / values["service_seconds"]
    seconds = times(values | {"sized_rate": rate, "replicas": 1.0})
    return {name: seconds[name] for name in asked(demand)}


def load_limit(demand: Batching, times: Sheet, values: Values, slowness: float) -> float:
    """The part of its time that a replica may work; 0: not even an idle one is fast enough."""
    if not asked(demand):
        return IDLE_ROOM.value
    return busiest(demand, lambda load: latencies(demand, times, values, load), slowness)


class Answers(NamedTuple):
    """What is told of a load: the rates of its things, a service's latencies, a batch's end."""

    rates: Sheet
    times: Sheet
    finish: Sheet


class Evaluated(Protocol):
    """A program on a device with its steps, evaluated."""

    @property
    def values(self) -> Values: ...


E = TypeVar("E", bound=Evaluated)


def candidates(
    demand: Batching,
    device: Device,
    layout: E,
    *,
    slowness: float,
    times: Sheet,
    finish: Sheet,
) -> Iterator[Candidate[E]]:
    """Where its memory holds it."""
    used, usable = layout.values["used_bytes"], layout.values["usable_bytes"]
    if used > usable:
        share = demand.gpu_memory_utilization.value
        gate, flip = memory_gate(device, used, usable, float(round(used / share)))
        yield refused(demand, device, 1, gate, passed=MEMORY, flip=flip)
        return
    made = partial(
        _candidate, demand, device, layout, slowness=slowness, times=times, finish=finish
    )
    yield from and_filled(demand, made)


def _candidate(
    demand: Batching,
    device: Device,
    layout: E,
    filled: int | None,
    *,
    slowness: float,
    times: Sheet,
    finish: Sheet,
) -> Candidate[E]:
    """See `counted`."""
    values = layout.values
    limit = load_limit(demand, times, values, slowness)
    if limit <= 0:
        idle = latencies(demand, times, values, IDLE)
        return too_slow(demand, device, {name: t * slowness for name, t in idle.items()})
    sheet, inputs = needed(demand)
    values = values | floats(inputs) | {"slowness": slowness, "load_limit": limit}

    def served(at: Values) -> tuple[float, float]:
        """Requests of busy replicas over those that are asked for, and the mean latency at the
        peak."""
        results = (CAPACITY + times)(at)
        return results["requests_per_second"] / at["sized_rate"], results["request_latency"]

    return counted(demand, device, layout, sheet(values), filled, finish=finish, served=served)


def record_load(
    settled: Settled[Batching], candidate: Candidate, scope: Scope, limit: float, answers: Answers
) -> tuple[Scope, float]:
    """`scope` with the replicas and how they are loaded, a service's up to `limit`; and how many
    requests run at once."""
    demand, ledger = settled.demand, settled.ledger
    if not isinstance(demand, SERVICES):
        scope = record_replicas(settled, candidate, needed(demand), scope)
        scope = (FULL + answers.rates + answers.finish).record(ledger, scope)
        return scope, scope["replicas"].value
    solved = Quantity(limit, "1", SOLVED) if asked(demand) else IDLE_ROOM
    scope = scope | {"load_limit": ledger.given("load_limit", solved)}
    scope = record_replicas(settled, candidate, needed(demand), scope)
    scope = (CAPACITY + answers.rates + answers.times + RUNNING).record(ledger, scope)
    MEAN_LOAD.record(ledger, scope | {"mean_rate": demand.arrivals.mean})
    return scope, scope["concurrency"].value
