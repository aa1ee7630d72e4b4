"""A service whose prompts and answers have replicas of their own, as its manifest asks: the same
layout for both, inside a node, and every cache over the fabric.

Any prefill replica hands its cache to any decode replica, as the router chooses, so the links of a
node are not counted on. Replicas of both kinds have one size: NIXL asks of unlike ones what depends
on the model and its attention (vLLM, docs/features/nixl_connector_compatibility.md).
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.frozen import frozen
from gpuplan.plan.model import Flip, Shortfall
from gpuplan.plan.times import field_of
from gpuplan.sizing.ask.demand import ServingDemand
from gpuplan.sizing.candidates.choose import Candidate, Merit, nodes_gate
from gpuplan.sizing.candidates.devices import devices
from gpuplan.sizing.candidates.gates import NO_FABRIC, refused, stopped
from gpuplan.sizing.evidence.formula import canonical
from gpuplan.sizing.hardware.devices import Device, fabric_rate
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.sizing.kinds.serving.halves import Decoder, decoders, halves, soonest
from gpuplan.sizing.kinds.serving.limit import LimitedReplica, first_gate, holds
from gpuplan.sizing.kinds.serving.pairs import Pair
from gpuplan.sizing.kinds.serving.search import (
    LAYOUT,
    MEMORY,
    NODES,
    OBJECTIVE,
    PRECISION,
    inside,
    layout_gate,
    precision_gate,
    service,
    sized_rate,
    sizes,
)
from gpuplan.sizing.physics.serving.replica import Replica


@frozen
class PooledReplica(LimitedReplica):
    """`limit` is of a decode replica; `pair` are the replicas of both kinds, `sent` the bytes of a
    cache that a GPU sends per second."""

    pair: Pair
    sent: float


def candidates(
    demand: ServingDemand, site: Site
) -> list[tuple[GpuOffer, list[Candidate[PooledReplica]]]]:
    """Every whole GPU and tensor-parallel size of every offer."""
    return [
        (offer, [c for d in devices(demand, offer, site) for c in _sizes(demand, d, site)])
        for offer in site.gpus
    ]


def _sizes(demand: ServingDemand, device: Device, site: Site) -> Iterator[Candidate[PooledReplica]]:
    if device.partition is not None:
        return
    gate = precision_gate(demand, device)
    if gate or site.fabric is None:
        yield refused(demand, device, 1, gate or NO_FABRIC, passed=PRECISION)
        return
    sent = fabric_rate(device.offer, site.fabric, None).value
    for gpus in sizes(demand, device):
        yield _candidate(demand, device, gpus, sent)


def _candidate(
    demand: ServingDemand, device: Device, gpus: int, sent: float
) -> Candidate[PooledReplica]:
    division = inside(demand, gpus)
    if gate := layout_gate(demand, device, division):
        return refused(demand, device, gpus, gate, passed=LAYOUT, parallelism=division.parallelism)
    replica = Replica(service(demand, device, division))
    tokens = decoders((replica,))
    pair = _fewest(demand, replica, tokens, sent)
    if pair is None:
        gate, flip, passed = _missed(replica, tokens, sent)
        sizes_of = division.parallelism
        return refused(demand, device, gpus, gate, passed=passed, flip=flip, parallelism=sizes_of)
    layout = PooledReplica(replica, float(pair.decode.sequences), pair, sent)
    candidate = Candidate(
        device=device,
        gpus=gpus,
        parallelism=division.parallelism,
        replicas=pair.prefills + pair.decodes,
        isolation=demand.isolation,
        detail=layout,
        merit=Merit(lambda: _merit(demand, layout)),
    )
    gate, flip = nodes_gate(candidate)
    return stopped(candidate, gate, passed=NODES, flip=flip)


def _fewest(
    demand: ServingDemand, replica: Replica, tokens: list[Decoder], sent: float
) -> Pair | None:
    """The fewest replicas of both kinds that serve the peak."""
    rate = sized_rate(demand, replica, 0.0)
    pairs = [
        Pair(prefill, decode, prefill.serving(rate), decode.serving(rate))
        for prefill, decode in halves((replica,), tokens, sent)
    ]
    return min(pairs, key=lambda p: (p.gpus, -p.served), default=None)


def _missed(
    replica: Replica, tokens: list[Decoder], sent: float
) -> tuple[tuple[Shortfall, ...], Flip | None, int]:
    """Why no two replicas serve: what a request alone does not meet, at the wanted confidence."""
    if not holds(replica, 1):
        return *first_gate(replica), MEMORY
    gate, flip = first_gate(replica)
    if gate or not tokens:
        return gate, flip, OBJECTIVE
    # In time where nothing has to be handed over, and not where it has.
    limits, times = soonest(replica, tokens[0][1].seconds, sent=sent)
    name = next(n for n, limit in limits.items() if times[n] > limit)
    slow, limit = next((slow, limit) for n, limit, slow in replica.limits if n == name)
    value = canonical(times[name] * slow)
    short = Shortfall(resource=name, requested=value, used=0.0, capacity=limit, unit="s")
    return (short,), Flip(quantity=field_of(name), now=limit, needed=value, unit="s"), OBJECTIVE


def _merit(demand: ServingDemand, layout: PooledReplica) -> tuple[float, float]:
    """What the pools serve over what they must, and about how long a mean request takes."""
    pair, replica = layout.pair, layout.replica
    answer = demand.lengths.output_mean.value * pair.decode.seconds
    room = pair.served / sized_rate(demand, replica, 0.0)
    return room, pair.prefill.seconds + answer
