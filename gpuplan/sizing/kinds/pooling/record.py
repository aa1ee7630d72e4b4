"""The chosen layout of a service or batch that reads texts, with the evidence of every number."""

from __future__ import annotations

from gpuplan.plan.model import Alternative
from gpuplan.sizing.ask.demand import PoolingDemand
from gpuplan.sizing.candidates.batching import Answers, record_load
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.replicas import metrics
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.evidence.sheet import Scope, floats, sheet
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.pooling.load import FINISH, TOKENS, times
from gpuplan.sizing.kinds.pooling.search import SizedReader, load_limit, replica
from gpuplan.sizing.kinds.readers import finish_reader, slowness
from gpuplan.sizing.memory.pooling import INTERVAL
from gpuplan.sizing.model.checkpoints import published_bytes
from gpuplan.sizing.physics.pooling.correction import QUANTITY
from gpuplan.sizing.physics.pooling.reader import Reader

_RATES = ("requests_per_second", "input_tokens_per_second")
_PLACES = sheet("""
    max_num_seqs: 1 = min(max_num_batched_tokens, max(256, ceil(max_num_batched_tokens
        / input_mean)))  # texts at once: tokens fill a step before places do
""")


def recorded(
    settled: Settled[PoolingDemand],
    site: Site,
    candidate: Candidate[SizedReader],
    alternatives: tuple[Alternative, ...],
) -> Sized:
    layout = candidate.evaluated
    ledger, demand = settled.ledger, settled.demand
    reader = replica(demand, candidate.device)
    scope = _record_reader(settled, reader)
    answers = Answers(TOKENS, times(demand), FINISH)
    limit = load_limit(demand, layout)
    scope, concurrency = record_load(settled, candidate, scope, limit, answers)
    scope = _PLACES.record(ledger, scope)
    return finish_reader(
        settled,
        site,
        candidate,
        alternatives,
        scope,
        checkpoint=published_bytes,
        metrics=metrics(demand, scope, reader.interval, *_RATES),
        memory_interval=INTERVAL,
        bound_by=_bound_by(scope),
        concurrency=concurrency,
        max_model_len=int(scope["max_model_len"]),
        max_num_seqs=int(scope["max_num_seqs"]),
        max_num_batched_tokens=int(scope["max_num_batched_tokens"]),
        pooling=demand.pooling,
        texts=int(demand.texts),
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
    least, tokens = (scope[n].value for n in ("least_step_tokens", "max_num_batched_tokens"))
    why = f"a text of {least:,.0f} tokens is read in one step, and the engine refuses fewer"
    settled.hold(chosen, why, works=tokens >= least)
    scope = reader.record(ledger, scope)
    return scope | {"slowness": slowness(settled, QUANTITY, reader.interval)}


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
