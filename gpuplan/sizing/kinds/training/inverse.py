"""The inverse questions of a run: when the GPUs that are there end it, how many end it in time, and
how far a budget goes. Each kind of node is asked alone, without the limits of the manifest."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal

from gpuplan.plan.capacity import Run, RunPurpose, Runs
from gpuplan.sizing.ask.demand import TrainingDemand
from gpuplan.sizing.ask.parts import TimeLimit
from gpuplan.sizing.candidates.choose import Candidate, furthest
from gpuplan.sizing.evidence.formula import canonical
from gpuplan.sizing.evidence.intervals import at_confidence, estimate
from gpuplan.sizing.hardware.devices import whole
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.sizing.kinds.training import failures
from gpuplan.sizing.kinds.training.judge import UTILIZED, SizedRun, engine_of, parallelism
from gpuplan.sizing.kinds.training.search import every

CENT = Decimal("0.01")


def runs(
    demand: TrainingDemand, site: Site, nodes: int | None, budget: float | None
) -> tuple[Runs, ...]:
    """Of each kind of node, the soonest to end it first. `nodes` are asked where they may be bought
    without limit, `budget` is in USD."""
    answers = [_on(demand, site, offer, nodes, budget) for offer in _offers(demand, site)]
    return tuple(sorted(answers, key=lambda r: (_soonest(r), r.gpu, r.gpus_per_node)))


def frontier(demand: TrainingDemand, site: Site) -> tuple[Runs, ...]:
    """The runs on any nodes that may be used that no other beats in time and money together, the
    soonest first; where nothing has a price, in time and GPUs."""
    feasible = [c for r in runs_on(demand, site) for c in r if c.feasible]
    priced = [c for c in feasible if c.usd_per_hour is not None] or feasible
    kept, least = list[Candidate[SizedRun]](), math.inf
    for candidate in sorted(priced, key=lambda c: (assured(demand, c), _spent(c))):
        if _spent(candidate) < least:
            least = _spent(candidate)
            kept.append(candidate)
    return tuple(
        Runs(
            gpu=c.device.gpu.identifier,
            node_type=_name(c.device.offer),
            nodes=None,
            gpus_per_node=c.device.offer.gpus_per_node,
            fabric=site.fabric is not None,
            assumed=False,
            confidence=demand.confidence.value,
            runs=(_run(demand, "frontier", c, None),),
        )
        for c in kept
    )


def runs_on(demand: TrainingDemand, site: Site) -> list[list[Candidate[SizedRun]]]:
    """Of each kind of node, all numbers of GPUs that there are, or of nodes that may be bought."""
    by_offer = []
    for offer in _offers(demand, site):
        most = math.inf if offer.node_count is None else offer.node_count
        by_offer.append([c for c in unlimited(demand, site, offer) if _held(c) <= most])
    return by_offer


def _spent(candidate: Candidate[SizedRun]) -> float:
    hourly = candidate.usd_per_hour
    return _seconds(candidate) * float(candidate.gpus if hourly is None else hourly)


def _offers(demand: TrainingDemand, site: Site) -> list[GpuOffer]:
    forced = demand.overrides.gpu
    offers = [o for o in site.gpus if demand.preemptible or not o.spot]
    allowed = [o for o in offers if forced in (None, o.gpu.identifier)]
    return [o for o in allowed if not any(_larger(other, o) for other in allowed)]


def _name(offer: GpuOffer) -> str | None:
    if offer.shape is None:
        return offer.node_type
    return f"{offer.shape.name}, spare capacity" if offer.spot else offer.shape.name


def _larger(other: GpuOffer, offer: GpuOffer) -> bool:
    """Whether the same GPUs are bought in larger nodes, which a run takes that spans several."""
    bought = other.shape is not None and offer.shape is not None
    alike = bought and other.gpu is offer.gpu and other.spot == offer.spot
    return alike and other.gpus_per_node > offer.gpus_per_node


def _soonest(item: Runs) -> float:
    return min((run.assured for run in item.runs), default=math.inf)


def _on(
    demand: TrainingDemand, site: Site, offer: GpuOffer, nodes: int | None, budget: float | None
) -> Runs:
    most = nodes if offer.node_count is None else offer.node_count
    limit = demand.limit.first
    candidates = unlimited(demand, site, offer)
    holding = [c for c in candidates if c.feasible]
    here = [c for c in holding if most is None or _held(c) <= most]
    picked: list[tuple[RunPurpose, Candidate[SizedRun] | None]] = [
        ("fastest", min(here, key=_seconds, default=None) if most is not None else None),
        ("cheapest", min(holding, key=lambda c: (_spent(c), _seconds(c)), default=None)),
    ]
    if limit is not None:
        in_time = [c for c in holding if assured(demand, c) <= limit.value]
        soonest = None if in_time else min(holding, key=_seconds, default=None)
        picked.insert(1, ("in_time", min(in_time, key=lambda c: c.gpus, default=None)))
        picked.insert(2, ("soonest", soonest))
    stopped = None if here else furthest(candidates)
    return Runs(
        gpu=offer.gpu.identifier,
        node_type=_name(offer),
        nodes=most,
        gpus_per_node=offer.gpus_per_node,
        fabric=site.fabric is not None,
        assumed=offer.node_count is None,
        confidence=demand.confidence.value,
        runs=tuple(_run(demand, p, c, budget) for p, c in picked if c is not None),
        shortfalls=stopped.shortfalls if stopped else (),
    )


def unlimited(demand: TrainingDemand, site: Site, offer: GpuOffer) -> list[Candidate[SizedRun]]:
    """Every number of GPUs of its type, whatever the time and the nodes that there are."""
    free = replace(demand, limit=TimeLimit(), tokens_per_second=None)
    more, joined = whole(replace(offer, node_count=None)), offer.nvlink_nodes
    candidates = list(every(free, site, more))
    if offer.node_count is None or not offer.node_count <= joined > 1:
        return candidates
    alone = whole(replace(offer, node_count=joined))  # its nodes are of one NVLink domain
    near = [replace(c, device=more) for c in every(free, site, alone) if _held(c) <= joined]
    return near + [c for c in candidates if _held(c) > joined]


def _held(candidate: Candidate[SizedRun]) -> int:
    """Nodes of the run, and those that stand by."""
    return candidate.nodes + candidate.spares


def _seconds(candidate: Candidate[SizedRun]) -> float:
    return candidate.evaluated.values["time_to_finish"]


def assured(demand: TrainingDemand, candidate: Candidate[SizedRun]) -> float:
    """Seconds that the run does not exceed with the wanted confidence."""
    layout = candidate.evaluated
    return _seconds(candidate) * at_confidence(layout.factors, demand.confidence.value)


def nodes_in_time(demand: TrainingDemand, site: Site, offer: GpuOffer) -> int | None:
    """The fewest nodes that end the run in time; None where none do, or it may take any time."""
    return None if demand.limit.first is None else fewest_nodes(demand, site, offer)


def fewest_nodes(demand: TrainingDemand, site: Site, offer: GpuOffer) -> int | None:
    """The fewest nodes, without spare ones, that hold the run and end it in time."""
    limit = demand.limit.first
    holding = [c for c in unlimited(demand, site, offer) if c.feasible]
    in_time = [c.nodes for c in holding if limit is None or assured(demand, c) <= limit.value]
    return min(in_time, default=None)


def _run(
    demand: TrainingDemand,
    purpose: RunPurpose,
    candidate: Candidate[SizedRun],
    budget: float | None,
) -> Run:
    layout = candidate.evaluated
    division, values = layout.run.division, layout.values
    seconds, hourly = _seconds(candidate), candidate.usd_per_hour
    usd = None if hourly is None else (hourly * Decimal(repr(seconds)) / 3600).quantize(CENT)
    tokens = values["steps"] * values["global_batch"] * values["sequence_length"]
    reached = None
    if budget is not None and usd:
        reached = canonical(min(1.0, budget / float(usd)) * tokens)
    utilized = UTILIZED({"routed_parameters": 0.0, **values})
    kept = failures.ADAPTER if demand.method in ("lora", "qlora") else failures.CHECKPOINT
    node_watts = candidate.device.offer.node_watts
    return Run(
        purpose=purpose,
        gpus=candidate.gpus,
        nodes=candidate.nodes,
        engine=engine_of(demand, layout).name,
        parallelism=parallelism(division),
        sharding=division.sharding,
        seconds=estimate(seconds, layout.factors, layout.basis),
        assured=canonical(assured(demand, candidate)),
        tokens=canonical(tokens),
        tokens_in_budget=reached,
        usd_per_hour=hourly,
        usd=usd,
        gpu_watts=candidate.gpus * candidate.device.gpu.watts.value,
        node_watts=None if node_watts is None else candidate.nodes * node_watts.value,
        utilization=canonical(utilized["model_flop_utilization"]),
        lost_share=canonical(values["lost_share"]),
        checkpoint_bytes=kept(dict(values))["checkpoint_bytes"],
    )
