"""Models that read images: the replicas that a service or a batch takes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from gpuplan.frozen import frozen
from gpuplan.sizing.ask.demand import VisionBatchDemand, VisionDemand
from gpuplan.sizing.candidates import batching
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.gates import refused
from gpuplan.sizing.candidates.replicas import PRECISION, on_each
from gpuplan.sizing.candidates.resources import WANTED_CORES, localities_of, planned_cores
from gpuplan.sizing.data.vision_steps import LARGEST_BATCH, MODE
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.evidence.intervals import at_confidence
from gpuplan.sizing.evidence.sheet import Scope
from gpuplan.sizing.hardware.devices import Device
from gpuplan.sizing.hardware.efficiency import unsupported
from gpuplan.sizing.hardware.measured import lacking
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.sizing.kinds.vision.load import FINISH, times
from gpuplan.sizing.physics.vision.classifier import CORES, Classifier
from gpuplan.sizing.physics.vision.network import measured


@frozen
class SizedClassifier:
    """A classifier with the images of its steps, evaluated."""

    classifier: Classifier
    batch: float
    values: dict[str, float]


def candidates(
    demand: VisionDemand, site: Site
) -> list[tuple[GpuOffer, list[Candidate[SizedClassifier]]]]:
    """Every device of every offer."""
    return on_each(demand, site, partial(_layouts, site))


def replica(demand: VisionDemand, device: Device, site: Site) -> Classifier:
    """What a device runs."""
    load: Scope = {"images": demand.images, "pixels_mean": demand.pixels_mean}
    rate = site.storage_bytes_per_s
    if isinstance(demand, VisionBatchDemand) and rate is not None:
        readers = device.offer.gpus_per_node * device.per_gpu
        load["readers"] = Quantity(float(readers), "1", "choice: replicas that fill a node")
        load["storage_bytes_per_s"] = rate
    return Classifier(
        model=demand.model,
        device=device,
        engine=demand.engine.name,
        load=load,
        utilization=demand.gpu_memory_utilization,
        confidence=demand.confidence.value,
        anchors=demand.anchors,
    )


def usual_cores(one: Classifier) -> bool:
    """Whether it gets as many cores as any workload: more would not help, or what the host has is
    not known."""
    return one.one_process or any(where.cores is None for where in localities_of(one.device.offer))


def sized(demand: VisionDemand, device: Device, site: Site) -> SizedClassifier:
    """At the largest steps that fit, with the cores that it gets."""
    one, chosen = replica(demand, device, site), demand.overrides.max_num_seqs
    batch = float(LARGEST_BATCH) if chosen is None else chosen.value
    values = one.steps(batch)
    while chosen is None and batch > 1 and values["used_bytes"] > values["usable_bytes"]:
        batch /= 2
        values = one.steps(batch)
    wanted = WANTED_CORES
    if not usual_cores(one):
        wanted_cores = CORES(values | {"usual_cores": WANTED_CORES.value})["wanted_cores"]
        wanted = Quantity(wanted_cores, "1", "derived: wanted_cores")
    cores = 1.0 if one.one_process else planned_cores(demand, device, wanted)
    return SizedClassifier(one, batch, one.at(batch, cores))


def _layouts(
    site: Site, demand: VisionDemand, device: Device
) -> Iterator[Candidate[SizedClassifier]]:
    gpu = device.gpu
    gate = unsupported(gpu, demand.precision)
    gate = gate or (() if measured(gpu, MODE) else lacking("vision"))
    if gate:
        yield refused(demand, device, 1, gate, passed=PRECISION)
        return
    layout = sized(demand, device, site)
    slow = slowness(demand, layout)
    yield from batching.candidates(
        demand, device, layout, slowness=slow, times=times(demand), finish=FINISH
    )


def slowness(demand: VisionDemand, layout: SizedClassifier) -> float:
    return at_confidence(layout.classifier.interval[0], demand.confidence.value)


def load_limit(demand: VisionDemand, layout: SizedClassifier) -> float:
    """The part of its time that a replica may work; 0: not even an idle one is fast enough."""
    slow = slowness(demand, layout)
    return batching.load_limit(demand, times(demand), layout.values, slow)
