"""The chosen layout of a service or batch that reads texts, with the evidence of every number."""

from __future__ import annotations

from gpuplan.plan.model import Alternative, Serving
from gpuplan.sizing.ask.demand import PoolingDemand, PoolingServiceDemand
from gpuplan.sizing.candidates.assemble import PORT, finish, record_cost, storage
from gpuplan.sizing.candidates.batching import CAPACITY, FULL, needed, record_load_limit
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.interruptions import interruption, restarted
from gpuplan.sizing.candidates.needs import record_start
from gpuplan.sizing.candidates.replicas import memory_budget, metrics, record_replicas
from gpuplan.sizing.candidates.resources import host_resources, models_volume
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.candidates.sheets import MEAN_LOAD, RUNNING
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.evidence.intervals import record_slowness
from gpuplan.sizing.evidence.sheet import Scope, floats, sheet
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.batches import batch_volumes
from gpuplan.sizing.kinds.pooling.load import FINISH, TOKENS, times
from gpuplan.sizing.kinds.pooling.search import SizedReader, load_limit, replica
from gpuplan.sizing.memory.margin import gpu_memory_metric
from gpuplan.sizing.memory.pooling import INTERVAL
from gpuplan.sizing.model.checkpoints import published_bytes
from gpuplan.sizing.physics.pooling.correction import QUANTITY
from gpuplan.sizing.physics.pooling.reader import Reader

_RATES = ("requests_per_second", "input_tokens_per_second")
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
    scope = record_load_limit(settled, scope, load_limit(demand, layout))
    scope = record_replicas(settled, candidate, needed(demand), scope)
    concurrency = scope["replicas"].value
    if isinstance(demand, PoolingServiceDemand):
        scope = (CAPACITY + TOKENS + times(demand) + RUNNING).record(ledger, scope)
        MEAN_LOAD.record(ledger, scope | {"mean_rate": demand.arrivals.mean})
        concurrency = scope["concurrency"].value
    else:
        scope = (FULL + TOKENS + FINISH).record(ledger, scope)
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
        memory=memory_budget(scope),
        metrics=(
            *metrics(demand, scope, reader.interval, *_RATES),
            gpu_memory_metric(scope, INTERVAL, "extrapolated"),
        ),
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
