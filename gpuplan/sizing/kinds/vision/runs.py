"""Training runs of networks that read images: every number of GPUs that divides the batch."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gpuplan.frozen import frozen
from gpuplan.plan.model import Flip, Shortfall
from gpuplan.sizing.ask.demand import VisionRunDemand
from gpuplan.sizing.candidates.choose import Candidate, Merit, nodes_gate
from gpuplan.sizing.candidates.gates import NO_FABRIC, memory_gate, refused, stopped, uneven
from gpuplan.sizing.candidates.resources import WANTED_CORES, localities_of, planned_cores
from gpuplan.sizing.candidates.sheets import room_in
from gpuplan.sizing.evidence.formula import Quantity, canonical
from gpuplan.sizing.evidence.intervals import at_confidence
from gpuplan.sizing.evidence.sheet import Scope, Sheet, floats, sheet
from gpuplan.sizing.hardware.devices import Device, whole
from gpuplan.sizing.hardware.efficiency import unsupported
from gpuplan.sizing.hardware.measured import lacking
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.sizing.memory.margin import USABLE
from gpuplan.sizing.physics.training.division import divisors
from gpuplan.sizing.physics.training.prepared import link
from gpuplan.sizing.physics.vision.classifier import CORES, file_bytes
from gpuplan.sizing.physics.vision.network import measured
from gpuplan.sizing.physics.vision.training import MODE, Looking

MOST_NODES = 64  # the search stops there where the site sets no limit
MOST_MICRO_BATCH = 512  # timm's points have no more
PRECISION, SPLIT, FABRIC, MEMORY, OBJECTIVE, NODES = range(6)
_EPOCHS = sheet("""
    steps: 1 = ceil(epochs * dataset_images / global_batch)  # whole steps, rounded up
""")
_FILES = sheet("""
    file_bytes: B = dataset_bytes / dataset_images  # of a mean image
""")


@frozen
class SizedLooking:
    """A run at its micro-batch, evaluated."""

    run: Looking
    gpus: int
    micro_batch: int
    values: dict[str, float]


def length(demand: VisionRunDemand) -> tuple[Sheet, Scope]:
    """The sheet of `steps`, empty where the manifest gives them, and its inputs."""
    scope: Scope = {"global_batch": demand.global_batch, "dataset_images": demand.dataset_images}
    if demand.steps is not None:
        return Sheet(()), scope | {"steps": demand.steps}
    assert demand.epochs is not None
    return _EPOCHS, scope | {"epochs": demand.epochs}


def files(demand: VisionRunDemand) -> tuple[Sheet, Scope]:
    """The sheet of the bytes of a file, empty where its pixels say them, and its inputs."""
    if demand.dataset.size is None:
        return Sheet(()), {"file_bytes": file_bytes(demand.pixels_mean)}
    return _FILES, {"dataset_bytes": demand.dataset.size, "dataset_images": demand.dataset_images}


def candidates(
    demand: VisionRunDemand, site: Site
) -> list[tuple[GpuOffer, list[Candidate[SizedLooking]]]]:
    """Of every offer, every number of GPUs."""
    return [(offer, list(_tried(demand, site, whole(offer)))) for offer in site.gpus]


def _tried(
    demand: VisionRunDemand, site: Site, device: Device
) -> Iterator[Candidate[SizedLooking]]:
    gpu = device.gpu
    gate = unsupported(gpu, demand.precision)
    gate = gate or (() if measured(gpu, MODE) else lacking("vision"))
    if gate:
        yield refused(demand, device, 1, gate, passed=PRECISION)
        return
    batch, chosen = int(demand.global_batch), demand.overrides.gpu_count
    room, nodes = device.offer.gpus_per_node, device.offer.node_count
    if chosen is not None:
        gpus = int(chosen)
        if batch % gpus:
            gate = (uneven(gpus, batch, "images"),)
            yield refused(demand, device, gpus, gate, passed=SPLIT)
        else:
            yield _candidate(demand, site, device, gpus)
        return
    for count in divisors(batch, room * (MOST_NODES if nodes is None else nodes)):
        if count <= room or count % room == 0:
            yield _candidate(demand, site, device, count)


def run_of(demand: VisionRunDemand, site: Site, device: Device, gpus: int) -> Looking | None:
    """A run on so many GPUs; None where nothing joins their nodes."""
    links = link(device, gpus, site.fabric)
    if links is None:
        return None
    steps, scope = length(demand)
    sizes, inputs = files(demand)
    values = (steps + sizes)(floats(scope | inputs))
    nodes = math.ceil(gpus / device.offer.gpus_per_node)
    of = demand.name
    load: Scope = {
        "global_batch": demand.global_batch,
        "pixels_mean": demand.pixels_mean,
        "steps": Quantity(canonical(values["steps"]), "1", f"quantity:{of}.steps"),
        "file_bytes": Quantity(canonical(values["file_bytes"]), "B", f"quantity:{of}.file_bytes"),
        "gpus": Quantity(float(gpus), "1", "choice: the cheapest run in time"),
        "nodes": Quantity(float(nodes), "1", "choice: nodes of the run"),
        **(links if gpus > 1 else {}),
    }
    if (rate := site.storage_bytes_per_s) is not None:
        load["storage_bytes_per_s"] = rate
    return Looking(
        model=demand.model,
        device=device,
        load=load,
        usable=USABLE,
        confidence=demand.confidence.value,
        anchors=demand.anchors,
    )


def cores_known(device: Device) -> bool:
    return all(where.cores is not None for where in localities_of(device.offer))


def _candidate(
    demand: VisionRunDemand, site: Site, device: Device, gpus: int
) -> Candidate[SizedLooking]:
    run = run_of(demand, site, device, gpus)
    if run is None:
        return refused(demand, device, gpus, NO_FABRIC, passed=FABRIC)
    share, chosen = int(demand.global_batch) // gpus, demand.overrides.micro_batch
    if chosen is not None and share % int(chosen):
        apart = uneven(int(chosen), share, "images", "images at a time")
        return refused(demand, device, gpus, (apart,), passed=SPLIT)
    sizes = divisors(share, MOST_MICRO_BATCH) if chosen is None else (int(chosen),)
    computed = [(size, run.compute(float(size))) for size in sizes]
    fitting = [(n, v) for n, v in computed if v["used_bytes"] <= v["usable_bytes"]]
    if not fitting:
        values = computed[0][1]
        used, usable = values["used_bytes"], values["usable_bytes"]
        gate, flip = memory_gate(device, used, usable, float(round(used / USABLE.value)))
        return refused(demand, device, gpus, gate, passed=MEMORY, flip=flip)
    micro, values = fitting[-1]
    wanted = WANTED_CORES
    if cores_known(device):
        inputs = values | {"usual_cores": WANTED_CORES.value}
        wanted = Quantity(CORES(inputs)["wanted_cores"], "1", "derived: wanted_cores")
    whole_run = run.at(float(micro), planned_cores(demand, device, wanted))
    return _judged(demand, device, SizedLooking(run, gpus, micro, whole_run))


def _judged(
    demand: VisionRunDemand, device: Device, layout: SizedLooking
) -> Candidate[SizedLooking]:
    seconds = layout.values["time_to_finish"]
    candidate = Candidate(
        device=device,
        gpus=layout.gpus,
        replicas=1,
        isolation=demand.isolation,
        hours=seconds / 3600,
        detail=layout,
        merit=Merit(lambda: room_in(demand.limit, seconds)),
    )
    slow = at_confidence(layout.run.interval[0], demand.confidence.value)
    limit, late = demand.limit.first, float(f"{seconds * slow:.4g}")
    if limit is not None and late > limit.value:
        gate = Shortfall(
            resource="time_to_finish", requested=late, used=0.0, capacity=limit.value, unit="s"
        )
        flip = Flip(quantity=limit.field.path, now=limit.value, needed=late, unit="s")
        return stopped(candidate, (gate,), passed=OBJECTIVE, flip=flip)
    gates, flips = nodes_gate(candidate)
    return stopped(candidate, gates, passed=NODES, flip=flips)
