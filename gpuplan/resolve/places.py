"""The places of the catalogue where all nodes of a platform could be bought."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from gpuplan.catalog.load import Catalog
from gpuplan.catalog.shapes import rates_by_place
from gpuplan.placement.pools.places import Place
from gpuplan.resolve.others import changed_site
from gpuplan.resolve.run import Resolved
from gpuplan.targets import TARGETS


def places(resolved: Resolved, catalog: Catalog) -> Iterator[Place]:
    """As if each was written into the manifest; a type of GPU costs what the manifest says."""
    manifest = resolved.loaded.manifest
    platform = manifest.platform
    provider = platform.provider or TARGETS[platform.target].provider
    spot = any(w.preemptible for w in manifest.workloads)
    for (owner, region), rates in sorted(rates_by_place(provider, spot=spot).items()):
        own = {g: float(usd) for g, usd in platform.prices.items() if g in rates}
        there = partial(changed_site, resolved, catalog, None, provider=owner, region=region)
        yield Place((owner, region), rates | own, there)
