"""Training runs: the search over GPU counts, shardings, recomputation and micro-batches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from gpuplan.models.model import Transformer
from gpuplan.plan.model import Basis, Flip, Shortfall
from gpuplan.sizing.ask.demand import Demand
from gpuplan.sizing.ask.limits import time_field, time_limit, weighed_hours
from gpuplan.sizing.candidates.choose import Candidate, nodes_gate
from gpuplan.sizing.candidates.gates import count_gate, memory_gate, refused, stopped, uneven
from gpuplan.sizing.data import training as fitted
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.intervals import Factors, at_confidence
from gpuplan.sizing.hardware.devices import Device, whole
from gpuplan.sizing.hardware.efficiency import unsupported
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.sizing.memory.serving import confidence_memory
from gpuplan.sizing.physics.training.run import (
    Division,
    Method,
    Prepared,
    Recompute,
    Run,
    Scope,
    Sharding,
    divisors,
    link,
    training_scope,
)

MOST_NODES = 64  # the search stops there where the site sets no limit
MOST_MICRO_BATCH = 64
PATIENCE = 2
USABLE = constant(0.85, "1", "the allocator keeps the rest in fragments (rule GP102)")
# Gates in the order in which a candidate meets them.
PRECISION, SPLIT, FABRIC, MEMORY, STORAGE, OBJECTIVE, NODES = range(7)


@dataclass(frozen=True, slots=True)
class Layout:
    """A run at its micro-batch, evaluated."""

    run: Run
    micro_batch: int
    values: dict[str, float]
    basis: Basis
    factors: Factors


def method(demand: Demand) -> Method:
    rank = demand.given.get("training.lora.rank")
    return Method(
        adapter=demand.method in ("lora", "qlora"),
        quantized=demand.method == "qlora",
        precision=demand.precision,
        optimizer=demand.optimizer or "adamw",
        lora_rank=rank,
    )


def steps(demand: Demand) -> float:
    """Optimizer steps; the manifest gives them, or tokens, or epochs of a dataset."""
    given = demand.given
    if (written := given.get("training.steps")) is not None:
        return written.value
    tokens = demand.value("training.tokens")
    if tokens is None:
        tokens = given["training.epochs"].value * given["dataset.tokens"].value
    return float(math.ceil(tokens / step_tokens(demand)))


def step_tokens(demand: Demand) -> float:
    return (
        demand.given["training.global_batch"].value * demand.given["training.sequence_length"].value
    )


def candidates(demand: Demand, site: Site) -> list[tuple[GpuOffer, list[Candidate]]]:
    """Every number of GPUs of every offer that divides the global batch."""
    return [(offer, list(_counts(demand, site, whole(offer)))) for offer in site.gpus]


def _counts(demand: Demand, site: Site, device: Device) -> Iterator[Candidate]:
    gate = unsupported(device.gpu, demand.precision)
    if gate:
        yield refused(demand, device, 1, gate, passed=PRECISION)
        return
    batch = int(demand.given["training.global_batch"].value)
    chosen = demand.overrides.gpu_count
    if chosen is not None:
        if batch % chosen:
            gate = (uneven(chosen, batch, "sequences"),)
            yield refused(demand, device, chosen, gate, passed=SPLIT)
        else:
            yield _candidate(demand, site, device, chosen)
        return
    yield from _ascending(demand, site, device, batch)


def _ascending(demand: Demand, site: Site, device: Device, batch: int) -> Iterator[Candidate]:
    """Until two more GPU counts in a row made a feasible run no cheaper, on nodes of its own or on
    shared ones."""
    room = device.offer.gpus_per_node
    most = room * (device.offer.node_count or MOST_NODES)
    least, worse = [math.inf, math.inf], 0
    for count in divisors(batch, most):
        if count > room and count % room:
            continue
        candidate = _candidate(demand, site, device, count)
        yield candidate
        if candidate.feasible:
            paid = (candidate.paid_gpus, candidate.taken_gpus)
            costs = [float(gpus) * candidate.hours for gpus in paid]
            cheaper = any(cost < best for cost, best in zip(costs, least, strict=True))
            worse = 0 if cheaper else worse + 1
            least = [min(pair) for pair in zip(costs, least, strict=True)]
        if worse == PATIENCE:
            return


def _candidate(demand: Demand, site: Site, device: Device, gpus: int) -> Candidate:
    links = link(device, gpus, site.fabric)
    if links is None:
        missing = count_gate("stated platform.fabric", 1, 0)
        return refused(demand, device, gpus, (missing,), passed=FABRIC)
    layouts = list(_layouts(demand, device, gpus, links))
    if not layouts:
        batch = int(demand.given["training.global_batch"].value)
        micro = gpus * (demand.overrides.micro_batch or 1)
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


def _layouts(demand: Demand, device: Device, gpus: int, links: Scope) -> Iterator[Layout]:
    """Each sharding and recomputation at its largest micro-batch that fits (or the smallest)."""
    assert isinstance(demand.model, Transformer)
    how = method(demand)
    scope, known = training_scope(demand.model, device, how, demand.engine.name, many=gpus > 1)
    basis, factors = _interval(known, how, parallel=gpus > 1)
    scope |= run_inputs(demand) | links | {"usable_fraction": USABLE}
    scope |= confidence_memory(
        fitted.FRAMEWORK_OF.get(demand.engine.name, "bare"), demand.given["slo.confidence"].value
    )
    prepared = Prepared(demand.model, how, scope)
    for recompute in _recomputes(demand):
        for sharding in _shardings(demand, gpus):
            run = Run(prepared, Division(gpus, sharding, recompute))
            micro, roomy = _micro_batch(demand, run, gpus)
            if micro:
                yield Layout(run, micro, run.at(micro), basis, factors)
            if roomy:
                break


def _interval(known: Basis, how: Method, *, parallel: bool) -> tuple[Basis, Factors]:
    if parallel:
        name = "parallel adapters" if how.adapter else "parallel"
        return "extrapolated", fitted.INTERVALS[name]
    return known, fitted.INTERVALS[known]


def run_inputs(demand: Demand) -> Scope:
    given = demand.given
    return {
        "sequence_length": given["training.sequence_length"],
        "global_batch": given["training.global_batch"],
        "steps": Quantity(steps(demand), "1", "quantity:steps"),
    }


def _shardings(demand: Demand, gpus: int) -> tuple[Sharding, ...]:
    """One rank has nothing to divide. DeepSpeed keeps 32-bit states, so bf16 states are not
    divided; adapters gain from dividing their frozen weights only. Dividing states costs nothing,
    so that a full run does it at least."""
    if demand.sharding is not None:
        return (demand.sharding,)
    if gpus == 1 or demand.optimizer == "adamw-bf16":
        return ("none",)
    adapter = demand.method in ("lora", "qlora")
    return ("none", "zero3") if adapter else ("zero1", "zero2", "zero3")


def _recomputes(demand: Demand) -> tuple[Recompute, ...]:
    return ("none", "full") if demand.recompute is None else (demand.recompute,)


def _micro_batch(demand: Demand, run: Run, gpus: int) -> tuple[int, bool]:
    """The largest micro-batch that fits and reaches the global batch exactly, else the smallest;
    0 where an override reaches it not. Whether it is as large as can be, so that dividing more
    gains nothing."""
    share = int(demand.given["training.global_batch"].value) // gpus
    chosen = demand.overrides.micro_batch
    if chosen is not None:
        return (chosen if share % chosen == 0 else 0), False
    sizes = divisors(share, MOST_MICRO_BATCH)
    fit = 0
    for place, size in enumerate(sizes):
        needs = run.needs(size)
        if needs["used_bytes"] > needs["usable_bytes"]:
            return sizes[fit], False
        fit = place
    return sizes[fit], True


def _judged(demand: Demand, site: Site, device: Device, layout: Layout) -> Candidate:
    """The candidate, or its first gate after memory."""
    seconds = layout.values["time_to_finish"]
    candidate = Candidate(
        device=device,
        gpus=layout.run.division.gpus,
        replicas=1,
        isolation=demand.isolation,
        hours=weighed_hours(demand, seconds),
        detail=layout,
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
    demand: Demand, site: Site, candidate: Candidate
) -> tuple[tuple[Shortfall, ...], Flip | None]:
    """The dataset's rate against what the nodes read."""
    rate, storage = demand.value("dataset.rate"), site.storage_bytes_per_s
    if rate is None or storage is None or rate <= storage.value * candidate.nodes:
        return (), None
    gate = Shortfall(
        resource="storage_bytes_per_s",
        requested=rate,
        used=0.0,
        capacity=storage.value * candidate.nodes,
        unit="B/s",
    )
    needed = rate / candidate.nodes
    return (gate,), Flip(quantity="storage.bandwidth", now=storage.value, needed=needed, unit="B/s")


def _objective_gate(demand: Demand, layout: Layout) -> tuple[tuple[Shortfall, ...], Flip | None]:
    slow = at_confidence(layout.factors, demand.given["slo.confidence"].value)
    seconds = float(f"{layout.values['time_to_finish'] * slow:.4g}")
    within = time_limit(demand)
    if within is not None and seconds > within:
        gate = Shortfall(
            resource="time_to_finish", requested=seconds, used=0.0, capacity=within, unit="s"
        )
        return (gate,), Flip(quantity=time_field(demand), now=within, needed=seconds, unit="s")
    tokens = demand.value("slo.tokens_per_second")
    reached = float(f"{layout.values['tokens_per_second'] / slow:.4g}")
    if tokens is not None and reached < tokens:
        gate = Shortfall(
            resource="tokens_per_second", requested=tokens, used=0.0, capacity=reached, unit="1/s"
        )
        return (gate,), Flip(
            quantity="slo.tokens_per_second", now=tokens, needed=reached, unit="1/s"
        )
    return (), None
