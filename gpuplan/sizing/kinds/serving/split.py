"""Prefill and decode in pools of their own: what machines serve so, beside one pool for both.

No backend writes such pools: this answers whether they would pay. Nothing of it is measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from gpuplan.plan.records import Split
from gpuplan.sizing.ask.demand import LanguageDemand, ServingDemand
from gpuplan.sizing.ask.parts import ClosedLoop
from gpuplan.sizing.candidates.choose import MICRO, Candidate
from gpuplan.sizing.evidence.formula import canonical
from gpuplan.sizing.evidence.intervals import estimate, inverse
from gpuplan.sizing.hardware.devices import fabric_rate
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.sizing.kinds.serving.halves import halves
from gpuplan.sizing.kinds.serving.nodes import possible
from gpuplan.sizing.kinds.serving.pairs import Pair, anywhere, in_each, pairs
from gpuplan.sizing.kinds.serving.search import replicas, sized_rate
from gpuplan.sizing.physics.serving.replica import Replica

SMALLEST = 2  # GPUs of two pools


def split(demand: LanguageDemand, offer: GpuOffer, site: Site) -> Split | None:
    """The pools that serve most on all nodes of `offer`; None where one half or the other fits
    nowhere."""
    nodes, room = offer.node_count, offer.gpus_per_node
    assert nodes is not None, "capacities are asked of nodes"
    made = _made(demand, offer, site)
    found = []
    for over, rate in _ways(offer, site, nodes):
        own, groups = (1, nodes) if over == "links" else (nodes, 1)
        for prefill, decode in halves(made, rate):
            tried = pairs(prefill, decode, room, own)
            found += [(groups * p.served, over, p.times(groups)) for p in tried]
    if not found:
        return None
    _, over, best = max(found, key=lambda x: x[0])
    return _record(offer, made[0], best, over, nodes)


def cheaper(demand: ServingDemand, site: Site, winner: Candidate) -> Split | None:
    """The cheapest pools that serve the load, if their nodes cost less than those of `winner`: of
    its GPU, and each as if its nodes were its alone. Of users who wait for their answers, and of a
    number of replicas that is given, nobody says what two pools would have to serve."""
    given = demand.overrides.replicas is not None or isinstance(demand.arrivals, ClosedLoop)
    if given or winner.device.partition or winner.whole_gpus <= SMALLEST:
        return None
    if not possible(demand, site):
        return None
    gpu, spot = winner.device.gpu, winner.device.offer.spot
    offers = [o for o in site.gpus if o.gpu is gpu and o.spot == spot]
    found = [(_cost(o, s.nodes), s) for o in offers if (s := _least(demand, o, site)) is not None]
    limit = _cost(winner.device.offer, winner.nodes)
    return min((x for x in found if x[0] < limit), key=lambda x: x[0], default=(limit, None))[1]


def _least(demand: ServingDemand, offer: GpuOffer, site: Site) -> Split | None:
    """The pools on the fewest nodes of `offer` that serve the load; of equals those on fewest
    GPUs."""
    made, room = _made(demand, offer, site), offer.gpus_per_node
    if not made:
        return None
    rate = sized_rate(demand, made[0], 0.0)
    best: tuple[int, int, str, Pair] | None = None
    for over, sent in _ways(offer, site, offer.node_count):
        for prefill, decode in halves(made, sent):
            held = (in_each if over == "links" else anywhere)(prefill, decode, room, rate)
            if held is not None:
                nodes, pair = held
                pair = pair.times(nodes) if over == "links" else pair
                if best is None or (nodes, pair.gpus) < best[:2]:
                    best = nodes, pair.gpus, over, pair
    if best is None or (offer.node_count is not None and best[0] > offer.node_count):
        return None
    return _record(offer, made[0], best[3], best[2], best[0])


def _cost(offer: GpuOffer, nodes: int) -> tuple[bool, float]:
    """By the hour, or GPUs where that is not known."""
    gpus, price = nodes * offer.gpus_per_node, offer.usd_per_gpu_hour
    return (True, gpus) if price is None else (False, canonical(price.value * gpus))


def _record(offer: GpuOffer, one: Replica, pair: Pair, over: str, nodes: int) -> Split:
    price, gpus = offer.usd_per_gpu_hour, nodes * offer.gpus_per_node
    return Split(
        gpu=offer.gpu.identifier,
        node_type=offer.shape_name,
        prefill_replicas=pair.prefills,
        prefill_tensor_parallel_size=pair.prefill.gpus,
        decode_replicas=pair.decodes,
        decode_tensor_parallel_size=pair.decode.gpus,
        over="links" if over == "links" else "fabric",
        nodes=nodes,
        usd_per_hour=None if price is None else (Decimal(repr(price.value)) * gpus).quantize(MICRO),
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


def _ways(offer: GpuOffer, site: Site, nodes: int | None) -> Iterator[tuple[str, float | None]]:
    """How a cache gets to the other pool, and at how many bytes per second of a GPU; None: by the
    links of its kind."""
    yield "links", None
    if site.fabric is not None and nodes != 1:
        yield "fabric", fabric_rate(offer, site.fabric).value
