"""The chosen layout of a served model, with the evidence of every number."""

from __future__ import annotations

from gpuplan.plan.model import Alternative, Basis, MemoryBudget, Metric, Parallelism, Serving
from gpuplan.sizing.ask.demand import LanguageDemand, OpenLoop, ServingDemand
from gpuplan.sizing.candidates.assemble import PORT, finish, record_cost, storage
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.needs import record_start
from gpuplan.sizing.candidates.resources import host_resources, models_volume
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.candidates.sheets import MEAN_LOAD
from gpuplan.sizing.candidates.sized import Sized, Unforced
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.evidence.intervals import Factors, inverse, metric
from gpuplan.sizing.evidence.sheet import Scope, Sheet, sheet
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.serving import needs
from gpuplan.sizing.kinds.serving.limit import gate
from gpuplan.sizing.kinds.serving.load import CAPACITY, CONCURRENCY, FINISH, REPLICAS, arriving
from gpuplan.sizing.kinds.serving.search import LimitedReplica, expected, service
from gpuplan.sizing.memory.serving import memory_metric
from gpuplan.sizing.model.checkpoints import published_bytes
from gpuplan.sizing.physics.serving.replica import Replica
from gpuplan.sizing.physics.serving.steps import COMPUTED_AT, READ

_STORED = sheet("""
    stored_bytes: B = checkpoint_bytes + draft_bytes * tensor_parallel_size
        # the published weights, and a draft model of the size that it has in GPU memory
""")
_TOKENS = sheet("""
    output_tokens_per_second: 1/s = output_mean * requests_per_second  # of all replicas
""")


def serve(
    settled: Settled[LanguageDemand],
    site: Site,
    candidate: Candidate,
    alternatives: tuple[Alternative, ...],
    free: Unforced,
) -> Sized:
    layout = candidate.detail
    assert isinstance(layout, LimitedReplica)
    demand, ledger = settled.demand, settled.ledger
    overrides = demand.overrides
    size = settled.choice(
        "tensor_parallel_size",
        Quantity(float(candidate.gpus), "1", "choice: the cheapest that meets every objective"),
        overrides.tensor_parallel_size,
        free.tensor_parallel_size,
    )
    replica = Replica(service(demand, candidate.device, candidate.gpus))
    scope = replica.record(ledger, {"tensor_parallel_size": size})
    scope["limit_sequences"] = ledger.given(
        "limit.sequences",
        Quantity(layout.limit, "1", "choice: the most that memory and objectives allow"),
    )
    at_limit = replica.record_times(
        ledger, scope | {"sequences": scope["limit_sequences"]}, "limit."
    )
    scope = _record_replicas(settled, scope, at_limit)
    if isinstance(demand, ServingDemand):
        scope, concurrency = _service(settled, demand, replica, scope)
    else:
        scope = FINISH.record(ledger, scope | {"sequences": scope["limit_sequences"]})
        concurrency = layout.limit * scope["replicas"].value
    scope = _record_memory(settled, replica, scope, at_limit)
    _TOKENS.record(ledger, scope)
    cost = record_cost(settled, candidate, scope["replicas"])
    stored = published_bytes(ledger, demand.model)
    if demand.speculative is not None and demand.speculative.model is not None:
        stored = _STORED.record(ledger, scope | {"checkpoint_bytes": stored})["stored_bytes"]
    models = storage(settled, "model_storage_bytes", stored, overrides.model_storage, stored)
    record_start(settled, site, candidate.device, stored=stored, weights=scope["weights_bytes"])
    needs.TRAFFIC.record(ledger, scope | needs.INPUTS, "needs.")
    count = int(scope["replicas"])
    return finish(
        settled,
        site,
        candidate,
        alternatives,
        cost,
        parallelism=Parallelism(tensor_parallel_size=candidate.gpus),
        memory=_budget(scope),
        metrics=_metrics(demand, replica, scope),
        bound_by=bound_by(replica, scope["sequences"].value, layout.limit, count),
        resources=host_resources(settled, candidate.device, candidate.gpus),
        volumes=(models_volume(site, models, count),),
        serving=_settings(settled, scope),
        concurrency=int(concurrency),
    )


def _record_replicas(settled: Settled[LanguageDemand], scope: Scope, at_limit: Scope) -> Scope:
    """Replicas from what must be served, and what they then serve, each at its limit."""
    ledger = settled.ledger
    load, inputs = arriving(settled.demand)
    scope = scope | inputs
    scope |= {n: at_limit[n] for n in ("request_seconds", "time_per_output_token")}
    scope = REPLICAS.record(ledger, load.record(ledger, scope))
    chosen = settled.demand.overrides.replicas
    scope["replicas"] = settled.settle("replicas", scope["replicas"], chosen)
    return CAPACITY.record(ledger, scope)


def _service(
    settled: Settled[LanguageDemand], demand: ServingDemand, replica: Replica, scope: Scope
) -> tuple[Scope, float]:
    """The times at the concurrency that the peak brings, and that of all replicas."""
    ledger = settled.ledger
    if isinstance(demand.arrivals, OpenLoop):
        MEAN_LOAD.record(ledger, scope | {"mean_rate": demand.arrivals.mean})
    limit = scope["limit_sequences"].value
    running = expected(demand, replica, scope["replicas"].value, limit)
    scope["sequences"] = ledger.given(
        "sequences",
        Quantity(
            running, "1", "solved: sized_rate / replicas * request_seconds, at least 1 sequence"
        ),
    )
    scope = replica.record_times(ledger, scope)
    return scope, CONCURRENCY.record(ledger, dict(scope))["concurrency"].value


def _record_memory(
    settled: Settled[LanguageDemand], replica: Replica, scope: Scope, at_limit: Scope
) -> Scope:
    """At the limit, not at the expected load: the engine is told to serve what is printed."""
    most = Sheet(replica.running.lines[-1:])  # the others are recorded with the times
    derived = most.record(settled.ledger, dict(at_limit))["max_num_seqs"]
    scope["max_num_seqs"] = settled.settle(
        "max_num_seqs", derived, settled.demand.overrides.max_num_seqs
    )
    return replica.memory.record(settled.ledger, scope)


def _budget(scope: Scope) -> MemoryBudget:
    return MemoryBudget(
        weights_bytes=int(scope["weights_bytes"]),
        activations_bytes=int(scope["activations_bytes"]),
        kv_cache_bytes=int(scope["kv_cache_bytes"]),
        overhead_bytes=int(scope["overhead_bytes"]),
        capacity_bytes=int(scope["memory_bytes"]),
        usable_bytes=int(scope["usable_bytes"]),
    )


def _metrics(demand: LanguageDemand, replica: Replica, scope: Scope) -> tuple[Metric, ...]:
    service = isinstance(demand, ServingDemand)
    times = _times(replica, scope) if service else [_run(replica, scope)]
    tokens = demand.tokens_per_second
    wanted = scope["sized_rate"].value if service else None
    rates = (
        ("requests_per_second", wanted),
        ("output_tokens_per_second", None if tokens is None else tokens.value),
    )
    return (
        *times,
        *(
            metric(
                name,
                "1/s",
                scope[name].value,
                factors=inverse(replica.token_factors),
                basis=replica.basis,
                limit=limit,
                sense="at_least",
            )
            for name, limit in rates
        ),
        memory_metric(scope),
    )


def _times(replica: Replica, scope: Scope) -> list[Metric]:
    """Of a service: those that it has objectives for, and those of a token always."""
    limits = replica.service.limits.seconds
    token: tuple[Factors, Basis] = (replica.token_factors, replica.basis)
    first: tuple[Factors, Basis] = (replica.first_factors, "extrapolated")
    intervals = {"time_per_output_token": token, "time_to_first_token": first}
    intervals |= {"request_latency": token} if "request_latency" in limits else {}
    return [
        metric(name, "s", scope[name].value, factors=factors, basis=basis, limit=limits.get(name))
        for name, (factors, basis) in intervals.items()
    ]


def _run(replica: Replica, scope: Scope) -> Metric:
    return metric(
        "time_to_finish",
        "s",
        scope["time_to_finish"].value,
        factors=replica.token_factors,
        basis=replica.basis,
        limit=scope["time_limit"].value if "time_limit" in scope else None,
    )


def _settings(settled: Settled[LanguageDemand], scope: Scope) -> Serving:
    batched = settled.ledger.given("max_num_batched_tokens", scope["max_num_batched_tokens"])
    return Serving(
        max_model_len=int(scope["max_model_len"]),
        max_num_seqs=int(scope["max_num_seqs"]),
        max_num_batched_tokens=int(batched),
        gpu_memory_utilization=scope["gpu_memory_utilization"].value,
        kv_cache_dtype=settled.demand.overrides.kv_cache_dtype or "auto",
        port=PORT,
        speculative=settled.demand.speculative,
    )


def bound_by(replica: Replica, sequences: float, limit: float, count: int) -> str:
    """What more of would help most: room for more sequences, or the largest part of a step."""
    shortfalls, _ = gate(replica, limit + 1)
    if count > 1 and shortfalls and shortfalls[0].resource in ("gpu_memory", "kv_cache"):
        return "memory capacity"
    times = replica.times(sequences)
    reads = sum(times.get(f"{part}_bytes", 0.0) for part in READ)
    products = sum(
        times[f"{part}_flop"] / times[f"{peak}_peak"]
        for part, peak in COMPUTED_AT.items()
        if f"{part}_flop" in times
    )
    parts = {
        "memory bandwidth": reads / times["bandwidth"],
        "compute": products / times["compute_share"],
        "interconnect": times.get("all_reduce_seconds", 0.0),
        "engine overhead": times["overhead_seconds"],
    }
    return max(parts, key=lambda name: parts[name])
