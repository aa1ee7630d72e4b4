"""Training runs: the search over GPU counts, shardings, recomputation and micro-batches."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gpuplan.sizing.ask.demand import TrainingDemand
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.gates import NO_FABRIC, memory_gate, refused, uneven
from gpuplan.sizing.evidence.sheet import Scope
from gpuplan.sizing.hardware.devices import Device, whole
from gpuplan.sizing.hardware.efficiency import unsupported
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.sizing.kinds.training import parallel
from gpuplan.sizing.kinds.training.failures import lost_share, spares
from gpuplan.sizing.kinds.training.judge import (
    FABRIC,
    MEMORY,
    PRECISION,
    SPLIT,
    SizedRun,
    judged,
    method,
)
from gpuplan.sizing.kinds.training.load import run_inputs
from gpuplan.sizing.memory.margin import USABLE
from gpuplan.sizing.physics.training.division import (
    Division,
    Recompute,
    Sharding,
    divisors,
)
from gpuplan.sizing.physics.training.prepared import link, prepare
from gpuplan.sizing.physics.training.run import Run
from gpuplan.sizing.physics.training.speed import unmeasured

MOST_NODES = 64  # the search stops there where the site sets no limit
MOST_MICRO_BATCH = 64
PATIENCE = 2


def candidates(
    demand: TrainingDemand, site: Site
) -> list[tuple[GpuOffer, list[Candidate[SizedRun]]]]:
    """Of every offer, what the engines that may run it make of every number of GPUs."""
    groups = [(offer, list(_tried(demand, site, whole(offer)))) for offer in site.gpus]
    if any(c.feasible and not _unstarted(demand, c) for _, group in groups for c in group):
        groups = [(o, [c for c in group if not _unstarted(demand, c)]) for o, group in groups]
    return groups


def _unstarted(demand: TrainingDemand, candidate: Candidate[SizedRun]) -> bool:
    """Whether its engine has no start for the model."""
    layout = candidate.detail
    return layout is not None and layout.run.prepared.subject.framework in demand.unstarted


def every(demand: TrainingDemand, site: Site, device: Device) -> Iterator[Candidate[SizedRun]]:
    """Of every number of GPUs, however much dearer more of them are."""
    return _tried(demand, site, device, patience=math.inf)


def _tried(
    demand: TrainingDemand, site: Site, device: Device, patience: float = PATIENCE
) -> Iterator[Candidate[SizedRun]]:
    gate = unsupported(device.gpu, demand.precision) or unmeasured(device.gpu)
    if gate:
        yield refused(demand, device, 1, gate, passed=PRECISION)
        return
    if demand.engine.name not in parallel.ENGINES:
        yield from _counts(demand, site, device)
    for engine in parallel.engines(demand, site, device):
        yield from parallel.candidates(demand, site, device, engine, patience)


def _counts(demand: TrainingDemand, site: Site, device: Device) -> Iterator[Candidate[SizedRun]]:
    """Every number of GPUs that divides the global batch, each a rank of data parallelism. All of
    them: more GPUs may store what fewer compute again, so that a dearer number lies between two
    cheaper ones."""
    batch = int(demand.global_batch)
    chosen = demand.overrides.gpu_count
    if chosen is not None:
        gpus = int(chosen)
        if batch % gpus:
            gate = (uneven(gpus, batch, "sequences"),)
            yield refused(demand, device, gpus, gate, passed=SPLIT)
        else:
            yield _candidate(demand, site, device, gpus)
        return
    room = device.offer.gpus_per_node
    nodes = device.offer.node_count
    for count in divisors(batch, room * (MOST_NODES if nodes is None else nodes)):
        if count <= room or count % room == 0:
            yield _candidate(demand, site, device, count)


def _candidate(
    demand: TrainingDemand, site: Site, device: Device, gpus: int
) -> Candidate[SizedRun]:
    links = link(device, gpus, site.fabric, spares(demand, site))
    if links is None:
        return refused(demand, device, gpus, NO_FABRIC, passed=FABRIC)
    layouts = list(_layouts(demand, site, device, gpus, links))
    if not layouts:
        batch, chosen = int(demand.global_batch), demand.overrides.micro_batch
        micro = gpus * (1 if chosen is None else int(chosen))
        missing = uneven(micro, batch, "sequences", "sequences at a time")
        return refused(demand, device, gpus, (missing,), passed=SPLIT)
    fitting = [x for x in layouts if x.values["used_bytes"] <= x.values["usable_bytes"]]
    if not fitting:
        least = min(layouts, key=lambda x: x.values["used_bytes"])
        used, usable = least.values["used_bytes"], least.values["usable_bytes"]
        needed = float(round(used / least.values["usable_fraction"]))
        gate, flip = memory_gate(device, used, usable, needed)
        return refused(demand, device, gpus, gate, passed=MEMORY, flip=flip)
    best = min(fitting, key=lambda x: x.values["step_seconds"])
    return judged(demand, site, device, best)


def _layouts(
    demand: TrainingDemand, site: Site, device: Device, gpus: int, links: Scope
) -> Iterator[SizedRun]:
    """Each sharding and recomputation at its largest micro-batch that fits (or the smallest)."""
    prepared = prepare(
        demand.model,
        device,
        method(demand),
        demand.engine.name,
        many=gpus > 1,
        anchors=demand.anchors,
    )
    lost = lost_share(demand, site, prepared.scope, math.ceil(gpus / device.offer.gpus_per_node))
    prepared = prepared.given(
        run_inputs(demand) | links | {"usable_fraction": USABLE, "lost_share": lost}
    )
    for recompute in _recomputes(demand):
        for sharding in _shardings(demand, gpus):
            run = Run(prepared, Division(gpus, sharding, recompute), demand.confidence.value)
            micro, roomy = _micro_batch(demand, run, gpus)
            if micro:
                yield SizedRun(run, micro, run.at(micro))
            if roomy:
                break


def _shardings(demand: TrainingDemand, gpus: int) -> tuple[Sharding, ...]:
    """One rank has nothing to divide. DeepSpeed keeps 32-bit states, so bf16 states are not
    divided; adapters gain from dividing their frozen weights only. Dividing states costs nothing,
    so that a full run does it at least."""
    if demand.sharding is not None:
        return (demand.sharding,)
    if gpus == 1 or demand.optimizer == "adamw-bf16":
        return ("none",)
    adapter = demand.method in ("lora", "qlora")
    return ("none", "zero3") if adapter else ("zero1", "zero2", "zero3")


def _recomputes(demand: TrainingDemand) -> tuple[Recompute, ...]:
    return ("none", "full") if demand.recompute is None else (demand.recompute,)


def _micro_batch(demand: TrainingDemand, run: Run, gpus: int) -> tuple[int, bool]:
    """The largest micro-batch that fits and reaches the global batch exactly, else the smallest;
    0 where an override reaches it not. Whether it is as large as can be, so that dividing more
    gains nothing."""
    share = int(demand.global_batch) // gpus
    chosen = demand.overrides.micro_batch
    if chosen is not None:
        return (int(chosen) if share % int(chosen) == 0 else 0), False
    sizes = divisors(share, MOST_MICRO_BATCH)
    fit = 0
    for place, size in enumerate(sizes):
        needs = run.needs(size)
        if needs["used_bytes"] > needs["usable_bytes"]:
            return sizes[fit], False
        fit = place
    return sizes[fit], True
