"""The chosen layout of a service or batch that reads texts, with the evidence of every number."""

from __future__ import annotations

from gpuplan.plan.model import Alternative, MemoryBudget, Metric, Serving
from gpuplan.plan.times import TIMES
from gpuplan.sizing.ask.demand import (
    PoolingBatchDemand,
    PoolingDemand,
    PoolingServiceDemand,
    accepted,
)
from gpuplan.sizing.candidates.assemble import PORT, finish, record_cost, storage
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.interruptions import interruption, restarted
from gpuplan.sizing.candidates.needs import record_start
from gpuplan.sizing.candidates.resources import host_resources, models_volume
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.candidates.sheets import MEAN_LOAD, record_filled
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.evidence.intervals import inverse, metric, record_slowness
from gpuplan.sizing.evidence.sheet import Scope, floats, sheet
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.batches import batch_volumes
from gpuplan.sizing.kinds.pooling.load import (
    CAPACITY,
    FINISH,
    FULL,
    IDLE_ROOM,
    RUNNING,
    asked,
    needed,
    times,
)
from gpuplan.sizing.kinds.pooling.search import SizedReader, load_limit, replica
from gpuplan.sizing.memory.margin import gpu_memory_metric
from gpuplan.sizing.memory.pooling import INTERVAL
from gpuplan.sizing.model.checkpoints import published_bytes
from gpuplan.sizing.physics.pooling.correction import QUANTITY
from gpuplan.sizing.physics.pooling.reader import Reader

_SOLVED = "solved: the busiest, at most 95 %, at which every objective of the latency is met"
_PLACES = sheet("""
    max_num_seqs: 1 = min(max_num_batched_tokens, max(256, ceil(max_num_batched_tokens
        / input_mean)))  # texts at once: tokens fill a step before places do
""")


def read(
    settled: Settled[PoolingDemand],
    site: Site,
    candidate: Candidate,
    alternatives: tuple[Alternative, ...],
) -> Sized:
    layout = candidate.detail
    assert isinstance(layout, SizedReader)
    ledger, demand = settled.ledger, settled.demand
    reader = replica(demand, candidate.device)
    scope = _record_reader(settled, reader)
    scope = _record_replicas(settled, candidate, layout, scope)
    concurrency = scope["replicas"].value
    if isinstance(demand, PoolingServiceDemand):
        scope = CAPACITY.record(ledger, scope)
        scope = (times(demand) + RUNNING).record(ledger, scope)
        MEAN_LOAD.record(ledger, scope | {"mean_rate": demand.arrivals.mean})
        concurrency = scope["concurrency"].value
    else:
        scope = (FULL + FINISH).record(ledger, scope)
    scope = _PLACES.record(ledger, scope)
    cost = record_cost(settled, candidate, scope["replicas"])
    stored = published_bytes(ledger, demand.model)
    chosen = demand.overrides.model_storage
    models = storage(settled, "model_storage_bytes", stored, chosen, stored)
    weights, count = scope["weights_bytes"], int(scope["replicas"])
    record_start(settled, site, candidate.device, stored=stored, weights=weights)
    return finish(
        settled,
        site,
        candidate,
        alternatives,
        cost,
        memory=MemoryBudget(
            weights_bytes=int(weights),
            activations_bytes=int(scope["activations_bytes"]),
            kv_cache_bytes=int(scope["kv_cache_bytes"]),
            overhead_bytes=int(scope["overhead_bytes"]),
            capacity_bytes=int(scope["memory_bytes"]),
            usable_bytes=int(scope["usable_bytes"]),
        ),
        metrics=_metrics(demand, reader, scope),
        bound_by=_bound_by(scope),
        resources=host_resources(settled, candidate.device, 1),
        volumes=(models_volume(site, models, count), *batch_volumes(settled, site, scope, count)),
        interruption=interruption(settled, site, candidate, cost, restarted(scope), loaded=stored),
        serving=Serving(
            max_model_len=int(scope["max_model_len"]),
            max_num_seqs=int(scope["max_num_seqs"]),
            max_num_batched_tokens=int(scope["max_num_batched_tokens"]),
            gpu_memory_utilization=scope["gpu_memory_utilization"].value,
            kv_cache_dtype="auto",
            port=PORT,
            pooling=demand.pooling,
            texts=int(demand.texts),
        ),
        concurrency=max(1, int(concurrency)),
    )


def _record_reader(settled: Settled[PoolingDemand], reader: Reader) -> Scope:
    """Times and memory, with the tokens of a step that are derived or chosen."""
    ledger, demand = settled.ledger, settled.demand
    scope = reader.record_shape(ledger)
    chosen = demand.overrides.max_num_batched_tokens
    scope["max_num_batched_tokens"] = settled.settle(
        "max_num_batched_tokens",
        scope["max_num_batched_tokens"],
        chosen,
        settled.free.max_num_batched_tokens,
    )
    longest, tokens = (scope[n].value for n in ("max_model_len", "max_num_batched_tokens"))
    why = f"a text of {longest:,.0f} tokens is read in one step, and the engine refuses fewer"
    settled.hold(chosen, why, works=tokens >= longest)
    scope = reader.record(ledger, scope)
    factors, basis = reader.interval
    cited = f"90 % interval of {QUANTITY.replace('_', ' ')}, {basis}"
    slowness = record_slowness(ledger, factors, demand.confidence.value, cited)
    return scope | {"slowness": slowness}


def _record_replicas(
    settled: Settled[PoolingDemand],
    candidate: Candidate,
    layout: SizedReader,
    scope: Scope,
) -> Scope:
    ledger, demand = settled.ledger, settled.demand
    if isinstance(demand, PoolingServiceDemand):
        limit = IDLE_ROOM
        if asked(demand):
            limit = Quantity(load_limit(demand, layout), "1", _SOLVED)
        scope["load_limit"] = ledger.given("load_limit", limit)
    sheet, inputs = needed(demand)
    chosen = demand.overrides.replicas
    least = sheet(floats(scope | inputs))["replicas"]
    if chosen is None and candidate.replicas > least:
        scope |= sheet.record(ledger, scope | inputs, "least.")
        scope["replicas"] = record_filled(ledger, candidate.nodes, candidate.replicas)
        return scope
    scope = sheet.record(ledger, scope | inputs)
    scope["replicas"] = settled.settle("replicas", scope["replicas"], chosen)
    return scope


def _metrics(demand: PoolingDemand, reader: Reader, scope: Scope) -> tuple[Metric, ...]:
    factors, basis = reader.interval
    limits = {name: limit.value for name, limit in (asked(demand) | accepted(demand)).items()}
    names, wanted = ["time_to_finish"], None
    if isinstance(demand, PoolingServiceDemand):
        names = [n for n in TIMES if n in ("request_latency", *limits)]
        wanted = scope["sized_rate"].value
    elif isinstance(demand, PoolingBatchDemand) and (limit := demand.limit.shown) is not None:
        limits["time_to_finish"] = limit.value
    rates = (("requests_per_second", wanted), ("input_tokens_per_second", None))
    return (
        *(
            metric(n, "s", scope[n].value, factors=factors, basis=basis, limit=limits.get(n))
            for n in names
        ),
        *(
            metric(
                name,
                "1/s",
                scope[name].value,
                factors=inverse(factors),
                basis=basis,
                limit=limit,
                sense="at_least",
            )
            for name, limit in rates
        ),
        gpu_memory_metric(scope, INTERVAL, "extrapolated"),
    )


def _bound_by(scope: Scope) -> str:
    """What more of would help most: the API server, or the largest part of a full step."""
    values = floats(scope)
    if values["host_seconds"] > values["request_seconds"]:
        return "API server"
    parts = {
        "memory bandwidth": (values["matmul_bytes"] + values["attention_bytes"])
        / values["bandwidth"],
        "compute": values["projection_flop"] / values["matmul_peak"]
        + values["dense_flop"] / values["dense_peak"]
        + values["attention_flop"] / values["bf16_peak"],
        "engine overhead": values["overhead_seconds"],
    }
    parts["compute"] /= values["compute_share"]
    return max(parts, key=lambda name: parts[name])
