"""Services and batches that read texts, images or audio: what the record of each ends with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpuplan.plan.model import Alternative, Basis, HostResources, Metric, Serving
from gpuplan.sizing.candidates.assemble import PORT, finish, record_cost, storage
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.interruptions import interruption, restarted
from gpuplan.sizing.candidates.needs import record_start
from gpuplan.sizing.candidates.replicas import memory_budget
from gpuplan.sizing.candidates.resources import host_resources, models_volume
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.evidence.formula import Ledger, Quantity
from gpuplan.sizing.evidence.intervals import Factors, record_slowness
from gpuplan.sizing.evidence.sheet import Scope
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.batches import batch_volumes
from gpuplan.sizing.memory.margin import gpu_memory_metric


def slowness(settled: Settled[Any], quantity: str, known: tuple[Factors, Basis]) -> Quantity:
    """How much slower than predicted a replica is taken to be, with the wanted confidence."""
    factors, basis = known
    cited = f"90 % interval of {quantity.replace('_', ' ')}, {basis}"
    return record_slowness(settled.ledger, factors, settled.demand.confidence.value, cited)


def finish_reader(
    settled: Settled[Any],
    site: Site,
    candidate: Candidate,
    alternatives: tuple[Alternative, ...],
    scope: Scope,
    *,
    checkpoint: Callable[[Ledger, Any], Quantity],
    metrics: tuple[Metric, ...],
    memory_interval: Factors,
    bound_by: str,
    concurrency: float,
    resources: HostResources | None = None,
    **serving: Any,
) -> Sized:
    """`scope` has the replicas, their load and memory; `checkpoint` records the stored bytes of the
    model, `serving` are the engine's own settings. Without `resources` a replica has those of one
    GPU."""
    ledger, demand, device = settled.ledger, settled.demand, candidate.device
    cost = record_cost(settled, candidate, scope["replicas"])
    stored = checkpoint(ledger, demand.model)
    chosen = demand.overrides.model_storage
    models = storage(settled, "model_storage_bytes", stored, chosen, stored)
    count = int(scope["replicas"])
    record_start(settled, site, device, stored=stored, weights=scope["weights_bytes"])
    return finish(
        settled,
        site,
        candidate,
        alternatives,
        cost,
        memory=memory_budget(scope),
        metrics=(*metrics, gpu_memory_metric(scope, memory_interval, "extrapolated")),
        bound_by=bound_by,
        resources=resources or host_resources(settled, device, 1),
        volumes=(models_volume(site, models, count), *batch_volumes(settled, site, scope, count)),
        interruption=interruption(settled, site, candidate, cost, restarted(scope), loaded=stored),
        serving=Serving(
            gpu_memory_utilization=scope["gpu_memory_utilization"].value,
            kv_cache_dtype="auto",
            port=PORT,
            **serving,
        ),
        concurrency=max(1, int(concurrency)),
    )
