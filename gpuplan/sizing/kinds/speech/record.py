"""The chosen layout of a service or batch that writes down audio, with the evidence of every
number."""

from __future__ import annotations

from gpuplan.plan.model import Alternative
from gpuplan.sizing.ask.demand import SpeechDemand, SpeechServiceDemand, accepted, asked
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.replicas import metrics, record_replicas
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.candidates.sheets import MEAN_LOAD, RUNNING
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.evidence.sheet import Scope, sheet
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.readers import finish_reader, slowness
from gpuplan.sizing.kinds.speech.load import CAPACITY, FINISH, FULL, needed
from gpuplan.sizing.kinds.speech.search import LATENCY, LimitedTranscriber, replica, times_of
from gpuplan.sizing.memory.engines import step_tokens
from gpuplan.sizing.memory.pooling import INTERVAL
from gpuplan.sizing.model.checkpoints import whole_bytes
from gpuplan.sizing.physics.speech.transcriber import MEMORY, QUANTITY

_SOLVED = "solved: the most requests of a replica that keep the objectives, within 95 %"
_SHARED = "solved: requests whose windows share a replica evenly (Kelly 1979)"
_RATES = ("requests_per_second", "audio_rate")
_STEP = sheet("""
    max_num_batched_tokens: 1 = max(default_step_tokens, positions)
        # the engine's default of a server, at least the positions of a window
""")


def recorded(
    settled: Settled[SpeechDemand],
    site: Site,
    candidate: Candidate[LimitedTranscriber],
    alternatives: tuple[Alternative, ...],
) -> Sized:
    layout = candidate.evaluated
    ledger, demand = settled.ledger, settled.demand
    one = replica(demand, candidate.device)
    base = one.record(ledger)
    scope = _record_limit(settled, layout, base)
    scope["slowness"] = slowness(settled, QUANTITY, one.interval)
    scope = record_replicas(settled, candidate, needed(demand), scope)
    concurrency = scope["replicas"].value * layout.places
    if isinstance(demand, SpeechServiceDemand):
        scope = CAPACITY.record(ledger, scope)
        rate = scope["sized_rate"].value / scope["replicas"].value
        times = times_of(layout.transcriber, layout.places)(rate)
        for name in (LATENCY, *(asked(demand) | accepted(demand))):
            seconds = Quantity(float(f"{times[name]:.6g}"), "s", _SHARED)
            scope[name] = ledger.given(name, seconds)
        scope = RUNNING.record(ledger, scope)
        MEAN_LOAD.record(ledger, scope | {"mean_rate": demand.arrivals.mean})
        concurrency = scope["concurrency"].value
    else:
        scope = (FULL + FINISH).record(ledger, scope)
    device = candidate.device
    steps = step_tokens(one.engine, device.gpu.identifier, device.gpu.memory_bytes.value)
    scope = _STEP.record(ledger, scope | steps)
    return finish_reader(
        settled,
        site,
        candidate,
        alternatives,
        scope,
        checkpoint=whole_bytes,
        metrics=metrics(demand, scope, one.interval, *_RATES),
        memory_interval=INTERVAL,
        bound_by=_bound_by(scope),
        concurrency=concurrency,
        max_model_len=demand.model.decoder.context_length,
        max_num_seqs=int(scope["max_num_seqs"]),
        max_num_batched_tokens=int(scope["max_num_batched_tokens"]),
        audio=True,
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
