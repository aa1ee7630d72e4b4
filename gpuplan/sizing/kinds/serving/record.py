"""The chosen layout of a served model, with the evidence of every number."""

from __future__ import annotations

from gpuplan.models.model import Transformer
from gpuplan.plan.model import Alternative, MemoryBudget, Metric, Parallelism, Serving
from gpuplan.sizing.ask.limits import time_limit
from gpuplan.sizing.candidates.assemble import MEAN_LOAD, PORT, finish, record_cost, storage
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.needs import record_start
from gpuplan.sizing.candidates.resources import host_resources, volume
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.evidence.formula import Formula, Quantity
from gpuplan.sizing.evidence.intervals import inverse, metric
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.serving.arrivals import sized_rate
from gpuplan.sizing.kinds.serving.needs import record_requests
from gpuplan.sizing.kinds.serving.search import Layout, expected
from gpuplan.sizing.memory.serving import memory_metric
from gpuplan.sizing.model.checkpoints import published_bytes
from gpuplan.sizing.physics.serving.declared import SYMBOLS as DECLARED
from gpuplan.sizing.physics.serving.replica import OBJECTIVES, SYMBOLS, Replica
from gpuplan.sizing.physics.serving.scopes import Scope
from gpuplan.sizing.physics.serving.steps import COMPUTED_AT, READ

_REPLICAS = Formula(
    "max(1, ceil(sized_rate * slowness * request_seconds / limit_sequences - 1e-9))",
    "1",
    "Little's law at the limit, as slow as the confidence allows",
)
_CAPACITY = Formula(
    "replicas * limit_sequences / request_seconds", "1/s", "requests at the limit of every replica"
)
_STORED = Formula(
    "checkpoint_bytes + draft_bytes * tensor_parallel_size",
    "B",
    "the published weights, and a draft model of the size that it has in GPU memory",
)
_CONCURRENCY = Formula("ceil(sized_rate * request_seconds)", "1", "Little's law at the peak")
_REQUESTS = Formula("requests * growth", "1", "all requests at the end of the horizon")
_BATCH_REPLICAS = Formula(
    "max(1, ceil(wanted_rate * slowness * request_seconds / limit_sequences - 1e-9))",
    "1",
    "Little's law with every place taken, as slow as the confidence allows",
)
_FINISH = Formula(
    "all_requests * request_seconds / (limit_sequences * replicas)", "s", "every place taken"
)
_TOKENS = Formula("output_mean * rate", "1/s", "output tokens of all replicas")


def serve(
    settled: Settled,
    site: Site,
    candidate: Candidate,
    alternatives: tuple[Alternative, ...],
    free: dict[str, float],
) -> Sized:
    """`free` holds what the search would have chosen without its overrides."""
    layout = candidate.detail
    assert isinstance(layout, Layout)
    replica, ledger = layout.replica, settled.ledger
    size = settled.choice(
        "tensor_parallel_size",
        Quantity(float(replica.gpus), "1", "choice: the cheapest that meets every objective"),
        "overrides.tensor_parallel_size",
        free.get("tensor_parallel_size"),
    )
    symbols = SYMBOLS | {f: s for f, s in DECLARED.items() if f in settled.given}
    given = {symbol: settled.given[field] for field, symbol in symbols.items()}
    scope = replica.record(ledger, given | {"tensor_parallel_size": size})
    scope["limit_sequences"] = ledger.given(
        "limit.sequences",
        Quantity(layout.limit, "1", "choice: the most that memory and objectives allow"),
    )
    at_limit = replica.record_times(
        ledger, scope | {"sequences": scope["limit_sequences"]}, "limit."
    )
    if settled.demand.kind == "serving":
        count, scope = _service(settled, replica, scope, at_limit)
        concurrency = ledger.derive(
            "concurrency",
            _CONCURRENCY,
            sized_rate=scope["sized_rate"],
            request_seconds=scope["request_seconds"],
        )
    else:
        count, scope = _batch(settled, scope, at_limit)
        concurrency = Quantity(layout.limit * count.value, "1", "limit of every replica")
    scope = _record_memory(settled, replica, scope)
    cost = record_cost(settled, candidate, count)
    assert isinstance(settled.demand.model, Transformer)
    published = published_bytes(ledger, settled.demand.model)
    checkpoint = _stored(settled, published, scope)
    models = storage(
        settled, "model_storage_bytes", checkpoint, "overrides.model_storage", checkpoint
    )
    weights = scope["weights_bytes"]
    record_start(settled, site, candidate.device, stored=checkpoint, weights=weights)
    record_requests(settled, scope, scope["capacity"])
    return finish(
        settled,
        site,
        candidate,
        alternatives,
        cost,
        parallelism=Parallelism(tensor_parallel_size=replica.gpus),
        memory=_budget(scope),
        metrics=_metrics(settled, replica, scope),
        bound_by=bound_by(replica, scope["sequences"].value, layout.limit, int(count)),
        resources=host_resources(settled, candidate.device, replica.gpus),
        volumes=(volume(site, "models", models, shared=int(count) > 1),),
        serving=_settings(settled, scope),
        concurrency=int(concurrency),
    )


def _stored(settled: Settled, checkpoint: Quantity, scope: Scope) -> Quantity:
    """What is downloaded: the published weights, and those of a draft model."""
    drafts = settled.demand.speculative
    if drafts is None or drafts.model is None:
        return checkpoint
    inputs = {n: scope[n] for n in ("draft_bytes", "tensor_parallel_size")}
    return settled.ledger.derive("stored_bytes", _STORED, checkpoint_bytes=checkpoint, **inputs)


def _service(
    settled: Settled, replica: Replica, scope: Scope, at_limit: Scope
) -> tuple[Quantity, Scope]:
    """Replicas from the peak, then the times at the concurrency that the peak brings."""
    ledger, given = settled.ledger, settled.given
    scope["sized_rate"] = sized_rate(settled, scope, at_limit["request_seconds"])
    derived = ledger.derive(
        "replicas",
        _REPLICAS,
        sized_rate=scope["sized_rate"],
        slowness=scope["slowness"],
        request_seconds=at_limit["request_seconds"],
        limit_sequences=scope["limit_sequences"],
    )
    count = settled.settle("replicas", derived, "overrides.replicas")
    scope["capacity"] = ledger.derive(
        "requests_per_second",
        _CAPACITY,
        replicas=count,
        limit_sequences=scope["limit_sequences"],
        request_seconds=at_limit["request_seconds"],
    )
    if (mean := given.get("load.requests_per_second.mean")) is not None:
        ledger.derive("mean_load", MEAN_LOAD, mean_rate=mean, requests_per_second=scope["capacity"])
    running = expected(settled.demand, replica, count.value, scope["limit_sequences"].value)
    scope["sequences"] = ledger.given(
        "sequences",
        Quantity(
            running, "1", "solved: sized_rate / replicas * request_seconds, at least 1 sequence"
        ),
    )
    return count, replica.record_times(ledger, scope)


def _batch(settled: Settled, scope: Scope, at_limit: Scope) -> tuple[Quantity, Scope]:
    """Replicas from the time limit; every place is taken until the end."""
    ledger, given = settled.ledger, settled.given
    scope["all_requests"] = ledger.derive(
        "all_requests", _REQUESTS, requests=given["load.requests"], growth=given["growth.factor"]
    )
    derived = ledger.derive(
        "replicas",
        _BATCH_REPLICAS,
        wanted_rate=_wanted_rate(settled, scope),
        slowness=scope["slowness"],
        request_seconds=at_limit["request_seconds"],
        limit_sequences=scope["limit_sequences"],
    )
    count = settled.settle("replicas", derived, "overrides.replicas")
    scope |= {k: at_limit[k] for k in ("request_seconds", "time_per_output_token")}
    scope["sequences"] = scope["limit_sequences"]
    scope["time_to_finish"] = ledger.derive(
        "time_to_finish",
        _FINISH,
        all_requests=scope["all_requests"],
        request_seconds=scope["request_seconds"],
        limit_sequences=scope["limit_sequences"],
        replicas=count,
    )
    scope["capacity"] = ledger.derive(
        "requests_per_second",
        _CAPACITY,
        replicas=count,
        limit_sequences=scope["limit_sequences"],
        request_seconds=scope["request_seconds"],
    )
    return count, scope


def _wanted_rate(settled: Settled, scope: Scope) -> Quantity:
    """Requests per second that the time limit and the wanted tokens per second ask for."""
    demand, wanted = settled.demand, 0.0
    if (within := time_limit(demand)) is not None:
        wanted = scope["all_requests"].value / within
    if (tokens := demand.value("slo.tokens_per_second")) is not None:
        wanted = max(wanted, tokens / scope["output_mean"].value)
    source = "requests over the time limit, or tokens per second over the mean output"
    return settled.ledger.given("wanted_rate", Quantity(wanted, "1/s", f"choice: {source}"))


def _record_memory(settled: Settled, replica: Replica, scope: Scope) -> Scope:
    scope = replica.running.record(settled.ledger, scope)
    scope["max_num_seqs"] = settled.settle(
        "max_num_seqs", scope["max_num_seqs"], "overrides.max_num_seqs"
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


def _metrics(settled: Settled, replica: Replica, scope: Scope) -> tuple[Metric, ...]:
    demand = settled.demand
    token, first, basis = replica.token_factors, replica.first_factors, replica.basis
    rates = inverse(token)
    tokens = settled.ledger.derive(
        "output_tokens_per_second",
        _TOKENS,
        output_mean=scope["output_mean"],
        rate=scope["capacity"],
    )
    found = []
    if demand.kind == "serving":
        for field, name in OBJECTIVES.items():
            limit = demand.value(field)
            is_first = name == "time_to_first_token"
            if limit is not None or name != "request_latency":
                found.append(
                    metric(
                        name,
                        "s",
                        scope[name].value,
                        factors=first if is_first else token,
                        basis="extrapolated" if is_first else basis,
                        limit=limit,
                    )
                )
        wanted = scope["sized_rate"].value
    else:
        finish_at = scope["time_to_finish"].value
        limit = time_limit(demand)
        found.append(
            metric("time_to_finish", "s", finish_at, factors=token, basis=basis, limit=limit)
        )
        wanted = None
    found.append(
        metric(
            "requests_per_second",
            "1/s",
            scope["capacity"].value,
            factors=rates,
            basis=basis,
            limit=wanted,
            sense="at_least",
        )
    )
    found.append(
        metric(
            "output_tokens_per_second",
            "1/s",
            tokens.value,
            factors=rates,
            basis=basis,
            limit=demand.value("slo.tokens_per_second"),
            sense="at_least",
        )
    )
    found.append(memory_metric(scope, "serving"))
    return tuple(found)


def _settings(settled: Settled, scope: Scope) -> Serving:
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
    gate, _ = replica.shortfalls(limit + 1)
    if count > 1 and gate and gate[0].resource in ("gpu_memory", "kv_cache"):
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
