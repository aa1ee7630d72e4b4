"""The chosen replicas of prefill and of decode, with the evidence of every number.

Nothing of it is measured: times are those of the formulas, intervals those of a replica that does
both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuplan.plan.model import Alternative, Disaggregation, Metric, Parallelism
from gpuplan.plan.times import TIMES
from gpuplan.sizing.ask.demand import ServingDemand, accepted
from gpuplan.sizing.ask.parts import OpenLoop
from gpuplan.sizing.candidates.assemble import finish, record_cost, storage
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.interruptions import interruption, restarted
from gpuplan.sizing.candidates.needs import record_start
from gpuplan.sizing.candidates.replicas import memory_budget
from gpuplan.sizing.candidates.resources import host_resources, models_volume
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.candidates.sheets import MEAN_LOAD
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.evidence.formula import Quantity, canonical
from gpuplan.sizing.evidence.halving import halved
from gpuplan.sizing.evidence.intervals import inverse, metric
from gpuplan.sizing.evidence.sheet import Scope, sheet
from gpuplan.sizing.hardware.devices import fabric_rate
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.serving import needs
from gpuplan.sizing.kinds.serving.halves import ONE_BY_ONE, cached_token_bytes, first_token
from gpuplan.sizing.kinds.serving.load import arriving
from gpuplan.sizing.kinds.serving.pools import PooledReplica
from gpuplan.sizing.kinds.serving.record import settings
from gpuplan.sizing.memory.serving import memory_metric
from gpuplan.sizing.model.checkpoints import published_bytes
from gpuplan.sizing.physics.serving.replica import Replica
from gpuplan.sizing.physics.serving.scopes import decode_scope

_COUNTS = sheet("""
    prefill_rate: 1/s = most_prefill_load / (prefill_work_seconds * slowness)
        # of one replica, as busy as its objective allows, as slow as the confidence allows
    decode_rate: 1/s = most_sequences / (output_mean * decode_seconds * slowness)
        # Little's law, of one replica with as many answers as its objective and memory allow
    prefill_replicas: 1 = max(1, ceil(sized_rate / prefill_rate - 1e-9))
        # that take the prompts of the peak
    decode_replicas: 1 = max(1, ceil(sized_rate / decode_rate - 1e-9))
        # that write the answers of the peak
    replicas: 1 = prefill_replicas + decode_replicas  # all of one size
    requests_per_second: 1/s = slowness
        * min(prefill_replicas * prefill_rate, decode_replicas * decode_rate)
        # what the slower kind is likely to serve
""")
_PEAK = sheet("""
    prefill_load: 1 = sized_rate / prefill_replicas * prefill_work_seconds
        # part of the time in which a replica has a prompt, at the peak
    prompt_step_seconds: s = prefill_work_seconds  # nothing but prompts is waited for
    prompt_cache_bytes: B = cached_token_bytes * input_mean  # of a mean prompt, on one GPU
""")
_AT_PEAK = sheet("""
    token_seconds: s = decode_seconds  # no prompt comes between two tokens
    time_per_output_token: s = token_seconds  # of an answer after its first token
    concurrency: 1 = ceil(sequences * decode_replicas)  # answers at once at the peak
    output_tokens_per_second: 1/s = output_mean * requests_per_second  # of all replicas
""")
_PACE = "{}: s = token_seconds  # of every answer: how full a replica is by chance is left out"


def recorded(
    settled: Settled[ServingDemand],
    site: Site,
    candidate: Candidate[PooledReplica],
    alternatives: tuple[Alternative, ...],
) -> Sized:
    layout = candidate.evaluated
    assert site.fabric is not None
    demand, ledger, overrides = settled.demand, settled.ledger, settled.demand.overrides
    size = settled.choice(
        "tensor_parallel_size",
        Quantity(float(candidate.gpus), "1", "choice: the cheapest that meets every objective"),
        overrides.tensor_parallel_size,
        settled.free.tensor_parallel_size,
    )
    one = ledger.given(
        "pipeline_stages", Quantity(1.0, "1", "default: a replica of a pool has no stages")
    )
    replica, scope = layout.replica, {}
    scope = replica.record(ledger, {"tensor_parallel_size": size, "pipeline_stages": one})
    sent = fabric_rate(candidate.device.offer, site.fabric, None)
    scope["transfer_rate"] = ledger.given("prefill.transfer_rate", sent)
    scope = _record_counts(settled, layout, scope)
    scope = _record_times(settled, layout, scope)
    scope = _record_memory(settled, layout, scope)
    if isinstance(demand.arrivals, OpenLoop):
        MEAN_LOAD.record(ledger, scope | {"mean_rate": demand.arrivals.mean})
    cost = record_cost(settled, candidate, scope["replicas"])
    stored = published_bytes(ledger, demand.model)
    models = storage(settled, "model_storage_bytes", stored, overrides.model_storage, stored)
    record_start(settled, site, candidate.device, stored=stored, weights=scope["weights_bytes"])
    needs.TRAFFIC.record(ledger, scope | needs.INPUTS, "needs.")
    return finish(
        settled,
        site,
        candidate,
        alternatives,
        cost,
        parallelism=candidate.parallelism or Parallelism(),
        memory=memory_budget(scope),
        metrics=_metrics(demand, replica, scope),
        bound_by="prompts" if _prompts_bind(scope) else "answers",
        resources=host_resources(settled, candidate.device, candidate.gpus),
        volumes=(models_volume(site, models, int(scope["replicas"])),),
        interruption=interruption(settled, site, candidate, cost, restarted(scope), loaded=stored),
        serving=settings(settled, scope, candidate.device.gpu),
        disaggregation=Disaggregation(
            prefill_replicas=int(scope["prefill_replicas"]),
            decode_replicas=int(scope["decode_replicas"]),
            prompt_cache_bytes=scope["prompt_cache_bytes"].value,
            transfer_bytes_per_s=sent.value,
        ),
        concurrency=int(scope["concurrency"]),
    )


def _record_counts(settled: Settled[ServingDemand], layout: PooledReplica, scope: Scope) -> Scope:
    """Replicas of both kinds, each as busy as it may be."""
    ledger, replica, pair = settled.ledger, layout.replica, layout.pair
    load, inputs = arriving(settled.demand)
    scope = load.record(ledger, scope | inputs)
    most = Quantity(layout.limit, "1", "choice: the most that memory and objectives allow")
    busy = Quantity(canonical(pair.prefill.load), "1", "solved: the first token is in time")
    scope["most_sequences"] = ledger.given("decode.most_sequences", most)
    scope["most_prefill_load"] = ledger.given("prefill.most_load", busy)
    at = decode_scope(scope | {"sequences": scope["most_sequences"]})
    done = replica.decode.record(ledger, at, "limit.decode.")
    scope["decode_seconds"] = done["seconds"]
    return _COUNTS.record(ledger, scope)


def _record_times(settled: Settled[ServingDemand], layout: PooledReplica, scope: Scope) -> Scope:
    """What a user sees at the peak."""
    ledger, replica = settled.ledger, layout.replica
    rate = scope["sized_rate"].value / scope["decode_replicas"].value
    running = Quantity(
        _running(replica, rate, layout.limit),
        "1",
        "solved: sized_rate / decode_replicas * output_mean * decode_seconds",
    )
    scope["sequences"] = ledger.given("sequences", running)
    done = replica.decode.record(ledger, decode_scope(scope), "decode.")
    scope["decode_seconds"] = done["seconds"]
    scope = _AT_PEAK.record(ledger, scope)
    each = Quantity(
        canonical(cached_token_bytes(replica)), "B", "solved: cached bytes of a request's tokens"
    )
    scope["cached_token_bytes"] = ledger.given("prefill.cached_token_bytes", each)
    scope = _PEAK.record(ledger, scope)
    scope["first_prefill_factor"] = ONE_BY_ONE
    names = tuple(_shown(settled.demand))
    times = first_token(names, bursts=False) + sheet("\n".join(map(_PACE.format, _paces(names))))
    return times.record(ledger, scope)


def _running(replica: Replica, rate: float, limit: float) -> float:
    """Answers at once on a decode replica to which `rate` requests per second come, to four
    digits."""
    output = replica.service.tokens.output_mean.value

    def short(sequences: float) -> bool:
        return rate * output * replica.times(sequences)["decode_seconds"] > sequences

    _, enough = halved(0.0, limit, short, 1e-6 * limit)
    return float(f"{enough:.4g}")


def _record_memory(settled: Settled[ServingDemand], layout: PooledReplica, scope: Scope) -> Scope:
    """Of a decode replica at its most sequences; one of prefill has the same settings."""
    ledger, replica = settled.ledger, layout.replica
    most = {"sequences": scope["most_sequences"]}
    scope["max_num_seqs"] = replica.running.record(ledger, scope | most)["max_num_seqs"]
    scope = replica.step.record(ledger, scope)
    return replica.memory.record(ledger, scope)


def _shown(demand: ServingDemand) -> dict[str, float]:
    """The times that have an objective, and those that are always told."""
    limits = {name: limit.value for name, limit in demand.objectives.limits.items()}
    return limits | {name: limit.value for name, limit in accepted(demand).items()}


def _paces(names: Iterable[str]) -> Iterator[str]:
    """Those that are percentiles of the time per output token."""
    return (n for n in names if TIMES[n][0] == "time_per_output_token" and TIMES[n][1] != "mean")


def _prompts_bind(scope: Scope) -> bool:
    """Whether the pool of prompts has less room than the one of answers."""
    prefill = scope["prefill_replicas"].value * scope["prefill_rate"].value
    return prefill < scope["decode_replicas"].value * scope["decode_rate"].value


def _metrics(demand: ServingDemand, replica: Replica, scope: Scope) -> tuple[Metric, ...]:
    limits = _shown(demand)
    shown = {"time_to_first_token", "time_per_output_token", *limits}
    times = [
        metric(
            name,
            "s",
            scope[name].value,
            factors=replica.interval(name)[0],
            basis="extrapolated",
            limit=limits.get(name),
        )
        for name in TIMES
        if name in shown
    ]
    tokens = demand.tokens_per_second or demand.accepted_tokens_per_second
    rates = (
        ("requests_per_second", scope["sized_rate"].value),
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
                basis="extrapolated",
                limit=limit,
                sense="at_least",
            )
            for name, limit in rates
        ),
        memory_metric(scope),
    )
