"""What a workload may run on."""

from __future__ import annotations

from collections.abc import Sequence

from gpuplan.catalog.model import VgpuType
from gpuplan.sharing.partitions import same_part
from gpuplan.sizing.ask.demand import Demand
from gpuplan.sizing.hardware.devices import Device, partitions, whole
from gpuplan.sizing.hardware.offers import GpuOffer, Site


def devices(demand: Demand, offer: GpuOffer, site: Site) -> tuple[Device, ...]:
    """The whole GPU, and its partitions where the workload may share one. A partition is chosen by
    the name of its MIG profile or of its vGPU type, whichever the target gives."""
    chosen = demand.overrides.partition
    if not may_share(demand) and chosen is None:
        return (whole(offer),)
    shared = tuple(partitions(offer, site))
    if chosen is not None:
        return named(chosen, shared)
    if offer.unshared is not None and demand.overrides.gpu is None:
        return (whole(offer),)
    return (*(_apart(shared) if demand.strangers else shared), whole(offer))


def named(name: str, shared: Sequence[Device]) -> tuple[Device, ...]:
    """Those of `shared` that a profile's or a type's name means."""
    exact = tuple(d for d in shared if d.partition == name)
    return exact or tuple(
        d for d in shared if d.share is not None and same_part(name, d.share, d.gpu)
    )


def may_share(demand: Demand) -> bool:
    """Whether parts of GPUs are weighed for it: other teams may be beside it, or its own."""
    sharing = ("shared", "vm") if demand.kind == "notebook" else ("shared",)
    return demand.isolation in sharing or demand.cut


def _apart(shared: Sequence[Device]) -> Sequence[Device]:
    """Parts of the hardware, where there are any, rather than turns that teams take on all of it:
    a type without a MIG instance behind it."""
    parts = [d for d in shared if not isinstance(d.share, VgpuType) or d.share.mig_profile]
    return parts or shared
