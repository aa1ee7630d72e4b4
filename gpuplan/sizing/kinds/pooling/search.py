"""Embedding models and rerankers: the replicas that a service or a batch takes."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.catalog.model import Gpu
from gpuplan.frozen import frozen
from gpuplan.plan.model import Shortfall
from gpuplan.sizing.ask.demand import PoolingDemand
from gpuplan.sizing.candidates import batching
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.gates import refused
from gpuplan.sizing.candidates.replicas import PRECISION, on_each
from gpuplan.sizing.data.pooling import TEI_CAPABILITIES, TEI_IMAGE
from gpuplan.sizing.evidence.intervals import at_confidence
from gpuplan.sizing.hardware.devices import Device
from gpuplan.sizing.hardware.efficiency import unmeasured, unsupported
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.sizing.kinds.pooling.load import FINISH, times
from gpuplan.sizing.physics.pooling.correction import QUANTITY
from gpuplan.sizing.physics.pooling.reader import Reader


@frozen
class SizedReader:
    """A reader with the tokens of its steps, evaluated."""

    reader: Reader
    values: dict[str, float]


def candidates(
    demand: PoolingDemand, site: Site
) -> list[tuple[GpuOffer, list[Candidate[SizedReader]]]]:
    """Every device of every offer."""
    return on_each(demand, site, _layouts)


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
    capability = float(gpu.compute_capability or 0)
    if capability in TEI_CAPABILITIES:
        return ()
    resource = f"compute capability of {TEI_IMAGE}"
    nearest = min(TEI_CAPABILITIES, key=lambda known: abs(known - capability))
    return (
        Shortfall(resource=resource, requested=nearest, used=0.0, capacity=capability, unit="1"),
    )


def _layouts(demand: PoolingDemand, device: Device) -> Iterator[Candidate[SizedReader]]:
    gpu = device.gpu
    gate = no_program(demand.engine.name, gpu)
    gate = gate or unsupported(gpu, demand.precision, demand.engine.name) or unmeasured(gpu)
    if gate:
        yield refused(demand, device, 1, gate, passed=PRECISION)
        return
    layout = sized(demand, device)
    slow = slowness(demand, layout)
    yield from batching.candidates(
        demand, device, layout, slowness=slow, times=times(demand), finish=FINISH
    )


def sized(demand: PoolingDemand, device: Device) -> SizedReader:
    reader, chosen = replica(demand, device), demand.overrides.max_num_batched_tokens
    return SizedReader(reader, reader.at(None if chosen is None else chosen.value))


def slowness(demand: PoolingDemand, layout: SizedReader) -> float:
    return at_confidence(layout.reader.interval[0], demand.confidence.value)


def load_limit(demand: PoolingDemand, layout: SizedReader) -> float:
    """The part of its time that a replica may work; 0: not even an idle one is fast enough."""
    slow = slowness(demand, layout)
    return batching.load_limit(demand, times(demand), layout.values, slow)
