"""Audio that is written down: the replicas that a service or a batch takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpuplan.sizing.ask.demand import SpeechDemand, asked
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.gates import memory_gate, refused
from gpuplan.sizing.candidates.replicas import (
    IDLE,
    MEMORY,
    MOST_LOAD,
    PRECISION,
    and_filled,
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
from gpuplan.sizing.physics.speech.sharing import between, mean_latency
from gpuplan.sizing.physics.speech.transcriber import QUANTITY, Transcriber

LATENCY = "request_latency"


@dataclass(frozen=True, slots=True)
class LimitedTranscriber:
    """A transcriber with as many windows as have a place, its values there, and the requests per
    second at which one replica meets every objective."""

    transcriber: Transcriber
    places: float
    values: dict[str, float]
    rate: float

    @property
    def window_seconds(self) -> float:
        return self.values["window_seconds"]


def candidates(demand: SpeechDemand, site: Site) -> list[tuple[GpuOffer, list[Candidate]]]:
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


def _layouts(demand: SpeechDemand, device: Device) -> Iterator[Candidate]:
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
    slow, objective = slowness(demand, one), asked(demand).get(LATENCY)
    values, wait = one.at(room), latency_of(one, room)
    busiest = MOST_LOAD / (values["windows"] * values["window_seconds"])
    if objective is not None and wait(IDLE * busiest) * slow > objective.value:
        yield too_slow(demand, device, {LATENCY: wait(IDLE * busiest) * slow})
        return
    rate = busiest if objective is None else highest(wait, busiest, objective.value / slow)
    layout = LimitedTranscriber(one, room, values, rate)
    yield from and_filled(demand, lambda filled: _candidate(demand, device, layout, filled))


def latency_of(one: Transcriber, places: float) -> Callable[[float], float]:
    """The mean latency of a request by the requests per second of a replica."""
    windows = one.at(1.0)["windows"]
    counts = [2.0**n for n in range(int(math.log2(places)) + 1)]
    alone = between({n: one.at(n)["window_latency"] for n in (*counts, places)})
    requests = max(1, int(places // windows))

    def shared(count: float) -> float:
        """With so many requests at once; one with more windows than places takes turns."""
        return alone(min(count * windows, places)) * max(1.0, windows / places)

    return lambda rate: mean_latency(rate, shared, requests)


def highest(wait: Callable[[float], float], busiest: float, limit: float) -> float:
    """The most requests per second whose mean latency is within `limit`."""
    low, high = 0.0, busiest
    if wait(high) <= limit:
        return high
    while high - low > 1e-6 * busiest:
        middle = (low + high) / 2
        low, high = (middle, high) if wait(middle) <= limit else (low, middle)
    return float(f"{low:.5g}")


def _candidate(
    demand: SpeechDemand, device: Device, layout: LimitedTranscriber, filled: int | None
) -> Candidate:
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
    wait = latency_of(layout.transcriber, layout.places)
    served = CAPACITY(dict(values))["requests_per_second"]
    return served / values["sized_rate"], wait(values["sized_rate"] / values["replicas"])
