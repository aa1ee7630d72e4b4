"""The documents that a site is made from, and what its GPUs cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuplan.catalog.load import PRICE_RULE, Catalog
from gpuplan.catalog.model import Gpu, Price
from gpuplan.catalog.shapes import Place
from gpuplan.frozen import frozen
from gpuplan.manifest.v1 import Platform
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.source import Origin
from gpuplan.targets import TARGETS, of_other_vendors
from gpuplan.vendors import FIRST

if TYPE_CHECKING:
    from gpuplan.inventory.v1 import Inventory


@frozen
class Where:
    """The documents that a site is made from. `spot`: some work may be stopped, so that prices of
    spare capacity are asked for; `place`: where alone nodes are bought."""

    platform: Platform
    manifest: str
    inventory: Inventory | None
    inventory_document: str
    spot: bool = False
    place: Place | None = None

    @property
    def provider(self) -> str | None:
        """Whose machines are bought, where the platform or its target says so."""
        return self.platform.provider or TARGETS[self.platform.target].provider

    def at(self, *path: str | int) -> Origin:
        return Origin(self.manifest, ("platform", *path))

    def host(self, number: int) -> Origin:
        return Origin(self.inventory_document, ("hosts", number))


def node_watts(catalog: Catalog, name: str | None, gpu: str, gpus: int) -> Quantity | None:
    """The most that a node of the type draws, where the catalogue knows it."""
    watts = catalog.node_watts(name, gpu, gpus) if name is not None else None
    return None if watts is None else Quantity(watts.value, watts.unit, watts.source)


def price_of(where: Where, gpu: Gpu, catalog: Catalog) -> tuple[Quantity | None, Price | None]:
    """The manifest's own price, else the catalogue's, with its listing."""
    own = where.platform.prices.get(gpu.identifier)
    if own is not None:
        stated = f"manifest: platform.prices.{gpu.identifier}"
        return Quantity(float(own), "USD/h", stated), None
    listed = catalog.price(gpu.identifier)
    if listed is None:
        return None, None
    cited = f"{listed.source}: {PRICE_RULE}"
    return Quantity(float(listed.usd_per_hour), "USD/h", cited), listed


def planned_on(target: str | None, gpu: Gpu) -> bool:
    """Whether GPUs of its maker are; without a target, on machines whatever runs there."""
    return gpu.vendor == FIRST or target in of_other_vendors()


def known_gpu(catalog: Catalog, name: str) -> Gpu:
    gpu = catalog.gpu(name)
    assert gpu is not None, "names were checked"
    return gpu
