"""What else a platform could offer, for workloads that fit nowhere on what it does: GPU types that
the manifest leaves out, and other nodes. And the places where all nodes could be bought."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from gpuplan.catalog.load import Catalog
from gpuplan.catalog.market import CapacityKind
from gpuplan.catalog.shapes import Place, Wanted, rates_by_place
from gpuplan.diagnostics import Change
from gpuplan.placement.pools.places import Offered
from gpuplan.resolve.run import Resolved
from gpuplan.resolve.site import find_site
from gpuplan.resolve.where import Where
from gpuplan.sizing.hardware.offers import GpuOffer, OtherSite, Site
from gpuplan.sizing.hardware.sites import joined
from gpuplan.source import Origin
from gpuplan.targets import TARGETS

if TYPE_CHECKING:
    from gpuplan.inventory.v1 import Inventory

GPUS_OF_NODES = (2, 4, 8)
CAPACITIES: tuple[CapacityKind, ...] = ("on-demand", "spot")


def other_sites(resolved: Resolved, catalog: Catalog) -> Iterator[OtherSite]:
    """Each with the change of the platform that makes it."""
    known = {o.gpu.identifier for o in resolved.site.gpus}
    for other in (*_gpus(resolved, catalog, known), *_nodes(resolved, catalog)):
        known |= {o.gpu.identifier for o in other.site.gpus}
        yield other
    if resolved.inventory is not None:
        free = _site(resolved, catalog, None, inventory=None, gpus=None)
        for gpu, alone in _each(free, known):
            yield OtherSite(words=f"an inventory with hosts of '{gpu}'", changes=(), site=alone)


def _gpus(resolved: Resolved, catalog: Catalog, known: set[str]) -> Iterator[OtherSite]:
    """Each type that the manifest leaves out, in nodes of the catalogue or of the inventory."""
    platform, at = resolved.loaded.manifest.platform, _platform(resolved)
    if platform.gpus is None:
        return
    place = at.child("gpus", len(platform.gpus))
    named = (Change(at.child("nodes"), None),) if platform.nodes is not None else ()
    site = _site(resolved, catalog, resolved.inventory, gpus=None, nodes=None)
    for gpu, alone in _each(site, known):
        words = f"`platform.gpus` with '{gpu}'" + " and no `nodes`" * bool(named)
        yield OtherSite(words=words, changes=(Change(place, gpu), *named), site=alone)


def _nodes(resolved: Resolved, catalog: Catalog) -> Iterator[OtherSite]:
    """Other nodes than those that are named, and larger ones than that which is described."""
    platform, at = resolved.loaded.manifest.platform, _platform(resolved)
    if platform.nodes is not None:
        site = _site(resolved, catalog, resolved.inventory, nodes=None)
        if site is not None:
            words = "any node in place of `platform.nodes`"
            yield OtherSite(words=words, changes=(Change(at.child("nodes"), None),), site=site)
    for gpus in GPUS_OF_NODES if platform.node else ():
        assert platform.node is not None
        node = platform.node.model_copy(update={"gpus": gpus})
        site = _site(resolved, catalog, resolved.inventory, node=node)
        if site is not None and gpus > platform.node.gpus:
            change = Change(at.child("node", "gpus"), gpus)
            words = f"`platform.node.gpus: {gpus}` instead of {platform.node.gpus}"
            yield OtherSite(words=words, changes=(change,), site=site)


def _platform(resolved: Resolved) -> Origin:
    return Origin(resolved.loaded.document, ("platform",))


def places(resolved: Resolved, catalog: Catalog) -> Iterator[Offered]:
    """Each provider and region where GPUs are listed; a type costs what the manifest says, if it
    does."""
    platform = resolved.loaded.manifest.platform
    provider = platform.provider or TARGETS[platform.target].provider
    gpus = {offer.gpu.identifier for offer in resolved.site.gpus}
    by_place: dict[Place, dict[str, float]] = {}
    for capacity in CAPACITIES if _spot(resolved) else CAPACITIES[:1]:
        wanted = Wanted(provider, platform.region, tuple(platform.nodes or ()), capacity)
        for name, rates in rates_by_place(catalog, sorted(gpus), wanted).items():
            known = by_place.setdefault(name, {})
            known |= {g: min(usd, known.get(g, usd)) for g, usd in rates.items()}
    for name, rates in sorted(by_place.items()):
        own = {g: float(usd) for g, usd in platform.prices.items() if g in rates}
        yield Offered(name, rates | own, partial(_site, resolved, catalog, None, place=name))


def _spot(resolved: Resolved) -> bool:
    return any(w.preemptible for w in resolved.loaded.manifest.workloads)


def _site(
    resolved: Resolved,
    catalog: Catalog,
    machines: Inventory | None,
    place: Place | None = None,
    **changes: object,
) -> Site | None:
    """With `changes` of the platform, on `machines` where there are some, or bought in one
    `place`."""
    loaded = resolved.loaded
    platform = loaded.manifest.platform.model_copy(update=changes)
    where = Where(
        platform, loaded.document, machines, resolved.inventory_document, _spot(resolved), place
    )
    site, _ = find_site(where, catalog)
    return None if site is None else joined(site)


def _each(site: Site | None, without: Iterable[str]) -> Iterator[tuple[str, Site]]:
    """The site with one GPU type alone, for each that is not in `without`."""
    if site is None:
        return
    kinds: dict[str, list[GpuOffer]] = {}
    for offer in site.gpus:
        kinds.setdefault(offer.gpu.identifier, []).append(offer)
    for gpu in sorted(kinds.keys() - set(without)):
        yield gpu, replace(site, gpus=tuple(kinds[gpu]))
