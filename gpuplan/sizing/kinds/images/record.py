"""The chosen layout of an image service or batch, with the evidence of every number."""

from __future__ import annotations

from gpuplan.plan.model import Alternative, ImageGeneration, MemoryBudget, Metric
from gpuplan.sizing.ask.demand import DiffusionDemand, ImageServiceDemand
from gpuplan.sizing.candidates.assemble import PORT, finish, record_cost, storage
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.needs import record_start
from gpuplan.sizing.candidates.resources import host_resources, models_volume
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.candidates.sheets import MEAN_LOAD
from gpuplan.sizing.candidates.sized import Sized, Unforced
from gpuplan.sizing.data import images as measured
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.evidence.intervals import inverse, metric, record_slowness
from gpuplan.sizing.evidence.sheet import Scope
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.images.load import CAPACITY, FINISH, SERVED, needed, room
from gpuplan.sizing.kinds.images.search import SizedPipeline, replica
from gpuplan.sizing.physics.images.correction import Correction


def draw(
    settled: Settled[DiffusionDemand],
    site: Site,
    candidate: Candidate,
    alternatives: tuple[Alternative, ...],
    free: Unforced,  # noqa: ARG001 - one signature for every kind
) -> Sized:
    layout = candidate.detail
    assert isinstance(layout, SizedPipeline)
    ledger, demand = settled.ledger, settled.demand
    scope = _record(settled, candidate, layout)
    scope = _record_replicas(settled, scope)
    service = demand if isinstance(demand, ImageServiceDemand) else None
    scope = (SERVED if service else FINISH).record(ledger, scope)
    CAPACITY.record(ledger, scope)
    if service:
        load = {
            "requests_per_second": scope["images_per_second"],
            "mean_rate": service.arrivals.mean,
        }
        MEAN_LOAD.record(ledger, scope | load)
    count = int(scope["replicas"])
    cost = record_cost(settled, candidate, scope["replicas"])
    weights = scope["weights_bytes"]
    chosen = demand.overrides.model_storage
    models = storage(settled, "model_storage_bytes", weights, chosen, weights)
    record_start(settled, site, candidate.device, stored=weights, weights=weights)
    concurrency = int(scope["concurrency"]) if service else count * layout.batch
    width, height = demand.size
    return finish(
        settled,
        site,
        candidate,
        alternatives,
        cost,
        memory=MemoryBudget(
            weights_bytes=int(weights),
            activations_bytes=int(scope["activations_bytes"]),
            overhead_bytes=int(scope["overhead_bytes"]),
            capacity_bytes=int(scope["memory_bytes"]),
            usable_bytes=int(scope["usable_bytes"]),
        ),
        metrics=_metrics(demand, layout.pipeline.corrected, scope),
        bound_by="compute",
        resources=host_resources(settled, candidate.device, 1),
        volumes=(models_volume(site, models, count),),
        image_generation=ImageGeneration(
            width=width,
            height=height,
            steps=int(scope["denoising_steps"]),
            max_batch_size=layout.batch,
            port=PORT,
        ),
        concurrency=max(1, concurrency),
    )


def _record(
    settled: Settled[DiffusionDemand], candidate: Candidate, layout: SizedPipeline
) -> Scope:
    """The pipeline at its batch."""
    demand = settled.demand
    batch = settled.choice(
        "batch",
        Quantity(float(layout.batch), "1", "choice: one for the least latency, else the most"),
        demand.overrides.max_num_seqs,
        None,
    )
    chosen = replica(demand, candidate.device)
    scope = chosen.record(settled.ledger, batch)
    factors, basis = chosen.corrected.interval
    cited = f"90 % interval, {basis}: {measured.SOURCE}"
    slowness = record_slowness(settled.ledger, factors, demand.confidence.value, cited)
    return scope | {"slowness": slowness}


def _record_replicas(settled: Settled[DiffusionDemand], scope: Scope) -> Scope:
    ledger, demand = settled.ledger, settled.demand
    if isinstance(demand, ImageServiceDemand):
        limit, inputs = room(demand)
        scope = limit.record(ledger, scope | inputs)
        if not limit.lines:
            scope["load_limit"] = ledger.given("load_limit", scope["load_limit"])
    sheet, inputs = needed(demand)
    scope = sheet.record(ledger, scope | inputs)
    chosen = demand.overrides.replicas
    scope["replicas"] = settled.settle("replicas", scope["replicas"], chosen)
    return scope


def _metrics(demand: DiffusionDemand, corrected: Correction, scope: Scope) -> tuple[Metric, ...]:
    factors, basis = corrected.interval
    name, objective, wanted = "time_to_finish", scope.get("time_limit"), None
    if isinstance(demand, ImageServiceDemand):
        name, objective = "request_latency", demand.request_latency
        wanted = scope["sized_rate"].value
    limit = None if objective is None else objective.value
    return (
        metric(name, "s", scope[name].value, factors=factors, basis=basis, limit=limit),
        metric(
            "images_per_second",
            "1/s",
            scope["images_per_second"].value,
            factors=inverse(factors),
            basis=basis,
            limit=wanted,
            sense="at_least",
        ),
    )
