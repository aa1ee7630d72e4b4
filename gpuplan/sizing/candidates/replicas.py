"""Replicas of one device each: what the searches and records of such kinds have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Never, TypeVar

from gpuplan.plan.model import Basis, Flip, MemoryBudget, Metric, Shortfall
from gpuplan.plan.times import TIMES, field_of
from gpuplan.sizing.ask.demand import (
    LIMITED,
    SERVICES,
    Demand,
    DiffusionDemand,
    PoolingDemand,
    SpeechDemand,
    VisionDemand,
    accepted,
    asked,
)
from gpuplan.sizing.candidates.choose import Candidate, L, Merit, nodes_gate
from gpuplan.sizing.candidates.devices import devices
from gpuplan.sizing.candidates.gates import count_gate, refused, stopped
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.candidates.sheets import limits, record_filled, room_in
from gpuplan.sizing.evidence.formula import constant
from gpuplan.sizing.evidence.halving import halved
from gpuplan.sizing.evidence.intervals import Factors, inverse, metric
from gpuplan.sizing.evidence.sheet import Scope, Sheet, floats
from gpuplan.sizing.hardware.devices import Device
from gpuplan.sizing.hardware.offers import GpuOffer, Site

# Gates in the order in which a candidate meets them.
PRECISION, MEMORY, OBJECTIVE, REPLICAS, NODES = range(5)
IDLE = 1e-6  # load of a replica that is taken as idle
MOST_LOAD = 0.95  # of a replica's time
IDLE_ROOM = constant(0.8, "1", "busy part of a replica, where no latency is asked for")
SOLVED = "solved: the busiest, at most 95 %, at which every objective of the latency is met"

Replicated = PoolingDemand | SpeechDemand | DiffusionDemand | VisionDemand
Values = dict[str, float]
R = TypeVar("R", bound=Replicated)


def on_each(
    demand: R, site: Site, layouts: Callable[[R, Device], Iterator[Candidate[L]]]
) -> list[tuple[GpuOffer, list[Candidate[L]]]]:
    """The `layouts` of every device of every offer; one device runs one replica."""
    return [
        (offer, [c for d in devices(demand, offer, site) for c in layouts(demand, d)])
        for offer in site.gpus
    ]


def and_filled(
    demand: Demand, made: Callable[[int | None], Candidate[L]]
) -> Iterator[Candidate[L]]:
    """The candidate with the least replicas; of a batch also that with all that its paid nodes
    hold."""
    least = made(None)
    if not (isinstance(demand, LIMITED) and demand.overrides.replicas is None and least.feasible):
        yield least
        return
    yield replace(least, again=made)
    if (more := least.held_replicas) > least.replicas:
        yield replace(made(more), again=made)


def counted(
    demand: Replicated,
    device: Device,
    layout: L,
    values: Values,
    filled: int | None,
    *,
    finish: Sheet,
    served: Callable[[Values], tuple[float, float]],
) -> Candidate[L]:
    """With as many replicas as `values` say that are needed, as the override says, or as are
    `filled` in. `finish` gives a batch's `time_to_finish`; `served` a service's room and latency,
    which are its merit."""
    needed, chosen = int(values["replicas"]), demand.overrides.replicas
    if chosen is not None and int(chosen) < needed:
        few = count_gate("replicas", needed, int(chosen))
        return refused(demand, device, 1, (few,), passed=REPLICAS)
    count = filled or (needed if chosen is None else int(chosen))
    values = values | {"replicas": float(count)}
    hours, merit = None, Merit(lambda: served(dict(values)))
    if isinstance(demand, LIMITED):
        limit, seconds = demand.limit, finish(dict(values))["time_to_finish"]
        hours, merit = seconds / 3600, Merit(lambda: room_in(limit, seconds))
    candidate = Candidate(
        device=device,
        gpus=1,
        replicas=count,
        isolation=demand.isolation,
        hours=hours,
        detail=layout,
        merit=merit,
    )
    gate, flip = nodes_gate(candidate)
    return stopped(candidate, gate, passed=NODES, flip=flip)


def too_slow(demand: Demand, device: Device, idle: Values) -> Candidate[Never]:
    """Refused for the objective that an idle replica, as slow as the confidence allows, misses
    most."""
    limits = asked(demand)
    name, given = max(limits.items(), key=lambda limit: idle[limit[0]] / limit[1].value)
    limit, seconds = given.value, float(f"{idle[name]:.4g}")
    gate = Shortfall(resource=name, requested=seconds, used=0.0, capacity=limit, unit="s")
    flip = Flip(quantity=field_of(name), now=limit, needed=seconds, unit="s")
    return refused(demand, device, 1, (gate,), passed=OBJECTIVE, flip=flip)


def busiest(demand: Demand, times: Callable[[float], Values], slowness: float) -> float:
    """The load, at most 95 %, at which the `times` of a replica, `slowness` times as long, meet
    every objective; 0 where an idle one is too slow."""
    limits = asked(demand)

    def met(load: float) -> bool:
        seconds = times(load)
        return all(seconds[n] * slowness <= limit.value for n, limit in limits.items())

    if met(MOST_LOAD):
        return MOST_LOAD
    most, _ = halved(IDLE, MOST_LOAD, met, 1e-6)
    return float(f"{most:.5f}")


def arriving(
    demand: Replicated, service: Sheet, limited: Sheet, unlimited: Sheet
) -> tuple[Sheet, Scope]:
    """The sheet of its kind, and what the manifest gives to it."""
    scope: Scope = {"growth": demand.growth.factor}
    if isinstance(demand, LIMITED):
        limit = limits(demand.limit)
        scope |= limit | {"requests": demand.requests}
        return limited if limit else unlimited, scope
    assert isinstance(demand, SERVICES)
    return service, scope | {"peak_rate": demand.arrivals.peak}


def record_replicas(
    settled: Settled[Replicated], candidate: Candidate, needed: tuple[Sheet, Scope], scope: Scope
) -> Scope:
    """`scope` with what `needed` gives: as many replicas as are needed, or as fill the nodes."""
    ledger, (sheet, inputs) = settled.ledger, needed
    chosen = settled.demand.overrides.replicas
    least = sheet(floats(scope | inputs))["replicas"]
    if chosen is None and candidate.replicas > least:
        scope |= sheet.record(ledger, scope | inputs, "least.")
        scope["replicas"] = record_filled(ledger, candidate)
        return scope
    scope = sheet.record(ledger, scope | inputs)
    scope["replicas"] = settled.settle("replicas", scope["replicas"], chosen, settled.free.replicas)
    return scope


def memory_budget(scope: Scope) -> MemoryBudget:
    """Of one GPU."""
    parts = ("weights", "gradients", "optimizer", "activations", "kv_cache", "overhead")
    taken = {name: int(scope[name]) for p in parts if (name := f"{p}_bytes") in scope}
    return MemoryBudget(
        **taken,
        capacity_bytes=int(scope["memory_bytes"]),
        usable_bytes=int(scope["usable_bytes"]),
    )


def metrics(
    demand: Demand, scope: Scope, known: tuple[Factors, Basis], *rates: str
) -> tuple[Metric, ...]:
    """Times with their limits, and `rates`, of which a service must reach the first."""
    factors, basis = known
    may = {name: limit.value for name, limit in (asked(demand) | accepted(demand)).items()}
    names, wanted = ["time_to_finish"], None
    if isinstance(demand, SERVICES):
        names = [n for n in TIMES if n in ("request_latency", *may)]
        wanted = scope["sized_rate"].value
    elif isinstance(demand, LIMITED) and (limit := demand.limit.shown) is not None:
        may["time_to_finish"] = limit.value
    held = (
        metric(n, "s", scope[n].value, factors=factors, basis=basis, limit=may.get(n))
        for n in names
    )
    reached = (
        metric(
            name,
            scope[name].unit,
            scope[name].value,
            factors=inverse(factors),
            basis=basis,
            limit=wanted if name == rates[0] else None,
            sense="at_least",
        )
        for name in rates
    )
    return (*held, *reached)
