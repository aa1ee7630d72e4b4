"""The chosen layout of a service or batch that reads images, with the evidence of every number."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.plan.model import Alternative, Basis, HostResources, Metric
from gpuplan.sizing.ask.demand import VisionDemand
from gpuplan.sizing.candidates.batching import Answers, record_load
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.replicas import metrics
from gpuplan.sizing.candidates.resources import WANTED_CORES, host_resources
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.data.loading import DECODE_FACTORS
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.evidence.intervals import Factors, inverse, metric
from gpuplan.sizing.evidence.sheet import Scope, floats
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.readers import finish_reader, slowness
from gpuplan.sizing.kinds.vision.load import FINISH, IMAGES, times
from gpuplan.sizing.kinds.vision.search import SizedClassifier, load_limit, replica, usual_cores
from gpuplan.sizing.memory.vision import INTERVAL
from gpuplan.sizing.model.checkpoints import whole_bytes
from gpuplan.sizing.physics.vision.classifier import CORES
from gpuplan.sizing.physics.vision.correction import QUANTITY

_LARGEST = "choice: the most images that memory holds, up to as many as were measured"
_RATES = ("requests_per_second", "images_per_second")


def recorded(
    settled: Settled[VisionDemand],
    site: Site,
    candidate: Candidate[SizedClassifier],
    alternatives: tuple[Alternative, ...],
) -> Sized:
    layout = candidate.evaluated
    demand = settled.demand
    one = replica(demand, candidate.device, site)
    scope, resources = _record_replica(settled, site, candidate)
    scope["slowness"] = slowness(settled, QUANTITY, one.interval)
    answers = Answers(IMAGES, times(demand), FINISH)
    limit = load_limit(demand, layout)
    scope, concurrency = record_load(settled, candidate, scope, limit, answers)
    tokens, batch = demand.model.tokens, int(scope["batch"])
    factors, basis = one.interval
    return finish_reader(
        settled,
        site,
        candidate,
        alternatives,
        scope,
        checkpoint=whole_bytes,
        metrics=(
            *metrics(demand, scope, one.interval, *_RATES),
            *parts(scope, inverse(factors), basis),
        ),
        memory_interval=INTERVAL,
        bound_by=bound_by(scope),
        concurrency=concurrency,
        resources=resources,
        max_model_len=tokens,
        max_num_seqs=batch,
        max_num_batched_tokens=batch * tokens,
        images=int(demand.images),
    )


def _record_replica(
    settled: Settled[VisionDemand], site: Site, candidate: Candidate[SizedClassifier]
) -> tuple[Scope, HostResources]:
    """Times and memory, with the images of a step and the cores that decode."""
    ledger, demand, device = settled.ledger, settled.demand, candidate.device
    one = replica(demand, device, site)
    batch = settled.choice(
        "max_num_seqs",
        Quantity(candidate.evaluated.batch, "1", _LARGEST),
        demand.overrides.max_num_seqs,
        settled.free.max_num_seqs,
    )
    scope = one.record_steps(ledger, batch)
    wanted = WANTED_CORES
    if not usual_cores(one):
        wanted = CORES.record(ledger, scope | {"usual_cores": WANTED_CORES})["wanted_cores"]
    resources = host_resources(settled, device, 1, wanted)
    cores = Quantity(float(resources.cpu_cores), "1", f"quantity:{ledger.prefix}.cpu_cores")
    return one.record(ledger, scope, cores), resources


def parts(scope: Scope, factors: Factors, basis: Basis) -> Iterator[Metric]:
    """Images per second of each thing that may hold up a replica."""
    known: dict[str, tuple[Factors, Basis]] = {
        "gpu_images_per_second": (factors, basis),
        "decoded_images_per_second": (DECODE_FACTORS, "extrapolated"),
        "stored_images_per_second": ((1.0, 1.0), "derived"),
    }
    for name, (ends, kind) in known.items():
        if name in scope:
            yield metric(name, "1/s", scope[name].value, factors=ends, basis=kind)


def bound_by(scope: Scope) -> str:
    """What more of would help most: storage, the cores that decode, or the larger part of the
    GPU's time."""
    values = floats(scope)
    slowest = values["service_seconds"]
    if values["storage_seconds"] >= slowest:
        return "storage"
    if values["host_seconds"] >= slowest:
        return "decoding on CPU cores"
    computed = values["matmul_seconds"] + values["attention_seconds"] + values["stem_seconds"]
    return "compute" if computed > values["traffic_seconds"] else "memory bandwidth"
