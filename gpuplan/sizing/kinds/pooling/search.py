"""Embedding models and rerankers: the replicas that a service or a batch takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpuplan.catalog.model import Gpu
from gpuplan.plan.model import Flip, Shortfall
from gpuplan.plan.times import field_of
from gpuplan.sizing.ask.demand import PoolingBatchDemand, PoolingDemand, PoolingServiceDemand
from gpuplan.sizing.candidates.choose import Candidate, Merit, nodes_gate
from gpuplan.sizing.candidates.devices import devices
from gpuplan.sizing.candidates.gates import count_gate, memory_gate, refused, stopped
from gpuplan.sizing.candidates.sheets import room_in
from gpuplan.sizing.data.pooling import TEI_CAPABILITIES, TEI_IMAGE
from gpuplan.sizing.evidence.intervals import at_confidence
from gpuplan.sizing.evidence.sheet import floats
from gpuplan.sizing.hardware.devices import Device
from gpuplan.sizing.hardware.efficiency import unmeasured, unsupported
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.sizing.kinds.pooling.load import (
    CAPACITY,
    FINISH,
    IDLE,
    asked,
    busiest,
    latencies,
    needed,
    times,
)
from gpuplan.sizing.physics.pooling.correction import QUANTITY
from gpuplan.sizing.physics.pooling.reader import Reader

PRECISION, MEMORY, OBJECTIVE, REPLICAS, NODES = range(5)


@dataclass(frozen=True, slots=True)
class SizedReader:
    """A reader with the tokens of its steps, evaluated."""

    reader: Reader
    values: dict[str, float]


def candidates(demand: PoolingDemand, site: Site) -> list[tuple[GpuOffer, list[Candidate]]]:
    """Every device of every offer; one device runs one replica."""
    return [
        (offer, [c for d in devices(demand, offer, site) for c in _layouts(demand, d)])
        for offer in site.gpus
    ]


def replica(demand: PoolingDemand, device: Device) -> Reader:
    """What a device runs; its numbers raise `NotMeasured`."""
    lengths = {
        "texts": demand.texts,
        "input_mean": demand.input_mean,
        "input_p95": demand.input_p95,
        "max_model_len": demand.max_model_len,
    }
    return Reader(
        model=demand.model,
        device=device,
        engine=demand.engine.name,
        precision=demand.precision,
        lengths=dict(lengths),
        utilization=demand.gpu_memory_utilization,
        confidence=demand.confidence.value,
        anchors=demand.anchors(QUANTITY),
    )


def no_program(engine: str, gpu: Gpu) -> tuple[Shortfall, ...]:
    """The gate that a GPU fails for which the engine's image has no program."""
    if engine != "tei":
        return ()
    nvidia = gpu.vendor == "nvidia"
    capability = float(gpu.compute_capability or 0) if nvidia else 0.0
    if capability in TEI_CAPABILITIES:
        return ()
    resource = f"compute capability of {TEI_IMAGE}"
    nearest = min(TEI_CAPABILITIES, key=lambda known: abs(known - capability))
    return (
        Shortfall(resource=resource, requested=nearest, used=0.0, capacity=capability, unit="1"),
    )


def _layouts(demand: PoolingDemand, device: Device) -> Iterator[Candidate]:
    gpu = device.gpu
    gate = no_program(demand.engine.name, gpu)
    gate = gate or unsupported(gpu, demand.precision, demand.engine.name) or unmeasured(gpu)
    if gate:
        yield refused(demand, device, 1, gate, passed=PRECISION)
        return
    layout = sized(demand, device)
    used, usable = layout.values["used_bytes"], layout.values["usable_bytes"]
    if used > usable:
        share = demand.gpu_memory_utilization.value
        gate, flip = memory_gate(device, used, usable, float(round(used / share)))
        yield refused(demand, device, 1, gate, passed=MEMORY, flip=flip)
        return
    least = _candidate(demand, device, layout)
    yield least
    more = least.held_replicas
    whole = isinstance(demand, PoolingBatchDemand) and demand.overrides.replicas is None
    if whole and least.feasible and more > least.replicas:
        yield _candidate(demand, device, layout, more)


def sized(demand: PoolingDemand, device: Device) -> SizedReader:
    reader, chosen = replica(demand, device), demand.overrides.max_num_batched_tokens
    return SizedReader(reader, reader.at(None if chosen is None else chosen.value))


def slowness(demand: PoolingDemand, layout: SizedReader) -> float:
    return at_confidence(layout.reader.interval[0], demand.confidence.value)


def load_limit(demand: PoolingDemand, layout: SizedReader) -> float:
    """The part of its time that a replica may work; 0: not even an idle one is fast enough."""
    return busiest(demand, layout.values, slowness(demand, layout))


def _candidate(
    demand: PoolingDemand, device: Device, layout: SizedReader, filled: int | None = None
) -> Candidate:
    """With as many replicas as are needed, as the override says, or as are `filled` in."""
    slow, hours = slowness(demand, layout), None
    limit = load_limit(demand, layout)
    if limit <= 0:
        assert isinstance(demand, PoolingServiceDemand)
        return _too_slow(demand, device, layout.values, slow)
    sheet, inputs = needed(demand)
    values = layout.values | floats(inputs) | {"slowness": slow, "load_limit": limit}
    values = sheet(values)
    count, chosen = int(values["replicas"]), demand.overrides.replicas
    if chosen is not None and int(chosen) < count:
        few = count_gate("replicas", count, int(chosen))
        return refused(demand, device, 1, (few,), passed=REPLICAS)
    count = filled or (count if chosen is None else int(chosen))
    if isinstance(demand, PoolingBatchDemand):
        finish = FINISH(values | {"replicas": float(count)})["time_to_finish"]
        hours = finish / 3600
    candidate = Candidate(
        device=device,
        gpus=1,
        replicas=count,
        isolation=demand.isolation,
        hours=hours,
        detail=layout,
        merit=Merit(lambda: _merit(demand, values | {"replicas": float(count)})),
    )
    gate, flip = nodes_gate(candidate)
    return stopped(candidate, gate, passed=NODES, flip=flip)


def _merit(demand: PoolingDemand, values: dict[str, float]) -> tuple[float, float]:
    """Requests of busy replicas over those that are asked for, and the mean latency at the peak; of
    a batch the time that it takes."""
    if isinstance(demand, PoolingBatchDemand):
        return room_in(demand.limit, FINISH(values)["time_to_finish"])
    served = (CAPACITY + times(demand))(values)
    return served["requests_per_second"] / values["sized_rate"], served["request_latency"]


def _too_slow(
    demand: PoolingServiceDemand, device: Device, values: dict[str, float], slow: float
) -> Candidate:
    """The objective that an idle replica misses most."""
    idle = latencies(demand, values, IDLE)
    name, given = max(asked(demand).items(), key=lambda limit: idle[limit[0]] / limit[1].value)
    limit, seconds = given.value, float(f"{idle[name] * slow:.4g}")
    gate = Shortfall(resource=name, requested=seconds, used=0.0, capacity=limit, unit="s")
    flip = Flip(quantity=field_of(name), now=limit, needed=seconds, unit="s")
    return refused(demand, device, 1, (gate,), passed=OBJECTIVE, flip=flip)
