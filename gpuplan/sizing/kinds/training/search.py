"""Training runs: the search over GPU counts, shardings, recomputation and micro-batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpuplan.plan.model import Basis, Flip, Shortfall
from gpuplan.sizing.ask.demand import TrainingDemand
from gpuplan.sizing.candidates.choose import Candidate, Merit, nodes_gate
from gpuplan.sizing.candidates.gates import count_gate, memory_gate, refused, stopped, uneven
from gpuplan.sizing.candidates.sheets import room_in
from gpuplan.sizing.evidence.formula import constant
from gpuplan.sizing.evidence.intervals import Factors, at_confidence
from gpuplan.sizing.evidence.sheet import Scope
from gpuplan.sizing.hardware.devices import Device, whole
from gpuplan.sizing.hardware.efficiency import unsupported
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.sizing.kinds.training.load import run_inputs
from gpuplan.sizing.physics.training.division import (
    Division,
    Method,
    Recompute,
    Sharding,
    divisors,
)
from gpuplan.sizing.physics.training.prepared import link, prepare
from gpuplan.sizing.physics.training.run import Run
from gpuplan.sizing.physics.training.speed import unmeasured

MOST_NODES = 64  # the search stops there where the site sets no limit
MOST_MICRO_BATCH = 64
USABLE = constant(0.85, "1", "the allocator keeps the rest in fragments (rule GP102)")
# Gates in the order in which a candidate meets them.
PRECISION, SPLIT, FABRIC, MEMORY, STORAGE, OBJECTIVE, NODES = range(7)


@dataclass(frozen=True, slots=True)
class SizedRun:
    """A run at its micro-batch, evaluated."""

    run: Run
    micro_batch: int
    values: dict[str, float]

    @property
    def factors(self) -> Factors:
        """The ends of the interval of its step, as factors on it."""
        return self.run.step_interval(self.micro_batch)[0]

    @property
    def basis(self) -> Basis:
        return self.run.step_interval(self.micro_batch)[1]


def method(demand: TrainingDemand) -> Method:
    return Method(
        adapter=demand.method in ("lora", "qlora"),
        quantized=demand.method == "qlora",
        precision=demand.precision,
        optimizer=demand.optimizer,
        lora_rank=demand.lora_rank,
    )


def candidates(demand: TrainingDemand, site: Site) -> list[tuple[GpuOffer, list[Candidate]]]:
    """Every number of GPUs of every offer that divides the global batch."""
    return [(offer, list(_counts(demand, site, whole(offer)))) for offer in site.gpus]


def _counts(demand: TrainingDemand, site: Site, device: Device) -> Iterator[Candidate]:
    gate = unsupported(device.gpu, demand.precision) or unmeasured(device.gpu)
    if gate:
        yield refused(demand, device, 1, gate, passed=PRECISION)
        return
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
    yield from _ascending(demand, site, device, batch)


def _ascending(
    demand: TrainingDemand, site: Site, device: Device, batch: int
) -> Iterator[Candidate]:
    """All of them: more GPUs may store what fewer compute again, so that a dearer count lies
    between two cheaper ones."""
    room = device.offer.gpus_per_node
    nodes = device.offer.node_count
    for count in divisors(batch, room * (MOST_NODES if nodes is None else nodes)):
        if count <= room or count % room == 0:
            yield _candidate(demand, site, device, count)


def _candidate(demand: TrainingDemand, site: Site, device: Device, gpus: int) -> Candidate:
    links = link(device, gpus, site.fabric)
    if links is None:
        missing = count_gate("stated platform.fabric", 1, 0)
        return refused(demand, device, gpus, (missing,), passed=FABRIC)
    layouts = list(_layouts(demand, device, gpus, links))
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
    return _judged(demand, site, device, best)


def _layouts(demand: TrainingDemand, device: Device, gpus: int, links: Scope) -> Iterator[SizedRun]:
    """Each sharding and recomputation at its largest micro-batch that fits (or the smallest)."""
    prepared = prepare(
        demand.model,
        device,
        method(demand),
        demand.engine.name,
        many=gpus > 1,
        anchors=demand.anchors,
    ).given(run_inputs(demand) | links | {"usable_fraction": USABLE})
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


def _judged(demand: TrainingDemand, site: Site, device: Device, layout: SizedRun) -> Candidate:
    """The candidate, or its first gate after memory."""
    seconds = layout.values["time_to_finish"]
    candidate = Candidate(
        device=device,
        gpus=layout.run.division.gpus,
        replicas=1,
        isolation=demand.isolation,
        hours=seconds / 3600,
        detail=layout,
        merit=Merit(lambda: room_in(demand.limit, seconds)),
    )
    for passed, (gate, flip) in (
        (STORAGE, _storage_gate(demand, site, candidate)),
        (OBJECTIVE, _objective_gate(demand, layout)),
        (NODES, nodes_gate(candidate)),
    ):
        if gate:
            return stopped(candidate, gate, passed=passed, flip=flip)
    return candidate


def _storage_gate(
    demand: TrainingDemand, site: Site, candidate: Candidate
) -> tuple[tuple[Shortfall, ...], Flip | None]:
    """The dataset's rate against what the nodes read."""
    read, storage = demand.dataset.rate, site.storage_bytes_per_s
    if read is None or storage is None or read.value <= storage.value * candidate.nodes:
        return (), None
    rate = read.value
    gate = Shortfall(
        resource="storage_bytes_per_s",
        requested=rate,
        used=0.0,
        capacity=storage.value * candidate.nodes,
        unit="B/s",
    )
    needed = rate / candidate.nodes
    return (gate,), Flip(quantity="storage.bandwidth", now=storage.value, needed=needed, unit="B/s")


def _objective_gate(
    demand: TrainingDemand, layout: SizedRun
) -> tuple[tuple[Shortfall, ...], Flip | None]:
    slow = at_confidence(layout.factors, demand.confidence.value)
    seconds = float(f"{layout.values['time_to_finish'] * slow:.4g}")
    limit = demand.limit.first
    if limit is not None and seconds > limit.value:
        gate = Shortfall(
            resource="time_to_finish", requested=seconds, used=0.0, capacity=limit.value, unit="s"
        )
        flip = Flip(quantity=limit.field.path, now=limit.value, needed=seconds, unit="s")
        return (gate,), flip
    tokens, reached = demand.tokens_per_second, layout.values["tokens_per_second"] / slow
    reached = float(f"{reached:.4g}")
    if tokens is not None and reached < tokens.value:
        gate = Shortfall(
            resource="tokens_per_second",
            requested=tokens.value,
            used=0.0,
            capacity=reached,
            unit="1/s",
        )
        flip = Flip(quantity=tokens.field.path, now=tokens.value, needed=reached, unit="1/s")
        return (gate,), flip
    return (), None
