"""Prefill and decode in pools of their own: what machines serve so, beside one pool for both.

This answers whether they would pay; `pools.py` plans those that a manifest asks for. Nothing of it
is measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

from gpuplan.plan.records import Split
from gpuplan.sizing.ask.demand import LanguageDemand, ServingDemand
from gpuplan.sizing.ask.parts import ClosedLoop
from gpuplan.sizing.candidates.choose import Candidate, usd_per_hour
from gpuplan.sizing.evidence.formula import canonical
from gpuplan.sizing.evidence.intervals import estimate, inverse
from gpuplan.sizing.hardware.devices import fabric_rate
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.sizing.kinds.serving.nodes import possible
from gpuplan.sizing.kinds.serving.search import replicas, sized_rate
from gpuplan.sizing.physics.serving.replica import Replica

if TYPE_CHECKING:
    from gpuplan.sizing.kinds.serving.pairs import Pair

Over = Literal["links", "fabric"]


def split(demand: LanguageDemand, offer: GpuOffer, site: Site) -> Split | None:
    """The pools that serve most on all nodes of `offer`; None where one half or the other fits
    nowhere."""
    from gpuplan.sizing.kinds.serving.halves import decoders, halves
    from gpuplan.sizing.kinds.serving.pairs import pairs

    nodes, room = offer.node_count, offer.gpus_per_node
    assert nodes is not None, "capacities are asked of nodes"
    made = _made(demand, offer, site)
    tokens, options = decoders(made), []
    for over, rate in _ways(offer, site, nodes):
        own, groups = (1, nodes) if over == "links" else (nodes, 1)
        for prefill, decode in halves(made, tokens, rate):
            tried = pairs(prefill, decode, room, own)
            options += [(groups * p.served, over, p.times(groups)) for p in tried]
    if not options:
        return None
    _, over, best = max(options, key=lambda x: x[0])
    return _record(offer, made[0], best, over, nodes)


def cheaper(demand: ServingDemand, site: Site, winner: Candidate) -> Split | None:
    """The cheapest pools that serve the load, if their nodes cost less than those of `winner`: of
    its GPU, and each as if its nodes were its alone. Of users who wait for their answers, and of a
    number of replicas that is given, nobody says what two pools would have to serve."""
    given = demand.overrides.replicas is not None or isinstance(demand.arrivals, ClosedLoop)
    if given or winner.device.partition or not possible(demand, site):
        return None
    own = winner.device.offer
    limit = _cost(own, winner.nodes)
    offers = (o for o in site.gpus if o.gpu is own.gpu and o.spot == own.spot)
    tried = [(o, _least(demand, o, site)) for o in offers if _cost(o, 1) < limit]
    priced = [(_cost(o, pools.nodes), pools) for o, pools in tried if pools is not None]
    return min((x for x in priced if x[0] < limit), key=lambda x: x[0], default=(limit, None))[1]


def _least(demand: ServingDemand, offer: GpuOffer, site: Site) -> Split | None:
    """The pools on the fewest nodes of `offer` that serve the load; of equals those on fewest
    GPUs."""
    from gpuplan.sizing.kinds.serving.halves import decoders, halves
    from gpuplan.sizing.kinds.serving.pairs import anywhere, in_each

    made, room = _made(demand, offer, site), offer.gpus_per_node
    if not made:
        return None
    rate = sized_rate(demand, made[0], 0.0)
    tokens, options = decoders(made), []
    for over, sent in _ways(offer, site, offer.node_count):
        held = in_each if over == "links" else anywhere
        for prefill, decode in halves(made, tokens, sent):
            if (took := held(prefill, decode, room, rate)) is not None:
                options.append((*took, over))
    if not options:
        return None
    nodes, pair, over = min(options, key=lambda x: (x[0], x[1].gpus))
    if nodes > (offer.node_count or nodes):
        return None
    return _record(offer, made[0], pair, over, nodes)


def _cost(offer: GpuOffer, nodes: int) -> tuple[bool, Decimal]:
    """By the hour, or GPUs where that is not known."""
    gpus = Decimal(nodes * offer.gpus_per_node)
    usd = usd_per_hour(offer, gpus)
    return (True, gpus) if usd is None else (False, usd)


def _record(offer: GpuOffer, one: Replica, pair: Pair, over: Over, nodes: int) -> Split:
    return Split(
        gpu=offer.gpu.identifier,
        node_type=offer.shape_name,
        prefill_replicas=pair.prefills,
        prefill_tensor_parallel_size=pair.prefill.gpus,
        decode_replicas=pair.decodes,
        decode_tensor_parallel_size=pair.decode.gpus,
        over=over,
        nodes=nodes,
        usd_per_hour=usd_per_hour(offer, Decimal(nodes * offer.gpus_per_node)),
        sequences=pair.decode.sequences,
        assured=canonical(pair.served),
        requests_per_second=estimate(
            pair.served * one.slowness, inverse(one.token_factors), "extrapolated"
        ),
        time_to_first_token=canonical(pair.prefill.seconds),
        time_per_output_token=canonical(pair.decode.seconds),
    )


def _made(demand: LanguageDemand, offer: GpuOffer, site: Site) -> list[Replica]:
    """One of each size, on whole GPUs."""
    made = replicas(demand, replace(site, gpus=(offer,)))
    return [r for r in made if not r.device.partition]


def _ways(offer: GpuOffer, site: Site, nodes: int | None) -> Iterator[tuple[Over, float | None]]:
    """How a cache gets to the other pool, and at how many bytes per second of a GPU; None: by the
    links of its kind."""
    yield "links", None
    if site.fabric is not None and nodes != 1:
        yield "fabric", fabric_rate(offer, site.fabric, None).value
