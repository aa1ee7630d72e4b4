"""The inverse question: how many requests per second the machines that are there can serve.

Each kind of node is asked alone: the layout of a replica that meets every objective, as many
replicas as the nodes hold, and Little's law at the limit of each.
"""

from __future__ import annotations

import math
from dataclasses import replace

from gpuplan.frozen import frozen
from gpuplan.plan.capacity import Capacity
from gpuplan.plan.records import Basis, Split
from gpuplan.sizing.ask.demand import (
    DiffusionDemand,
    ImageServiceDemand,
    LanguageDemand,
    ModelDemand,
    PoolingDemand,
    PoolingServiceDemand,
    ServingDemand,
    SpeechDemand,
    SpeechServiceDemand,
    VisionDemand,
    VisionServiceDemand,
)
from gpuplan.sizing.ask.parts import ClosedLoop
from gpuplan.sizing.candidates.choose import MOST_REPLICAS, Candidate, best, furthest
from gpuplan.sizing.decide.tried import tried
from gpuplan.sizing.decide.without import Name, without
from gpuplan.sizing.evidence.formula import canonical
from gpuplan.sizing.evidence.intervals import Factors, estimate, inverse
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.sizing.kinds.images.search import SizedPipeline, load_limit, slowness
from gpuplan.sizing.kinds.pooling import search as readers
from gpuplan.sizing.kinds.pooling.search import SizedReader
from gpuplan.sizing.kinds.serving.limit import LimitedReplica
from gpuplan.sizing.kinds.serving.split import split
from gpuplan.sizing.kinds.speech import search as transcribers
from gpuplan.sizing.kinds.speech.search import LimitedTranscriber
from gpuplan.sizing.kinds.vision import search as classifiers
from gpuplan.sizing.kinds.vision.search import SizedClassifier

# Overrides that belong to a load or a model, not to the machines that are asked.
OWN: tuple[Name, ...] = ("replicas",)
STAGES: tuple[Name, ...] = ("pipeline_parallel_size",)  # of both pools one


def capacities(
    demand: ModelDemand, site: Site, nodes: int, *, splitting: bool = False
) -> tuple[Capacity, ...]:
    """Each kind of node that may be used, the most requests first. Where nodes may be bought
    without limit, `nodes` of them are asked. With `splitting`, also what they would serve as two
    pools; so too where the workload asks for those."""
    if isinstance(demand, ServingDemand) and demand.disaggregated:
        demand, splitting = replace(demand, disaggregated=False), True
    asked = without(demand, OWN)
    offers = tuple(o if o.node_count else replace(o, node_count=nodes) for o in site.gpus)
    bought = {id(new) for new, old in zip(offers, site.gpus, strict=True) if not old.node_count}
    answers = []
    for offer, group in tried(asked, replace(site, gpus=offers)):
        if demand.overrides.gpu in (None, offer.gpu.identifier):
            one = _capacity(asked, offer, group, assumed=id(offer) in bought)
            answers.append(replace(one, split=_split(asked, offer, site)) if splitting else one)
    return tuple(sorted(answers, key=lambda c: (-(c.assured or 0.0), c.gpu, c.gpus_per_node)))


def _split(demand: ModelDemand, offer: GpuOffer, site: Site) -> Split | None:
    return (
        split(without(demand, STAGES), offer, site) if isinstance(demand, LanguageDemand) else None
    )


@frozen
class Served:
    """Replicas of a layout that the nodes hold. `rate` is of one replica at its limit, `slowness`
    the factor on its time at the wanted confidence, `factors` the interval of that time."""

    candidate: Candidate
    replicas: int
    rate: float
    slowness: float
    factors: Factors
    basis: Basis

    @property
    def likely(self) -> float:
        return self.replicas * self.rate

    @property
    def assured(self) -> float:
        return self.likely / self.slowness


def _capacity(
    demand: ModelDemand, offer: GpuOffer, group: tuple[Candidate, ...], *, assumed: bool
) -> Capacity:
    """The layout that serves most on the nodes of `offer`; of equals, the first."""
    served = [_served(demand, c) for c in group if c.detail is not None]
    held = [s for s in served if s.replicas]
    best_one = max(held, key=lambda s: s.assured, default=None)
    capacity = Capacity(
        gpu=offer.gpu.identifier,
        node_type=offer.node_type,
        nodes=_nodes(offer),
        gpus_per_node=offer.gpus_per_node,
        assumed=assumed,
        confidence=demand.confidence.value,
    )
    if best_one is None:
        stopped = furthest(group)
        return replace(capacity, shortfalls=stopped.shortfalls if stopped else ())
    return replace(
        capacity,
        partition=best_one.candidate.device.partition,
        tensor_parallel_size=best_one.candidate.tensor_parallel_size,
        replicas=best_one.replicas,
        assured=canonical(best_one.assured),
        requests_per_second=estimate(best_one.likely, inverse(best_one.factors), best_one.basis),
        users=_users(demand, best_one),
    )


def _users(demand: ModelDemand, served: Served) -> int | None:
    """Those of a closed loop, each with a request or a pause (Little's law)."""
    layout = served.candidate.detail
    loop = demand.arrivals if isinstance(demand, ServingDemand) else None
    if not (isinstance(loop, ClosedLoop) and isinstance(layout, LimitedReplica)):
        return None
    pause = loop.think_time.value
    seconds = layout.sequences / served.rate * served.slowness
    return math.floor(served.assured * (pause + seconds) + 1e-9)


def _nodes(offer: GpuOffer) -> int:
    assert offer.node_count is not None, "capacities are asked of so many nodes"
    return offer.node_count


def _replicas(candidate: Candidate) -> int:
    """As many as the nodes hold, each inside one or on whole ones, and as are planned one by
    one."""
    device = candidate.device
    room = device.offer.gpus_per_node
    if candidate.gpus > room:
        return _nodes(device.offer) // -(-candidate.gpus // room)
    each = room * device.per_gpu if device.partition else room // candidate.gpus
    return min(each * _nodes(device.offer), math.floor(MOST_REPLICAS))


def _served(demand: ModelDemand, candidate: Candidate) -> Served:
    count, layout = _replicas(candidate), candidate.detail
    if isinstance(layout, LimitedReplica):
        replica = layout.replica
        rate = layout.sequences / replica.times(layout.limit)["request_seconds"]
        slow, factors, basis = replica.slowness, replica.token_factors, replica.basis
        return Served(candidate, count, rate, slow, factors, basis)
    if isinstance(layout, SizedReader) and isinstance(demand, PoolingDemand):
        service = isinstance(demand, PoolingServiceDemand)
        busy = readers.load_limit(demand, layout) if service else 1.0
        rate = busy / layout.values["service_seconds"]
        factors, basis = layout.reader.interval
        return Served(candidate, count, rate, readers.slowness(demand, layout), factors, basis)
    if isinstance(layout, LimitedTranscriber) and isinstance(demand, SpeechDemand):
        service = isinstance(demand, SpeechServiceDemand)
        rate = layout.rate if service else transcribers.full_rate(layout.values)
        factors, basis = layout.transcriber.interval
        slow = transcribers.slowness(demand, layout.transcriber)
        return Served(candidate, count, rate, slow, factors, basis)
    if isinstance(layout, SizedClassifier) and isinstance(demand, VisionDemand):
        service = isinstance(demand, VisionServiceDemand)
        busy = classifiers.load_limit(demand, layout) if service else 1.0
        rate = busy / layout.values["service_seconds"]
        factors, basis = layout.classifier.interval
        slow = classifiers.slowness(demand, layout)
        return Served(candidate, count, rate, slow, factors, basis)
    assert isinstance(layout, SizedPipeline)
    assert isinstance(demand, DiffusionDemand)
    service = isinstance(demand, ImageServiceDemand)
    busy = load_limit(demand, layout) if service else 1.0
    rate = busy * layout.batch / layout.values["batch_seconds"]
    factors, basis = layout.pipeline.corrected.interval
    return Served(candidate, count, rate, slowness(demand, layout), factors, basis)


def choice(demand: ModelDemand, site: Site) -> tuple[Candidate | None, Candidate | None]:
    """The cheapest layout that serves the demand on the site, or None and what came nearest."""
    candidates = [c for _, group in tried(demand, site) for c in group]
    winner = best(candidates)
    return winner, None if winner else furthest(candidates)
