"""What a workload may run on."""

from __future__ import annotations

from gpuplan.sizing.ask.demand import Demand
from gpuplan.sizing.hardware.devices import Device, partitions, whole
from gpuplan.sizing.hardware.offers import GpuOffer, Site


def devices(demand: Demand, offer: GpuOffer, site: Site) -> tuple[Device, ...]:
    """The whole GPU, and its partitions where the workload may share one."""
    chosen = demand.overrides.partition
    sharing = ("shared", "vm") if demand.kind == "notebook" else ("shared",)
    if demand.isolation not in sharing and chosen is None:
        return (whole(offer),)
    shared = tuple(partitions(offer, site))
    if chosen is not None:
        return tuple(d for d in shared if d.partition == chosen)
    return (*shared, whole(offer))
