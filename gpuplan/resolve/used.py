"""The entries of the catalogue that a plan rests on, each with its digest.

Facts that no number of a plan depends on are not among them: a new GPU, or another one's price,
changes nothing that was made from the old ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeGuard

from gpuplan.catalog.load import Catalog, Kind, digest
from gpuplan.catalog.model import Citation, Gpu, Price
from gpuplan.catalog.providers import provider_entry
from gpuplan.catalog.shapes import Shape
from gpuplan.plan.model import Component, Digest, Engine, Order
from gpuplan.plan.serialize import to_json
from gpuplan.resolve.clouds.release import used_facts
from gpuplan.resolve.run import Resolved
from gpuplan.sizing.hardware.offers import GpuOffer


def used_entries(
    resolved: Resolved,
    components: Sequence[Component],
    images: Sequence[Engine],
    catalog: Catalog,
    orders: Sequence[Order] = (),
) -> tuple[Digest, ...]:
    """GPU types that may be used and what was measured of those that stand for them, the nodes and
    listings of their offers, engines with their builds, components, facts of a cloud, what is said
    of providers to order of; by name."""
    offers = resolved.site.gpus
    vendors = {offer.gpu.vendor for offer in offers}
    names = dict(row for offer in offers for row in _measured(offer.gpu))
    names |= {_listing(o.listed): digest(to_json(o.listed)) for o in offers if o.listed}
    storage = resolved.site.storage_usd_per_gb_month
    if storage is not None and _pinned(storage.source):
        names[storage.source.entry] = digest(storage.value)
    names |= {o.shape.source.entry: _facts(o.shape) for o in offers if o.shape}
    entries = {
        *(entry for offer in offers for entry in _offered(offer)),
        *(("engines", d.engine.name) for d in resolved.demands if _pinned(d.engine.source)),
        *(("images", image.name) for image in images),
        *(("builds", b.name) for d in resolved.demands for b in d.builds if b.vendor in vendors),
    }
    names |= {f"{kind}/{name}.yaml": catalog.sha256(kind, name) for kind, name in entries}
    names |= {name: digest(facts) for name, facts in used_facts(resolved)}
    for order in orders:
        if (stated := provider_entry(order.provider)) is not None:
            names[f"providers/{order.provider}.yaml"] = digest(stated)
    for item in (c for c in components if _pinned(c.source)):
        pin = catalog.component(item.name, item.version)
        names[f"components/{item.name}.yaml {item.version}"] = digest(to_json(pin))
    return tuple(Digest(name=name, sha256=sha256) for name, sha256 in sorted(names.items()))


def digest_of(entries: Sequence[Digest]) -> str:
    return digest({entry.name: entry.sha256 for entry in entries})


def _offered(offer: GpuOffer) -> Iterator[tuple[Kind, str]]:
    yield "gpus", offer.gpu.identifier


def _measured(gpu: Gpu) -> Iterator[tuple[str, str]]:
    """Of a GPU that stands in, the facts that scale what was measured on it."""
    for stand_in in gpu.stand_ins:
        facts = replace(stand_in, reason="", of=())
        yield f"gpus/{stand_in.identifier}.yaml as measured", digest(to_json(facts))


def _facts(shape: Shape) -> str:
    return digest(to_json(replace(shape, price=None)))


def _listing(price: Price) -> str:
    spot = " spot" if price.capacity == "spot" else ""
    return f"{price.source.entry}{spot}"


def _pinned(source: str) -> TypeGuard[Citation]:
    """By the catalogue, not by the manifest."""
    return isinstance(source, Citation)
