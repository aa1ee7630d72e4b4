"""Image generation: the replicas that a service or a batch takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpuplan.plan.model import Flip, Shortfall
from gpuplan.sizing.ask.demand import DiffusionDemand, ImageBatchDemand, ImageServiceDemand
from gpuplan.sizing.candidates.choose import Candidate, Merit, nodes_gate
from gpuplan.sizing.candidates.devices import devices
from gpuplan.sizing.candidates.gates import count_gate, memory_gate, refused, stopped
from gpuplan.sizing.candidates.sheets import room_in, weighed_hours
from gpuplan.sizing.evidence.intervals import at_confidence
from gpuplan.sizing.evidence.sheet import floats
from gpuplan.sizing.hardware.devices import Device
from gpuplan.sizing.hardware.efficiency import unsupported
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.sizing.kinds.images.load import CAPACITY, FINISH, SERVED, needed, room
from gpuplan.sizing.memory.images import USABLE
from gpuplan.sizing.physics.images.denoising import Images, Runtime, unmeasured
from gpuplan.sizing.physics.images.pipeline import Pipeline, pipeline

SERVED_AT_PEAK = CAPACITY + SERVED
MOST_BATCH = 8
PRECISION, MEMORY, OBJECTIVE, REPLICAS, NODES = range(5)


@dataclass(frozen=True, slots=True)
class SizedPipeline:
    """A pipeline at its batch, evaluated."""

    pipeline: Pipeline
    batch: int
    values: dict[str, float]


def candidates(demand: DiffusionDemand, site: Site) -> list[tuple[GpuOffer, list[Candidate]]]:
    """Every device of every offer; one device runs one replica."""
    return [
        (offer, [c for d in devices(demand, offer, site) for c in _layouts(demand, d)])
        for offer in site.gpus
    ]


def replica(demand: DiffusionDemand, device: Device) -> Pipeline:
    """The pipeline that a device runs. Raises `NotMeasured`."""
    images = Images(
        pixels=demand.pixels_mean,
        largest_pixels=demand.pixels_p95,
        denoising_steps=demand.denoising_steps,
    )
    runtime = Runtime(device=device, precision=demand.precision, engine=demand.engine.name)
    return pipeline(demand.model, runtime, images, demand.anchors)


def _layouts(demand: DiffusionDemand, device: Device) -> Iterator[Candidate]:
    gpu, precision = device.gpu, demand.precision
    gate = unsupported(gpu, precision) or unmeasured(demand.model.denoiser, gpu, precision)
    if gate:
        yield refused(demand, device, 1, gate, passed=PRECISION)
        return
    layout = _batched(demand, replica(demand, device))
    used, usable = layout.values["used_bytes"], layout.values["usable_bytes"]
    if used > usable:
        gate, flip = memory_gate(device, used, usable, float(round(used / USABLE.value)))
        yield refused(demand, device, 1, gate, passed=MEMORY, flip=flip)
        return
    yield _candidate(demand, device, layout)


def _batched(demand: DiffusionDemand, made: Pipeline) -> SizedPipeline:
    """A service makes one image at a time, for the least latency; a batch the most that fit."""
    chosen = demand.overrides.max_num_seqs
    batch = 1 if chosen is None else int(chosen)
    values = made.at(batch)
    if chosen is None and isinstance(demand, ImageBatchDemand):
        for larger in (2, 4, MOST_BATCH):
            more = made.at(larger)
            if more["used_bytes"] > more["usable_bytes"]:
                break
            batch, values = larger, more
    return SizedPipeline(made, batch, values)


def slowness(demand: DiffusionDemand, layout: SizedPipeline) -> float:
    return at_confidence(layout.pipeline.corrected.interval[0], demand.confidence.value)


def load_limit(demand: DiffusionDemand, layout: SizedPipeline) -> float:
    """The part of its time that a replica may work; 0 or less: not even an idle replica is fast
    enough."""
    sheet, inputs = room(demand)
    values = layout.values | floats(inputs) | {"slowness": slowness(demand, layout)}
    limits = sheet(values)
    return 0.0 if limits.get("queue_room", 1.0) <= 0 else limits["load_limit"]


def _candidate(demand: DiffusionDemand, device: Device, layout: SizedPipeline) -> Candidate:
    slow, hours = slowness(demand, layout), 1.0
    limit = load_limit(demand, layout)
    if isinstance(demand, ImageServiceDemand) and limit <= 0:
        return _too_slow(demand, device, layout.values["batch_seconds"] * slow)
    sheet, inputs = needed(demand)
    values = layout.values | floats(inputs) | {"slowness": slow, "load_limit": limit}
    values = sheet(values)
    count, chosen = int(values["replicas"]), demand.overrides.replicas
    if chosen is not None and int(chosen) < count:
        few = count_gate("replicas", count, int(chosen))
        return refused(demand, device, 1, (few,), passed=REPLICAS)
    count = count if chosen is None else int(chosen)
    if isinstance(demand, ImageBatchDemand):
        finish = FINISH(values | {"replicas": count})["time_to_finish"]
        hours = weighed_hours(demand.limit, finish)
    candidate = Candidate(
        device=device,
        gpus=1,
        replicas=count,
        isolation=demand.isolation,
        hours=hours,
        detail=layout,
        merit=Merit(lambda: _merit(demand, values | {"replicas": count})),
    )
    gate, flip = nodes_gate(candidate)
    return stopped(candidate, gate, passed=NODES, flip=flip)


def _merit(demand: DiffusionDemand, values: dict[str, float]) -> tuple[float, float]:
    """Images of busy replicas over those that are asked for, and the mean latency at the peak; of a
    batch the time that it takes."""
    if isinstance(demand, ImageBatchDemand):
        return room_in(demand.limit, FINISH(values)["time_to_finish"])
    served = SERVED_AT_PEAK(values)
    return served["images_per_second"] / values["sized_rate"], served["request_latency"]


def _too_slow(demand: ImageServiceDemand, device: Device, seconds: float) -> Candidate:
    assert demand.request_latency is not None
    limit, needed_seconds = demand.request_latency.value, float(f"{seconds:.4g}")
    gate = Shortfall(
        resource="request_latency", requested=needed_seconds, used=0.0, capacity=limit, unit="s"
    )
    flip = Flip(quantity="slo.request_latency", now=limit, needed=needed_seconds, unit="s")
    return refused(demand, device, 1, (gate,), passed=OBJECTIVE, flip=flip)
