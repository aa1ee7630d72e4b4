"""What a GPU costs anywhere: the price lists that plans reckon with, and all regions of machines
for rent."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal

from gpuplan.catalog.load import Catalog
from gpuplan.catalog.market import Instance, Market, RegionPrice, of_one_gpu, parts
from gpuplan.catalog.model import Price
from gpuplan.frozen import record


@record
class QuoteFilter:
    """Which machines and prices: parts of names, an exact region, and the most days of age of a
    price on `as_of`. Undated prices are of no known age."""

    as_of: date
    gpu: str = ""
    instance: str = ""
    provider: str = ""
    region: str = ""
    capacity: str = ""
    max_days: float | None = None

    def price(self, price: Price | RegionPrice) -> bool:
        return (
            self.provider in price.provider
            and self.region in ("", price.region)
            and self.capacity in ("", price.capacity)
            and self.instance in (price.instance or "")
            and self._young(price)
        )

    def _young(self, price: Price | RegionPrice) -> bool:
        if self.max_days is None:
            return True
        return price.dated and (self.as_of - date.fromisoformat(price.date)).days <= self.max_days


def quotes(catalog: Catalog, market: Market, wanted: QuoteFilter) -> tuple[Price, ...]:
    """Prices of one GPU with its share of a machine, by GPU and cheapest first. A price that both
    places have is there once."""
    machines = {(i.provider, i.name): i for i in market.instances() if wanted.gpu in i.gpu}
    listed = [
        of_one_gpu(price, machine)
        for price in market.prices()
        if (machine := machines.get((price.provider, price.instance))) and wanted.price(price)
    ]
    known = {(p.provider, p.instance, p.region) for p in listed}
    listed += [
        p for p in _listed(catalog, wanted) if (p.provider, p.instance, p.region) not in known
    ]
    return tuple(sorted(listed, key=_order))


def offers(market: Market, wanted: QuoteFilter) -> Iterator[tuple[Instance, RegionPrice | None]]:
    """Machines, by GPU and size, each with its cheapest price of those wanted, on demand unless
    spot is. With a region, a capacity or an age wanted, only those that have one."""
    capacity = wanted.capacity or "on-demand"
    prices: dict[tuple[str, str], RegionPrice] = {}
    for price in market.prices():
        key = (price.provider, price.instance)
        fits = price.capacity == capacity and wanted.price(price)
        if fits and (key not in prices or _cheaper(price, prices[key])):
            prices[key] = price
    must = bool(wanted.region or wanted.capacity) or wanted.max_days is not None
    for machine in sorted(market.instances(), key=_size):
        best = prices.get((machine.provider, machine.name))
        if _matches(machine, wanted) and (best or not must):
            yield machine, best


def _matches(machine: Instance, wanted: QuoteFilter) -> bool:
    return (
        wanted.gpu in machine.gpu
        and wanted.instance in machine.name
        and wanted.provider in machine.provider
    )


def _cheaper(price: RegionPrice, than: RegionPrice) -> bool:
    return (price.usd_per_hour, price.region) < (than.usd_per_hour, than.region)


def _listed(catalog: Catalog, wanted: QuoteFilter) -> Iterator[Price]:
    for gpu in catalog.gpu_ids:
        if wanted.gpu in gpu:
            yield from (p for p in catalog.prices(gpu) if wanted.price(p))


def _order(price: Price) -> tuple[str, Decimal, str, str, str]:
    return (price.gpu, price.usd_per_hour, price.provider, price.instance or "", price.region or "")


def _size(machine: Instance) -> tuple[str, float, int, str, str]:
    count = machine.gpus or 1 / parts(machine)
    return (machine.gpu, count, machine.vcpus or 0, machine.provider, machine.name)
