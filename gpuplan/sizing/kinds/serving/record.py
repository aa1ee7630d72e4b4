"""The chosen layout of a served model, with the evidence of every number."""

from __future__ import annotations

from gpuplan.catalog.model import Gpu
from gpuplan.plan.model import Alternative, Metric, Serving
from gpuplan.plan.times import TIMES
from gpuplan.sizing.ask.demand import BatchDemand, LanguageDemand, ServingDemand, accepted
from gpuplan.sizing.ask.parts import OpenLoop
from gpuplan.sizing.candidates.assemble import PORT, finish, record_cost, storage
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.interruptions import interruption, restarted
from gpuplan.sizing.candidates.needs import record_start
from gpuplan.sizing.candidates.replicas import memory_budget
from gpuplan.sizing.candidates.resources import host_resources, models_volume
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.candidates.sheets import MEAN_LOAD, record_filled
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.evidence.intervals import inverse, metric
from gpuplan.sizing.evidence.sheet import Scope, Sheet, floats, sheet
from gpuplan.sizing.hardware.domains import in_domain
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.batches import batch_volumes
from gpuplan.sizing.kinds.serving import experts, needs
from gpuplan.sizing.kinds.serving.limit import LimitedReplica, gate
from gpuplan.sizing.kinds.serving.load import CAPACITY, CONCURRENCY, FINISH, REPLICAS, arriving
from gpuplan.sizing.kinds.serving.measuring import record_measuring
from gpuplan.sizing.kinds.serving.search import expected, service
from gpuplan.sizing.memory.serving import memory_metric
from gpuplan.sizing.model.checkpoints import published_bytes
from gpuplan.sizing.physics.serving.replica import Replica
from gpuplan.sizing.physics.serving.service import Division
from gpuplan.sizing.physics.serving.steps import COMPUTED_AT, READ

_STORED = sheet("""
    stored_bytes: B = checkpoint_bytes + draft_bytes * tensor_parallel_size
        # the published weights, and a draft model of the size that it has in GPU memory
""")
STAGED = sheet("""
    replica_sequences: 1 = sequences * pipeline_stages  # each stage has a batch of its own
""")
GROUPS = sheet("""
    all_sequences: 1 = sequences * data_parallel_size  # each group attends to its own
""")
_TOKENS = sheet("""
    output_tokens_per_second: 1/s = output_mean * requests_per_second  # of all replicas
""")


def recorded(
    settled: Settled[LanguageDemand],
    site: Site,
    candidate: Candidate[LimitedReplica],
    alternatives: tuple[Alternative, ...],
) -> Sized:
    layout = candidate.evaluated
    demand, ledger = settled.demand, settled.ledger
    overrides = demand.overrides
    division = layout.replica.service.division
    inside = candidate.gpus // division.nodes
    size = settled.choice(
        "tensor_parallel_size",
        Quantity(
            float(division.tensor_parallel_size),
            "1",
            "choice: the cheapest that meets every objective",
        ),
        overrides.tensor_parallel_size,
        settled.free.tensor_parallel_size,
    )
    stages = settled.choice(
        "pipeline_parallel_size", _stages(division), overrides.pipeline_parallel_size, 1.0
    )
    rate = layout.replica.service.fabric_rate
    replica = Replica(service(demand, candidate.device, division, rate))
    scope = replica.record(
        ledger,
        {
            "tensor_parallel_size": size,
            "pipeline_stages": stages,
            **_across(settled, replica),
        },
    )
    scope["limit_sequences"] = ledger.given(
        "limit.sequences",
        Quantity(layout.limit, "1", "choice: the most that memory and objectives allow"),
    )
    at_limit = replica.record_times(
        ledger, scope | {"sequences": scope["limit_sequences"]}, "limit."
    )
    at_limit["sequences"] = _of_all_stages(settled, scope["limit_sequences"], stages, "limit.")
    scope["limit_sequences"] = _of_all_ranks(settled, at_limit, "limit.")
    scope = _record_replicas(settled, candidate, scope, at_limit)
    if isinstance(demand, ServingDemand):
        scope, concurrency = _service(settled, demand, replica, scope, layout.limit)
        record_measuring(ledger, demand, candidate, replica, layout.limit)
    else:
        scope = FINISH.record(ledger, scope | {"sequences": scope["limit_sequences"]})
        concurrency = layout.sequences * scope["replicas"].value
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
        parallelism=division.parallelism,
        nodes_per_replica=division.nodes,
        one_domain=in_domain(candidate.device, division.nodes) or None,
        gpus_per_node=inside,
        memory=memory_budget(scope),
        metrics=_metrics(demand, replica, scope),
        bound_by=bound_by(replica, scope["sequences"].value, layout.limit, count),
        resources=host_resources(settled, candidate.device, inside),
        volumes=(
            models_volume(site, models, count * division.nodes),
            *batch_volumes(settled, site, scope, count),
        ),
        interruption=interruption(settled, site, candidate, cost, restarted(scope), loaded=stored),
        serving=settings(settled, scope, candidate.device.gpu),
        concurrency=int(concurrency),
    )


def _stages(division: Division) -> Quantity:
    if division.nodes == 1 or division.pipeline_stages == 1:
        return Quantity(1.0, "1", "default: a replica has no stages")
    stages = float(division.pipeline_stages)
    return Quantity(stages, "1", "choice: whole stages on each of its nodes")


def _across(settled: Settled[LanguageDemand], replica: Replica) -> Scope:
    """What a replica over nodes has beside one inside a node."""
    names: tuple[str, ...] = ("replica_nodes", "node_gpus", "fabric_rate", "fabric_launch")
    if replica.service.division.data_parallel_size > 1:
        names = ("data_parallel_size", *names)
    return {n: settled.ledger.given(n, replica.scope[n]) for n in names if n in replica.scope}


def _of_all_ranks(settled: Settled[LanguageDemand], at_limit: Scope, prefix: str) -> Quantity:
    """The sequences of a replica, of which each data-parallel group has as many."""
    if at_limit["data_parallel_size"].value == 1:
        return at_limit["sequences"]
    return GROUPS.record(settled.ledger, dict(at_limit), prefix)["all_sequences"]


def _of_all_stages(
    settled: Settled[LanguageDemand], sequences: Quantity, stages: Quantity, prefix: str
) -> Quantity:
    """The sequences of a replica, of which each stage has as many."""
    if stages.value == 1:
        return sequences
    scope = {"sequences": sequences, "pipeline_stages": stages}
    return STAGED.record(settled.ledger, scope, prefix)["replica_sequences"]


def _record_replicas(
    settled: Settled[LanguageDemand],
    candidate: Candidate[LimitedReplica],
    scope: Scope,
    at_limit: Scope,
) -> Scope:
    """Replicas from what must be served, and what they then serve, each at its limit."""
    ledger = settled.ledger
    load, inputs = arriving(settled.demand)
    scope = scope | inputs
    scope |= {n: at_limit[n] for n in ("request_seconds", "time_per_output_token")}
    chosen = settled.demand.overrides.replicas
    scope = load.record(ledger, scope)
    least = REPLICAS(floats(scope))["replicas"]
    if chosen is None and candidate.replicas > least:
        REPLICAS.record(ledger, dict(scope), "least.")
        scope["replicas"] = record_filled(ledger, candidate)
        return CAPACITY.record(ledger, scope)
    scope = REPLICAS.record(ledger, scope)
    scope["replicas"] = settled.settle("replicas", scope["replicas"], chosen, settled.free.replicas)
    return CAPACITY.record(ledger, scope)


def _service(
    settled: Settled[LanguageDemand],
    demand: ServingDemand,
    replica: Replica,
    scope: Scope,
    limit: float,
) -> tuple[Scope, float]:
    """The times at the concurrency that the peak brings, and that of all replicas."""
    ledger = settled.ledger
    if isinstance(demand.arrivals, OpenLoop):
        MEAN_LOAD.record(ledger, scope | {"mean_rate": demand.arrivals.mean})
    running = expected(demand, replica, scope["replicas"].value, limit)
    scope["sequences"] = ledger.given(
        "sequences",
        Quantity(running, "1", "solved: sized_rate / replicas * request_seconds"),
    )
    scope = replica.record_times(ledger, scope)
    return scope, CONCURRENCY.record(ledger, dict(scope))["concurrency"].value


def _record_memory(
    settled: Settled[LanguageDemand], replica: Replica, scope: Scope, at_limit: Scope
) -> Scope:
    """At the limit, not at the expected load: the engine is told to serve what is printed."""
    ledger, overrides, free = settled.ledger, settled.demand.overrides, settled.free
    timed = {name for name, _ in replica.latency.lines}  # recorded with the times
    most = Sheet(tuple(line for line in replica.running.lines if line[0] not in timed))
    derived = most.record(ledger, dict(at_limit))["max_num_seqs"]
    scope["max_num_seqs"] = settled.settle(
        "max_num_seqs", derived, overrides.max_num_seqs, free.max_num_seqs
    )
    scope = replica.step.record(ledger, scope)
    chosen = overrides.max_num_batched_tokens
    scope["max_num_batched_tokens"] = settled.settle(
        "max_num_batched_tokens",
        scope["max_num_batched_tokens"],
        chosen,
        free.max_num_batched_tokens,
    )
    running, tokens = (scope[n].value for n in ("max_num_seqs", "max_num_batched_tokens"))
    why = f"each of {running:,.0f} requests takes a token of a step, and the engine refuses fewer"
    settled.hold(chosen, why, works=tokens >= running)
    return replica.memory.record(ledger, scope)


def _metrics(demand: LanguageDemand, replica: Replica, scope: Scope) -> tuple[Metric, ...]:
    service = isinstance(demand, ServingDemand)
    times = _times(demand, replica, scope) if service else [_run(demand, replica, scope)]
    tokens = demand.tokens_per_second or demand.accepted_tokens_per_second
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


def _times(demand: LanguageDemand, replica: Replica, scope: Scope) -> list[Metric]:
    """Those that it has objectives for, and those of a token always; an answer of one token has
    no time between two."""
    limits = dict(replica.service.limits)
    limits |= {name: limit.value for name, limit in accepted(demand).items()}
    usual = ["time_to_first_token"]
    usual += ["time_per_output_token"] if scope["decoded_tokens"].value > 0 else []
    shown = (*usual, *limits)
    metrics = []
    for name in (n for n in TIMES if n in shown):
        factors, basis = replica.interval(name)
        metrics.append(
            metric(
                name, "s", scope[name].value, factors=factors, basis=basis, limit=limits.get(name)
            )
        )
    return metrics


def _run(demand: LanguageDemand, replica: Replica, scope: Scope) -> Metric:
    limit = demand.limit.shown if isinstance(demand, BatchDemand) else None
    return metric(
        "time_to_finish",
        "s",
        scope["time_to_finish"].value,
        factors=replica.token_factors,
        basis=replica.basis,
        limit=None if limit is None else limit.value,
    )


def settings(settled: Settled[LanguageDemand], scope: Scope, gpu: Gpu) -> Serving:
    """What the engine is told on such GPUs."""
    named = experts.told(settled.demand, gpu)
    return Serving(
        max_model_len=int(scope["max_model_len"]),
        max_num_seqs=int(scope["max_num_seqs"]),
        max_num_batched_tokens=int(scope["max_num_batched_tokens"]),
        gpu_memory_utilization=scope["gpu_memory_utilization"].value,
        kv_cache_dtype=settled.demand.overrides.kv_cache_dtype or "auto",
        port=PORT,
        speculative=settled.demand.speculative,
        moe_runner_backend=named.backend if named else None,
    )


LINKS = ("all_reduce", "crossing", "hops")


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
        "interconnect": sum(times.get(f"{name}_seconds", 0.0) for name in LINKS),
        "engine overhead": times["overhead_seconds"],
    }
    return max(parts, key=lambda name: parts[name])
