"""The offers of a site, as the sizing takes them."""

from __future__ import annotations

from dataclasses import replace

from gpuplan.sizing.hardware.offers import GpuOffer, Site


def joined(site: Site) -> Site:
    """Machines that differ in nothing but where they are listed as one offer: a workload may take
    some of each."""
    kinds: dict[tuple[object, ...], GpuOffer] = {}
    for number, offer in enumerate(site.gpus):
        key = kind(offer) if offer.node_names else (number,)
        first = kinds.get(key)
        if first is None:
            kinds[key] = offer
        else:
            assert first.node_count is not None
            assert offer.node_count is not None
            kinds[key] = replace(
                first,
                node_count=first.node_count + offer.node_count,
                node_names=(*first.node_names, *offer.node_names),
            )
    return replace(site, gpus=tuple(kinds.values()))


def kind(offer: GpuOffer) -> tuple[object, ...]:
    """What machines of one offer have in common."""
    price = offer.usd_per_gpu_hour
    return (
        offer.gpu.identifier,
        offer.node_type,
        offer.gpus_per_node,
        offer.cpu_cores_per_node,
        offer.threads_per_core,
        offer.memory_bytes_per_node,
        offer.cards_bytes_per_s,
        offer.numa_nodes,
        None if price is None else price.value,
    )
