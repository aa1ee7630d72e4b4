"""Image generation: the replicas that a service or a batch takes."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.frozen import frozen
from gpuplan.sizing.ask.demand import DiffusionDemand, ImageBatchDemand
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.gates import memory_gate, refused
from gpuplan.sizing.candidates.replicas import (
    IDLE,
    MEMORY,
    PRECISION,
    and_filled,
    busiest,
    counted,
    on_each,
    too_slow,
)
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.evidence.intervals import at_confidence
from gpuplan.sizing.evidence.sheet import floats
from gpuplan.sizing.hardware.devices import Device
from gpuplan.sizing.hardware.efficiency import unsupported
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.sizing.kinds.images.load import (
    FINISH,
    capacity,
    latencies,
    needed,
    over_sizes,
    rate_name,
    room,
    served_by,
    spread,
)
from gpuplan.sizing.memory.images import USABLE
from gpuplan.sizing.physics.images.denoising import Images, Runtime, unmeasured
from gpuplan.sizing.physics.images.pipeline import Pipeline, denoising, pipeline
from gpuplan.sizing.physics.images.sizes import SIZES, size_sigma

MOST_BATCH = 8


@frozen
class SizedPipeline:
    """A pipeline at its batch, evaluated."""

    pipeline: Pipeline
    batch: int
    values: dict[str, float]


def candidates(
    demand: DiffusionDemand, site: Site
) -> list[tuple[GpuOffer, list[Candidate[SizedPipeline]]]]:
    """Every device of every offer."""
    return on_each(demand, site, _layouts)


def replica(demand: DiffusionDemand, device: Device) -> Pipeline:
    """The pipeline that a device runs. Raises `NotMeasured`."""
    images = _made(demand, demand.pixels_mean)
    return pipeline(demand.model, _runtime(demand, device), images, demand.anchors)


def large(demand: DiffusionDemand, device: Device) -> Pipeline:
    """The time of large images on it. Raises `NotMeasured`."""
    images, model = _made(demand, demand.pixels_p95), demand.model
    runtime = _runtime(demand, device)
    return denoising(model.denoiser, runtime, images, demand.anchors, model.source)


def _made(demand: DiffusionDemand, pixels: Quantity) -> Images:
    """Images, or videos, of so many pixels."""
    return Images(
        pixels=pixels,
        largest_pixels=demand.pixels_p95,
        denoising_steps=demand.denoising_steps,
        frames=int(demand.frames.value) if demand.frames else 1,
        memory=demand.video_memory,
    )


def _runtime(demand: DiffusionDemand, device: Device) -> Runtime:
    return Runtime(device=device, precision=demand.precision, engine=demand.engine.name)


def _layouts(demand: DiffusionDemand, device: Device) -> Iterator[Candidate[SizedPipeline]]:
    gpu, precision = device.gpu, demand.precision
    gate = unsupported(gpu, precision) or unmeasured(demand.model.denoiser, gpu, precision)
    if gate:
        yield refused(demand, device, 1, gate, passed=PRECISION)
        return
    layout = batched(demand, device, replica(demand, device))
    used, usable = layout.values["used_bytes"], layout.values["usable_bytes"]
    if used > usable:
        gate, flip = memory_gate(device, used, usable, float(round(used / USABLE.value)))
        yield refused(demand, device, 1, gate, passed=MEMORY, flip=flip)
        return
    yield from and_filled(demand, lambda filled: _candidate(demand, device, layout, filled))


def batched(demand: DiffusionDemand, device: Device, made: Pipeline) -> SizedPipeline:
    """A service makes one image at a time, for the least latency; a batch the most that fit. A
    video fills a GPU alone."""
    chosen = demand.overrides.max_num_seqs
    batch = 1 if chosen is None else int(chosen)
    values = made.at(batch)
    if chosen is None and isinstance(demand, ImageBatchDemand) and demand.frames is None:
        for larger in (2, 4, MOST_BATCH):
            more = made.at(larger)
            if more["used_bytes"] > more["usable_bytes"]:
                break
            batch, values = larger, more
    if spread(demand):
        values["large_seconds"] = large(demand, device).at(batch)["batch_seconds"]
        values["size_sigma"] = sigma(demand).value
        values = SIZES(values)
    return SizedPipeline(made, batch, values)


def sigma(demand: DiffusionDemand) -> Quantity:
    """How far the sizes of the images spread."""
    solved = "solved: of ten log-normal sizes with that mean, the largest the 95th percentile"
    ratio = demand.pixels_p95.value / demand.pixels_mean.value
    return Quantity(size_sigma(ratio), "1", solved)


def slowness(demand: DiffusionDemand, layout: SizedPipeline) -> float:
    return at_confidence(layout.pipeline.corrected.interval[0], demand.confidence.value)


def load_limit(demand: DiffusionDemand, layout: SizedPipeline) -> float:
    """The part of its time that a replica may work; 0 or less: not even an idle replica is fast
    enough."""
    slow, of_mean, values = slowness(demand, layout), room(demand), layout.values
    if of_mean is None:
        return busiest(demand, lambda load: latencies(demand, values, load), slow)
    sheet, inputs = of_mean
    limits = sheet(values | floats(inputs) | {"slowness": slow})
    return 0.0 if limits.get("queue_room", 1.0) <= 0 else limits["load_limit"]


def _candidate(
    demand: DiffusionDemand, device: Device, layout: SizedPipeline, filled: int | None
) -> Candidate[SizedPipeline]:
    slow, limit = slowness(demand, layout), load_limit(demand, layout)
    if limit <= 0:
        idle = latencies(demand, layout.values, IDLE)
        return too_slow(demand, device, {name: t * slow for name, t in idle.items()})
    sheet, inputs = needed(demand)
    values = layout.values | floats(inputs) | {"slowness": slow, "load_limit": limit}
    return counted(
        demand,
        device,
        layout,
        sheet(values),
        filled,
        finish=over_sizes(demand, FINISH),
        served=lambda values: _served(demand, values),
    )


def _served(demand: DiffusionDemand, values: dict[str, float]) -> tuple[float, float]:
    """Images of busy replicas over those that are asked for, and the mean latency at the peak."""
    served = (capacity(demand) + served_by(demand))(values)
    return served[rate_name(demand)] / values["sized_rate"], served["request_latency"]
