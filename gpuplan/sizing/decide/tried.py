"""Every candidate of every offer, what is true of one node being used for its like."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gpuplan.sizing.ask.demand import Demand, VisionDemand, VisionRunDemand
from gpuplan.sizing.candidates.builds import barred
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.decide.dispatch import sizer
from gpuplan.sizing.decide.searched import Search
from gpuplan.sizing.hardware.devices import Device
from gpuplan.sizing.hardware.offers import GpuOffer, Site

# Kinds whose speed is also that of the host's cores, which are others in each shape.
HOST_BOUND = (VisionDemand, VisionRunDemand)


def searched(demand: Demand, site: Site) -> Search:
    """What was tried of one workload, whether or not anything meets its objectives."""
    return Search(demand, tried(demand, site))


def tried(demand: Demand, site: Site) -> tuple[tuple[GpuOffer, tuple[Candidate, ...]], ...]:
    """Every candidate of every offer, those that fit and those that do not. What is true of a GPU
    in the largest shape that is bought is true in the others: a smaller one holds those inside a
    node, and none is joined with others to one replica. Only work that may be stopped takes nodes
    that may be taken back."""
    offers = [o for o in site.gpus if demand.preemptible or not o.spot]
    largest, own = _largest(offers), host_bound(demand)
    of_each = [o if own or _alone(o) else largest[o.gpu.identifier] for o in offers]
    alike = {id(o): o for o in of_each}
    groups: dict[int, tuple[Candidate, ...]] = {
        id(o): (c,) for o in alike.values() if (c := barred(demand, o, site))
    }
    left = tuple(o for o in alike.values() if id(o) not in groups)
    by_offer = sizer(demand).search(demand, replace(site, gpus=left)) if left else ()
    groups |= {id(offer): tuple(group) for offer, group in by_offer}
    return tuple(
        (o, groups[id(base)] if o is base else _inside(o, base, groups[id(base)]))
        for o, base in zip(offers, of_each, strict=True)
    )


def host_bound(demand: Demand) -> bool:
    """Whether what a replica does depends on the node beside its GPU."""
    return isinstance(demand, HOST_BOUND)


def _largest(offers: Iterable[GpuOffer]) -> dict[str, GpuOffer]:
    """Of each GPU type that is bought in several shapes the largest, kept before spare."""
    largest: dict[str, GpuOffer] = {}
    for offer in sorted(offers, key=lambda o: (-o.gpus_per_node, o.spot)):
        if not _alone(offer):
            largest.setdefault(offer.gpu.identifier, offer)
    return largest


def _alone(offer: GpuOffer) -> bool:
    """Whether no other shape of it is bought."""
    return offer.shape is None or offer.node_count is not None


def _inside(
    offer: GpuOffer, base: GpuOffer, candidates: Iterable[Candidate]
) -> tuple[Candidate, ...]:
    """Those of `base`, another node with the same GPUs, on `offer`."""
    spans = offer.gpus_per_node == base.gpus_per_node
    devices: dict[int, Device] = {}
    for candidate in candidates:
        device = candidate.device
        if id(device) not in devices:
            devices[id(device)] = replace(device, offer=offer)
    return tuple(
        replace(c, device=devices[id(c.device)])
        for c in candidates
        if spans or c.gpus <= offer.gpus_per_node
    )


def moved(search: Search, site: Site) -> Search:
    """What was tried, on the bought nodes of `site` with the same GPUs; types of GPUs and sizes of
    nodes that were not tried are left out."""
    tried_there = {id(offer): group for offer, group in search.groups}
    largest = _largest(offer for offer, _ in search.groups)
    if host_bound(search.demand):
        same = (o for o in site.gpus if o.gpu.identifier in largest)
        return searched(search.demand, replace(site, gpus=tuple(same)))
    groups = []
    for offer in site.gpus:
        base = largest.get(offer.gpu.identifier)
        allowed = search.demand.preemptible or not offer.spot
        if base is not None and allowed and offer.gpus_per_node <= base.gpus_per_node:
            groups.append((offer, _inside(offer, base, tried_there[id(base)])))
    return Search(search.demand, tuple(groups))
