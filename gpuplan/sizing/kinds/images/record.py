"""The chosen layout of an image service or batch, with the evidence of every number."""

from __future__ import annotations

from dataclasses import replace

from gpuplan.plan.model import Alternative, ImageGeneration
from gpuplan.sizing.ask.demand import DiffusionDemand, ImageServiceDemand
from gpuplan.sizing.candidates.assemble import PORT, finish, record_cost, storage
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.interruptions import interruption, restarted
from gpuplan.sizing.candidates.needs import record_start
from gpuplan.sizing.candidates.replicas import SOLVED, memory_budget, metrics, record_replicas
from gpuplan.sizing.candidates.resources import host_resources, models_volume
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.candidates.sheets import MEAN_LOAD
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.data import images as measured
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.evidence.intervals import record_slowness
from gpuplan.sizing.evidence.sheet import Scope, floats
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.batches import batch_volumes
from gpuplan.sizing.kinds.images.load import (
    FINISH,
    capacity,
    needed,
    over_sizes,
    rate_name,
    room,
    served_by,
    solved,
    spread,
)
from gpuplan.sizing.kinds.images.search import (
    SizedPipeline,
    batched,
    large,
    load_limit,
    replica,
    sigma,
)
from gpuplan.sizing.model.checkpoints import pipeline_bytes
from gpuplan.sizing.physics.images.sizes import SIZES

_QUEUED = "solved: each of ten sizes after the wait of an M/G/1 queue, exponential tail"


def recorded(
    settled: Settled[DiffusionDemand],
    site: Site,
    candidate: Candidate[SizedPipeline],
    alternatives: tuple[Alternative, ...],
) -> Sized:
    layout = candidate.evaluated
    ledger, demand = settled.ledger, settled.demand
    scope = _record(settled, candidate)
    scope = _record_replicas(settled, candidate, scope)
    service = demand if isinstance(demand, ImageServiceDemand) else None
    served = served_by(demand) if service else over_sizes(demand, FINISH)
    scope = served.record(ledger, scope)
    capacity(demand).record(ledger, scope)
    if service:
        for name, seconds in solved(demand, floats(scope)).items():
            scope[name] = ledger.given(name, Quantity(seconds, "s", _QUEUED))
        load = {
            "requests_per_second": scope[rate_name(demand)],
            "mean_rate": service.arrivals.mean,
        }
        MEAN_LOAD.record(ledger, scope | load)
    count = int(scope["replicas"])
    cost = record_cost(settled, candidate, scope["replicas"])
    weights = scope["weights_bytes"]
    chosen = demand.overrides.model_storage
    stored = pipeline_bytes(ledger, demand.model)
    models = storage(settled, "model_storage_bytes", stored, chosen, stored)
    record_start(settled, site, candidate.device, stored=stored, weights=weights)
    concurrency = int(scope["concurrency"]) if service else count * layout.batch
    width, height = demand.size
    return finish(
        settled,
        site,
        candidate,
        alternatives,
        cost,
        memory=memory_budget(scope),
        metrics=metrics(demand, scope, layout.pipeline.corrected.interval, rate_name(demand)),
        bound_by="compute",
        resources=host_resources(settled, candidate.device, 1),
        volumes=(
            models_volume(site, models, count),
            *batch_volumes(settled, site, scope, count),
        ),
        interruption=interruption(settled, site, candidate, cost, restarted(scope), loaded=stored),
        image_generation=ImageGeneration(
            width=width,
            height=height,
            steps=int(scope["denoising_steps"]),
            max_num_seqs=layout.batch,
            frames=int(demand.frames.value) if demand.frames else None,
            port=PORT,
        ),
        concurrency=max(1, concurrency),
    )


def _record(settled: Settled[DiffusionDemand], candidate: Candidate[SizedPipeline]) -> Scope:
    """The pipeline at its batch."""
    demand, layout = settled.demand, candidate.evaluated
    without_batch = replace(demand, overrides=replace(demand.overrides, max_num_seqs=None))
    batch = settled.choice(
        "max_num_seqs",
        Quantity(float(layout.batch), "1", "choice: one for the least latency, else the most"),
        demand.overrides.max_num_seqs,
        float(batched(without_batch, candidate.device, layout.pipeline).batch),
    )
    chosen = replica(demand, candidate.device)
    scope = chosen.record(settled.ledger, batch)
    if spread(demand):
        most = large(demand, candidate.device).record(settled.ledger, batch, "large.")
        scope["large_seconds"] = most["batch_seconds"]
        scope["size_sigma"] = settled.ledger.given("size_sigma", sigma(demand))
        scope = SIZES.record(settled.ledger, scope)
    factors, basis = chosen.corrected.interval
    cited = f"90 % interval, {basis}: {measured.SOURCE}"
    slowness = record_slowness(settled.ledger, factors, demand.confidence.value, cited)
    return scope | {"slowness": slowness}


def _record_replicas(
    settled: Settled[DiffusionDemand],
    candidate: Candidate[SizedPipeline],
    scope: Scope,
) -> Scope:
    ledger, demand = settled.ledger, settled.demand
    if isinstance(demand, ImageServiceDemand):
        if (of_mean := room(demand)) is None:
            solved = Quantity(load_limit(demand, candidate.evaluated), "1", SOLVED)
            scope["load_limit"] = solved
        else:
            scope = of_mean[0].record(ledger, scope | of_mean[1])
        if of_mean is None or not of_mean[0].lines:
            scope["load_limit"] = ledger.given("load_limit", scope["load_limit"])
    return record_replicas(settled, candidate, needed(demand), scope)
