"""The chosen layout of a service or batch that writes down audio, with the evidence of every
number."""

from __future__ import annotations

from gpuplan.plan.model import Alternative, Serving
from gpuplan.sizing.ask.demand import SpeechDemand, SpeechServiceDemand
from gpuplan.sizing.candidates.assemble import PORT, finish, record_cost, storage
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.interruptions import interruption, restarted
from gpuplan.sizing.candidates.needs import record_start
from gpuplan.sizing.candidates.replicas import memory_budget, metrics, record_replicas
from gpuplan.sizing.candidates.resources import host_resources, models_volume
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.candidates.sheets import MEAN_LOAD, RUNNING
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.evidence.intervals import record_slowness
from gpuplan.sizing.evidence.sheet import Scope, sheet
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.batches import batch_volumes
from gpuplan.sizing.kinds.speech.load import CAPACITY, FINISH, FULL, needed
from gpuplan.sizing.kinds.speech.search import LimitedTranscriber, latency_of, replica
from gpuplan.sizing.memory.margin import gpu_memory_metric
from gpuplan.sizing.memory.pooling import INTERVAL
from gpuplan.sizing.memory.serving import step_tokens
from gpuplan.sizing.model.checkpoints import whole_bytes
from gpuplan.sizing.physics.speech.transcriber import MEMORY, QUANTITY

_SOLVED = "solved: the most requests of a replica that keep the mean latency, within 95 %"
_SHARED = "solved: requests whose windows share a replica evenly (Kelly 1979)"
_RATES = ("requests_per_second", "audio_rate")
_STEP = sheet("""
    max_num_batched_tokens: 1 = max(default_step_tokens, positions)
        # the engine's default of a server, at least the positions of a window
""")


def write(
    settled: Settled[SpeechDemand],
    site: Site,
    candidate: Candidate,
    alternatives: tuple[Alternative, ...],
) -> Sized:
    layout = candidate.detail
    assert isinstance(layout, LimitedTranscriber)
    ledger, demand = settled.ledger, settled.demand
    one = replica(demand, candidate.device)
    base = one.record(ledger)
    scope = _record_limit(settled, layout, base)
    factors, basis = one.interval
    cited = f"90 % interval of {QUANTITY.replace('_', ' ')}, {basis}"
    scope["slowness"] = record_slowness(ledger, factors, demand.confidence.value, cited)
    scope = record_replicas(settled, candidate, needed(demand), scope)
    concurrency = scope["replicas"].value * layout.places
    if isinstance(demand, SpeechServiceDemand):
        scope = CAPACITY.record(ledger, scope)
        rate = scope["sized_rate"].value / scope["replicas"].value
        seconds = latency_of(layout.transcriber, layout.places)(rate)
        latency = Quantity(float(f"{seconds:.6g}"), "s", _SHARED)
        scope["request_latency"] = ledger.given("request_latency", latency)
        scope = RUNNING.record(ledger, scope)
        MEAN_LOAD.record(ledger, scope | {"mean_rate": demand.arrivals.mean})
        concurrency = scope["concurrency"].value
    else:
        scope = (FULL + FINISH).record(ledger, scope)
    device = candidate.device
    steps = step_tokens(one.engine, device.gpu.identifier, device.gpu.memory_bytes.value)
    scope = _STEP.record(ledger, scope | steps)
    cost = record_cost(settled, candidate, scope["replicas"])
    stored = whole_bytes(ledger, demand.model)
    chosen = demand.overrides.model_storage
    models = storage(settled, "model_storage_bytes", stored, chosen, stored)
    weights, count = scope["weights_bytes"], int(scope["replicas"])
    record_start(settled, site, device, stored=stored, weights=weights)
    return finish(
        settled,
        site,
        candidate,
        alternatives,
        cost,
        memory=memory_budget(scope),
        metrics=(
            *metrics(demand, scope, one.interval, *_RATES),
            gpu_memory_metric(scope, INTERVAL, "extrapolated"),
        ),
        bound_by=_bound_by(scope),
        resources=host_resources(settled, device, 1),
        volumes=(models_volume(site, models, count), *batch_volumes(settled, site, scope, count)),
        interruption=interruption(settled, site, candidate, cost, restarted(scope), loaded=stored),
        serving=Serving(
            max_model_len=demand.model.decoder.context_length,
            max_num_seqs=int(scope["max_num_seqs"]),
            max_num_batched_tokens=int(scope["max_num_batched_tokens"]),
            gpu_memory_utilization=scope["gpu_memory_utilization"].value,
            kv_cache_dtype="auto",
            port=PORT,
            audio=True,
        ),
        concurrency=max(1, int(concurrency)),
    )


def _record_limit(settled: Settled[SpeechDemand], layout: LimitedTranscriber, base: Scope) -> Scope:
    """Times and memory with every place taken."""
    ledger, one = settled.ledger, layout.transcriber
    why = "choice: the most windows at once that memory holds, up to the engine's default"
    places = settled.choice(
        "max_num_seqs",
        Quantity(layout.places, "1", why),
        settled.demand.overrides.max_num_seqs,
        settled.free.max_num_seqs,
    )
    scope = one.record_times(ledger, base | {"sequences": places})
    if isinstance(settled.demand, SpeechServiceDemand):
        solved = Quantity(layout.rate, "1/s", _SOLVED)
        scope["limit_rate"] = ledger.given("limit_rate", solved)
    return MEMORY.record(ledger, scope | {"max_num_seqs": places})


def _bound_by(scope: Scope) -> str:
    """The larger part of a window: what reads it computes, what writes it reads memory."""
    reading = scope["reading_seconds"].value > scope["writing_seconds"].value
    return "compute" if reading else "memory bandwidth"
