"""Audio that is written down: the replicas that a service or a batch takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from gpuplan.frozen import frozen
from gpuplan.plan.times import time_name
from gpuplan.sizing.ask.demand import SpeechDemand, asked
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
from gpuplan.sizing.data.speech import LARGEST_BATCH
from gpuplan.sizing.evidence.intervals import at_confidence
from gpuplan.sizing.evidence.sheet import floats
from gpuplan.sizing.hardware.devices import Device
from gpuplan.sizing.hardware.efficiency import unmeasured, unsupported
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.sizing.kinds.speech.load import CAPACITY, FINISH, needed
from gpuplan.sizing.physics.speech.sharing import between, latencies
from gpuplan.sizing.physics.speech.transcriber import QUANTITY, Transcriber

LATENCY = "request_latency"


@frozen
class LimitedTranscriber:
    """A transcriber with as many windows as have a place, its values there, and the requests per
    second at which one replica meets every objective."""

    transcriber: Transcriber
    places: float
    values: dict[str, float]
    rate: float


def candidates(
    demand: SpeechDemand, site: Site
) -> list[tuple[GpuOffer, list[Candidate[LimitedTranscriber]]]]:
    """Every device of every offer."""
    return on_each(demand, site, _layouts)


def replica(demand: SpeechDemand, device: Device) -> Transcriber:
    """What a device runs; its numbers raise `NotMeasured`."""
    return Transcriber(
        model=demand.model,
        device=device,
        engine=demand.engine.name,
        precision=demand.precision,
        asked={"audio": demand.audio, "output_mean": demand.output_mean},
        utilization=demand.gpu_memory_utilization,
        confidence=demand.confidence.value,
        anchors=demand.anchors(QUANTITY),
    )


def slowness(demand: SpeechDemand, one: Transcriber) -> float:
    return at_confidence(one.interval[0], demand.confidence.value)


def full_rate(values: dict[str, float]) -> float:
    """Requests per second with every place taken, as a batch keeps them."""
    return 1 / (values["windows"] * values["window_seconds"])


def fits(values: dict[str, float]) -> bool:
    return values["used_bytes"] <= values["usable_bytes"]


def most(met: Callable[[float], bool], places: float) -> float:
    """The largest whole number up to `places` that is met; 0 where not even one is."""
    low, high = 0.0, places
    if met(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if met(middle) else (low, middle)
    return low


def _layouts(demand: SpeechDemand, device: Device) -> Iterator[Candidate[LimitedTranscriber]]:
    gate = unsupported(device.gpu, demand.precision) or unmeasured(device.gpu)
    if gate:
        yield refused(demand, device, 1, gate, passed=PRECISION)
        return
    one, chosen = replica(demand, device), demand.overrides.max_num_seqs
    places = float(LARGEST_BATCH) if chosen is None else chosen.value
    room = most(lambda n: fits(one.at(n)), places)
    if room < 1:
        values = one.at(1.0)
        share, used = demand.gpu_memory_utilization.value, values["used_bytes"]
        gate, flip = memory_gate(device, used, values["usable_bytes"], float(round(used / share)))
        yield refused(demand, device, 1, gate, passed=MEMORY, flip=flip)
        return
    slow, values, times = slowness(demand, one), one.at(room), times_of(one, room)
    full = full_rate(values)
    load = busiest(demand, lambda load: times(load * full), slow)
    if load <= 0:
        idle = times(IDLE * full)
        yield too_slow(demand, device, {name: idle[name] * slow for name in asked(demand)})
        return
    layout = LimitedTranscriber(one, room, values, float(f"{load * full:.5g}"))
    yield from and_filled(demand, lambda filled: _candidate(demand, device, layout, filled))


def times_of(one: Transcriber, places: float) -> Callable[[float], dict[str, float]]:
    """The latency of a request, its mean and percentiles by their names, by the requests per second
    of a replica."""
    windows = one.at(1.0)["windows"]
    counts = [2.0**n for n in range(int(math.log2(places)) + 1)]
    alone = between({n: one.at(n)["window_latency"] for n in (*counts, places)})
    requests = max(1, int(places // windows))

    def shared(count: float) -> float:
        """With so many requests at once; one with more windows than places takes turns."""
        return alone(min(count * windows, places)) * max(1.0, windows / places)

    def times(rate: float) -> dict[str, float]:
        seconds = latencies(rate, shared, requests)
        return {time_name(LATENCY, statistic): value for statistic, value in seconds.items()}

    return times


def _candidate(
    demand: SpeechDemand, device: Device, layout: LimitedTranscriber, filled: int | None
) -> Candidate[LimitedTranscriber]:
    sheet, inputs = needed(demand)
    values = layout.values | floats(inputs)
    values |= {"slowness": slowness(demand, layout.transcriber), "limit_rate": layout.rate}
    return counted(
        demand,
        device,
        layout,
        sheet(values),
        filled,
        finish=FINISH,
        served=lambda values: _served(layout, values),
    )


def _served(layout: LimitedTranscriber, values: dict[str, float]) -> tuple[float, float]:
    """Requests at the limit over those that are asked for, and the mean latency at the peak."""
    times = times_of(layout.transcriber, layout.places)
    served = CAPACITY(dict(values))["requests_per_second"]
    return served / values["sized_rate"], times(values["sized_rate"] / values["replicas"])[LATENCY]
