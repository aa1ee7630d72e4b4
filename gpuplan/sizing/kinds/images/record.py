"""The chosen layout of an image service or batch, with the evidence of every number."""

from __future__ import annotations

from gpuplan.plan.model import Alternative, ImageGeneration, MemoryBudget, Metric
from gpuplan.sizing.ask.limits import time_limit
from gpuplan.sizing.candidates.assemble import MEAN_LOAD, PORT, RATE, finish, record_cost, storage
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.needs import record_start
from gpuplan.sizing.candidates.resources import host_resources, volume
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.data import images as measured
from gpuplan.sizing.evidence.formula import Formula, Quantity, constant
from gpuplan.sizing.evidence.intervals import inverse, metric, quantile
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.images.search import IDLE_ROOM, PIPELINE, Layout, Scope
from gpuplan.sizing.physics.serving.replica import SLOWNESS

_ROOM = Formula(
    "request_latency / slowness - image_seconds", "s", "what the objective leaves to a queue"
)
_LIMIT = Formula(
    "min(0.95, 2 * queue_room / (image_seconds + 2 * queue_room))",
    "1",
    "the load at which an M/D/1 queue takes that long; at most 95 %",
)
_REPLICAS = Formula(
    "max(1, ceil(sized_rate * slowness * image_seconds / load_limit - 1e-9))",
    "1",
    "as slow as the confidence allows, each busy for the part that the latency leaves",
)
_LOAD = Formula("sized_rate * image_seconds / replicas", "1", "the busy part of a replica's time")
_LATENCY = Formula(
    "image_seconds * (1 + replica_load / (2 * (1 - replica_load)))",
    "s",
    "mean: an image, and the wait of an M/D/1 queue",
)
_CAPACITY = Formula("replicas * batch / image_seconds", "1/s", "every replica busy all the time")
_CONCURRENCY = Formula("ceil(sized_rate * request_latency)", "1", "Little's law at the peak")
_ALL = Formula("requests * growth", "1", "all images at the end of the horizon")
_BATCH_REPLICAS = Formula(
    "max(1, ceil(all_requests * slowness * image_seconds / (batch * time_limit) - 1e-9))",
    "1",
    "as slow as the confidence allows",
)
_FINISH = Formula("all_requests * image_seconds / (batch * replicas)", "s", "every replica busy")


def draw(
    settled: Settled,
    site: Site,
    candidate: Candidate,
    alternatives: tuple[Alternative, ...],
    free: dict[str, float],  # noqa: ARG001 - one signature for every kind
) -> Sized:
    layout = candidate.detail
    assert isinstance(layout, Layout)
    ledger, demand = settled.ledger, settled.demand
    scope = _record(settled, layout)
    service = demand.kind == "image service"
    count, scope = _service(settled, scope) if service else _batch(settled, scope)
    scope["capacity"] = ledger.derive(
        "images_per_second",
        _CAPACITY,
        replicas=count,
        batch=scope["batch"],
        image_seconds=scope["image_seconds"],
    )
    if service:
        ledger.derive(
            "mean_load",
            MEAN_LOAD,
            mean_rate=settled.given["load.requests_per_second.mean"],
            requests_per_second=scope["capacity"],
        )
    cost = record_cost(settled, candidate, count)
    weights = scope["weights_bytes"]
    models = storage(settled, "model_storage_bytes", weights, "overrides.model_storage", weights)
    record_start(settled, site, candidate.device, stored=weights, weights=weights)
    concurrency = int(scope["concurrency"]) if service else int(count) * layout.batch
    width, height = demand.image_size or (0, 0)
    return finish(
        settled,
        site,
        candidate,
        alternatives,
        cost,
        memory=MemoryBudget(
            weights_bytes=int(scope["weights_bytes"]),
            activations_bytes=int(scope["activations_bytes"]),
            overhead_bytes=int(scope["overhead_bytes"]),
            capacity_bytes=int(scope["memory_bytes"]),
            usable_bytes=int(scope["usable_bytes"]),
        ),
        metrics=_metrics(settled, layout, scope),
        bound_by="compute",
        resources=host_resources(settled, candidate.device, 1),
        volumes=(volume(site, "models", models, shared=int(count) > 1),),
        image_generation=ImageGeneration(
            width=width,
            height=height,
            steps=int(scope["denoising_steps"]),
            max_batch_size=layout.batch,
            port=PORT,
        ),
        concurrency=max(1, concurrency),
    )


def _record(settled: Settled, layout: Layout) -> Scope:
    ledger, given = settled.ledger, settled.given
    batch = settled.choice(
        "batch",
        Quantity(float(layout.batch), "1", "choice: one for the least latency, else the most"),
        "overrides.max_num_seqs",
        None,
    )
    scope = layout.scope | {
        "pixels": given["load.images.mean"],
        "largest_pixels": given["load.images.p95"],
        "denoising_steps": given["load.images.steps"],
        "batch": batch,
    }
    scope = PIPELINE.record(ledger, scope)
    confidence = settled.demand.given["slo.confidence"].value
    cited = f"90 % interval, {layout.basis}: {measured.SOURCE}"
    scope["slowness"] = ledger.derive(
        "slowness",
        SLOWNESS,
        interval_high=constant(layout.factors[1], "1", cited),
        confidence_z=constant(quantile(confidence), "1", f"normal quantile of {confidence:g}"),
    )
    return scope


def _record_load_limit(settled: Settled, scope: Scope) -> Quantity:
    latency = settled.given.get("slo.request_latency")
    if latency is None:
        return settled.ledger.given("load_limit", IDLE_ROOM)
    room = settled.ledger.derive(
        "queue_room",
        _ROOM,
        request_latency=latency,
        slowness=scope["slowness"],
        image_seconds=scope["image_seconds"],
    )
    return settled.ledger.derive(
        "load_limit", _LIMIT, queue_room=room, image_seconds=scope["image_seconds"]
    )


def _service(settled: Settled, scope: Scope) -> tuple[Quantity, Scope]:
    ledger, given = settled.ledger, settled.given
    scope["sized_rate"] = ledger.derive(
        "sized_rate",
        RATE,
        peak=given["load.requests_per_second.peak"],
        growth=given["growth.factor"],
    )
    limit = _record_load_limit(settled, scope)
    derived = ledger.derive(
        "replicas",
        _REPLICAS,
        sized_rate=scope["sized_rate"],
        slowness=scope["slowness"],
        image_seconds=scope["image_seconds"],
        load_limit=limit,
    )
    count = settled.settle("replicas", derived, "overrides.replicas")
    scope["replica_load"] = ledger.derive(
        "replica_load",
        _LOAD,
        sized_rate=scope["sized_rate"],
        image_seconds=scope["image_seconds"],
        replicas=count,
    )
    scope["request_latency"] = ledger.derive(
        "request_latency",
        _LATENCY,
        image_seconds=scope["image_seconds"],
        replica_load=scope["replica_load"],
    )
    scope["concurrency"] = ledger.derive(
        "concurrency",
        _CONCURRENCY,
        sized_rate=scope["sized_rate"],
        request_latency=scope["request_latency"],
    )
    return count, scope


def _batch(settled: Settled, scope: Scope) -> tuple[Quantity, Scope]:
    ledger, given = settled.ledger, settled.given
    everything = ledger.derive(
        "all_requests", _ALL, requests=given["load.requests"], growth=given["growth.factor"]
    )
    within = time_limit(settled.demand)
    if within is None:
        derived = ledger.given("replicas", Quantity(1.0, "1", "choice: one, without a time limit"))
    else:
        derived = ledger.derive(
            "replicas",
            _BATCH_REPLICAS,
            all_requests=everything,
            slowness=scope["slowness"],
            image_seconds=scope["image_seconds"],
            batch=scope["batch"],
            time_limit=Quantity(within, "s", "manifest: slo.finish_within or deadline"),
        )
    count = settled.settle("replicas", derived, "overrides.replicas")
    scope["time_to_finish"] = ledger.derive(
        "time_to_finish",
        _FINISH,
        all_requests=everything,
        image_seconds=scope["image_seconds"],
        batch=scope["batch"],
        replicas=count,
    )
    return count, scope


def _metrics(settled: Settled, layout: Layout, scope: Scope) -> tuple[Metric, ...]:
    demand, factors, basis = settled.demand, layout.factors, layout.basis
    name, limit = "request_latency", demand.value("slo.request_latency")
    wanted = scope["sized_rate"].value if name in scope else None
    if name not in scope:
        name, limit = "time_to_finish", time_limit(demand)
    return (
        metric(name, "s", scope[name].value, factors=factors, basis=basis, limit=limit),
        metric(
            "images_per_second",
            "1/s",
            scope["capacity"].value,
            factors=inverse(factors),
            basis=basis,
            limit=wanted,
            sense="at_least",
        ),
    )
