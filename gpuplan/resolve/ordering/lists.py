"""Which price lists a plan reckons with, and what is said of prices and nodes without a source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.diagnostics import Diagnostic
from gpuplan.resolve.messages import assumed_nodes, list_prices, several_places
from gpuplan.resolve.run import Resolved
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.hardware.offers import GpuOffer
from gpuplan.source import Origin
from gpuplan.targets import TARGETS
from gpuplan.units import format_usd


def used_offers(resolved: Resolved, sized: Sequence[Sized]) -> Iterator[GpuOffer]:
    """The machines with a GPU type that is used; of those that are bought, the shapes."""
    gpus = {s.workload.gpu for s in sized}
    pools = {s.workload.node_pool for s in sized}
    for offer in resolved.site.gpus:
        if offer.gpu.identifier in gpus and (offer.shape is None or offer.pool in pools):
            yield offer


def prices(resolved: Resolved, sized: Sequence[Sized]) -> tuple[str, str]:
    """Where the prices of what is used come from, and the date of the oldest listing among them."""
    used = [o for o in used_offers(resolved, sized) if o.usd_per_gpu_hour]
    listed = [o.listed for o in used if o.listed]
    stated = [o.usd_per_gpu_hour.source for o in used if o.usd_per_gpu_hour and not o.listed]
    sources = {*stated, *(price.source for price in listed)}
    dates = [price.date for price in listed if price.dated]
    return "; ".join(sorted(sources)), min(dates, default="")


def at_list_prices(resolved: Resolved, sized: Sequence[Sized]) -> Iterator[Diagnostic]:
    """A note where machines that somebody has are priced as the catalogue lists them."""
    listed = {
        f"{o.gpu.identifier} {format_usd(o.listed.usd_per_hour)}/h"
        for o in used_offers(resolved, sized)
        if o.listed
    }
    if resolved.inventory is not None and listed:
        at = Origin(resolved.loaded.document, ("platform", "inventory"))
        yield list_prices(resolved.inventory_document, sorted(listed), at)


def assumed(resolved: Resolved, sized: Sequence[Sized]) -> Iterator[Diagnostic]:
    """Notes where nobody said what nodes there are, or in which place."""
    platform = resolved.loaded.manifest.platform
    shapes = [o.shape for o in used_offers(resolved, sized) if o.shape]
    names = [f"{s.name} ({s.rented or 'a server'})" for s in shapes]
    at = Origin(resolved.loaded.document, ("platform",))
    chosen = platform.nodes or platform.provider or TARGETS[platform.target].provider
    if shapes and not chosen:
        yield assumed_nodes(names, [s.name for s in shapes if s.assumed_cores], at)
    if len({s.place for s in shapes if s.price}) > 1:
        yield several_places(names, at)
