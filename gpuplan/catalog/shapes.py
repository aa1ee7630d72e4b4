"""Nodes that may be had, by the GPU type that they hold: machines that providers rent, each at its
own price, and servers, whose hourly price nobody lists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from gpuplan.catalog.load import ENOUGH_MEMORY_BYTES, ENOUGH_VCPUS, Catalog, Listing
from gpuplan.catalog.market import CapacityKind, Instance, Market, load_market, of_one_gpu
from gpuplan.catalog.model import Citation, NodeTemplate, Price
from gpuplan.frozen import record

SIZES = (1, 2, 4, 8)  # GPUs of a node that is chosen where none is named
THREADS = 2  # of a core, where an instance's cores are not stated
RULE = (
    "of each number of GPUs the cheapest dated on-demand instance with at least 8 vCPU and 32 GiB "
    "a GPU; without one, the cheapest dated, then any"
)


@record
class Shape:
    """A node of `gpus` whole GPUs. `provider` is None of a server. Cores are physical;
    `assumed_cores`: half of its vCPUs, since no source states them. `price` is of one GPU with its
    share, on demand or spot; None where nobody lists one. `labelled`: its provider's Kubernetes
    writes its name into a label of each node. `nvlink_nodes`: of so many such nodes of a rack
    NVLink joins all GPUs."""

    name: str
    provider: str | None
    gpu: str
    gpus: int
    cpu_cores: int | None
    assumed_cores: bool = False
    threads_per_core: int | None = None
    memory_bytes: int | None
    numa_nodes: int | None = None
    nvlink_nodes: int | None = None
    labelled: bool = False
    price: Price | None = None
    source: Citation

    @property
    def rented(self) -> str | None:
        """Whose machine it is, and in which region it has its price: `azure, westus3`."""
        if self.provider is None:
            return None
        return ", ".join(filter(None, (*self.place, "spot" if self.spot else None)))

    @property
    def place(self) -> tuple[str | None, str | None]:
        """Provider and region of its price."""
        return self.provider, self.price.region if self.price else None

    @property
    def spot(self) -> bool:
        """Whether it is spare capacity, which its provider may take back."""
        return self.price is not None and self.price.capacity == "spot"


class Place(NamedTuple):
    provider: str
    region: str


class Wanted(NamedTuple):
    """Where nodes may come from: a provider and a region of it, or anywhere; only those in `names`
    where some are named, and of the listings that are so chosen only those of `place`."""

    provider: str | None = None
    region: str | None = None
    names: tuple[str, ...] = ()
    capacity: CapacityKind = "on-demand"
    place: Place | None = None


def shapes(catalog: Catalog, gpu: str, wanted: Wanted) -> tuple[Shape, ...]:
    """The nodes for a GPU type, one of each number of GPUs, the largest first: without names of
    `SIZES`, by `RULE`. Of no provider, servers stand in for numbers of GPUs that nobody rents."""
    listings, machines = _listed(catalog, gpu, wanted._replace(place=None))
    if wanted.place is not None:
        listings = tuple(x for x in listings if (x.price.provider, x.price.region) == wanted.place)
    known = {(m.provider, m.name): m for m in machines}
    chosen = _cheapest(listings)
    offered = [_rented(x, known.get((x.price.provider, x.price.instance or ""))) for x in chosen]
    if wanted.capacity != "spot" and wanted.place is None:
        offered += _unpriced(machines, {s.gpus for s in offered}, wanted)
        if wanted.provider is None:
            offered += _servers(catalog, gpu, {s.gpus for s in offered}, wanted.names)
    return tuple(sorted(offered, key=lambda s: (-s.gpus, s.name)))


@lru_cache(maxsize=256)  # asked for each place where all nodes could be bought
def _listed(
    catalog: Catalog, gpu: str, wanted: Wanted
) -> tuple[tuple[Listing, ...], tuple[Instance, ...]]:
    """The prices that nodes for a GPU type are chosen by, wherever they are, and the machines."""
    market = load_market()
    machines = tuple(
        m for m in market.of_gpu(gpu) if m.gpus and wanted.provider in (None, m.provider)
    )
    if wanted.provider is None and wanted.capacity != "spot":
        listings = _with_rates(catalog.listings(gpu), machines, market)
    else:
        listings = [x for m in machines for x in _regional(m, market, wanted)]
    if wanted.names:
        machines = tuple(m for m in machines if m.name in wanted.names)
        return tuple(x for x in listings if x.price.instance in wanted.names), machines
    listings = [x for x in listings if x.gpus in SIZES]
    best = min((x.tier for x in listings), default=0)
    return tuple(x for x in listings if x.tier == best), machines


def known_names(catalog: Catalog) -> tuple[str, ...]:
    """All that `Wanted.names` may hold."""
    whole = (m.name for m in load_market().instances() if m.gpus)
    return tuple(sorted({*whole, *catalog.ids("nodes")}))


def providers() -> tuple[str, ...]:
    return load_market().providers()


def regions(provider: str) -> tuple[str, ...]:
    """Those that the provider has a price in."""
    return load_market().regions(provider)


def largest_region(provider: str) -> str:
    """That with prices of the most machines on demand, the first of equals."""
    prices = (p for p in load_market().prices() if p.provider == provider)
    machines = {(p.region, p.instance) for p in prices if p.capacity == "on-demand"}
    counts = Counter(region for region, _ in machines)
    return max(regions(provider), key=lambda region: counts[region])


def rates_by_place(
    catalog: Catalog, gpus: Iterable[str], wanted: Wanted
) -> dict[Place, dict[str, float]]:
    """The least that an hour of one GPU of each type costs, USD, by provider and region of the
    listings that `shapes` chooses among."""
    by_place: dict[Place, dict[str, float]] = {}
    for gpu in gpus:
        for price in (x.price for x in _listed(catalog, gpu, wanted)[0]):
            if price.region is not None:
                rates = by_place.setdefault(Place(price.provider, price.region), {})
                usd = float(price.usd_per_hour)
                rates[gpu] = min(usd, rates.get(gpu, usd))
    return by_place


def _with_rates(
    listings: Sequence[Listing], machines: Sequence[Instance], market: Market
) -> list[Listing]:
    """The price lists that plans reckon with; of a machine that none of them has, what it costs in
    each region."""
    listed = {(x.price.provider, x.price.instance) for x in listings}
    others = [m for m in machines if (m.provider, m.name) not in listed]
    return [*listings, *(x for m in others for x in _regional(m, market, Wanted()))]


def _regional(machine: Instance, market: Market, wanted: Wanted) -> list[Listing]:
    """What a machine costs by region, or in one; the cheapest first."""
    rates = market.rates(machine, wanted.capacity)
    rates = tuple(r for r in rates if wanted.region in (None, r.region))
    return [
        Listing(
            price=of_one_gpu(rate, machine),
            gpus=machine.gpus or 0,
            vcpus=machine.vcpus,
            memory_bytes=machine.memory_bytes,
        )
        for rate in sorted(rates, key=lambda r: (r.usd_per_hour, r.region))
    ]


def _cheapest(listings: Iterable[Listing]) -> list[Listing]:
    """One of each number of GPUs."""
    by_gpus: dict[int, Listing] = {}
    for listing in sorted(listings, key=lambda x: (x.rank, x.memory_bytes or 0)):
        by_gpus.setdefault(listing.gpus, listing)
    return list(by_gpus.values())


def _unpriced(machines: Iterable[Instance], priced: set[int], wanted: Wanted) -> Iterator[Shape]:
    """Of the numbers of GPUs that have no price. Who names a region wants what is offered there,
    which a provider's prices tell, of spare capacity too; of a machine or a region without any
    price they tell nothing, and who names it is believed."""
    sizes = set(priced)
    listed = wanted.region is not None and wanted.region in regions(wanted.provider or "")
    for machine in sorted(machines, key=lambda m: (m.memory_bytes or 0, m.name)):
        count = machine.gpus or 0
        asked = wanted.names or (wanted.provider is not None and count in SIZES)
        absent = listed and not (wanted.names and _maybe_there(machine, wanted.region))
        if asked and not absent and count not in sizes:
            sizes.add(count)
            yield _instance(machine)


def _maybe_there(machine: Instance, region: str | None) -> bool:
    capacities: tuple[CapacityKind, ...] = ("on-demand", "spot")
    known = {rate.region for c in capacities for rate in load_market().rates(machine, c)}
    return not known or region in known


def _rented(listing: Listing, machine: Instance | None) -> Shape:
    price = listing.price
    if machine is not None:
        return replace(_instance(machine), price=price)
    return Shape(
        name=price.instance or f"{price.provider}-{listing.gpus}x-{price.gpu}",
        provider=price.provider,
        gpu=price.gpu,
        gpus=listing.gpus,
        cpu_cores=listing.vcpus and listing.vcpus // THREADS,
        assumed_cores=True,
        threads_per_core=THREADS if listing.vcpus else None,
        memory_bytes=listing.memory_bytes,
        price=price,
        source=price.source,
    )


def _threads(machine: Instance) -> int | None:
    """Of a core, so that all cores have the vCPUs: stated, or counted, or as cores are assumed."""
    if machine.threads_per_core or not machine.vcpus:
        return machine.threads_per_core
    return max(1, machine.vcpus // machine.cores) if machine.cores else THREADS


def _instance(machine: Instance) -> Shape:
    """Without a price."""
    assumed = machine.cores is None and machine.threads_per_core is None
    threads = _threads(machine)
    return Shape(
        name=machine.name,
        provider=machine.provider,
        gpu=machine.gpu,
        gpus=machine.gpus or 0,
        cpu_cores=machine.cores or (machine.vcpus and machine.vcpus // (threads or THREADS)),
        assumed_cores=assumed,
        threads_per_core=threads,
        memory_bytes=machine.memory_bytes,
        numa_nodes=machine.numa_nodes,
        labelled=machine.labels_nodes,
        source=machine.source,
    )


def _servers(
    catalog: Catalog, gpu: str, rented: set[int], names: tuple[str, ...]
) -> Iterator[Shape]:
    """Of each number of GPUs that nobody rents the reference server, else the one with the least
    cores and memory that are enough."""
    reference = catalog.node(gpu)
    own = reference.identifier if reference else ""
    templates = [
        t
        for t in catalog.templates(gpu)
        if (
            t.identifier in names
            if names
            else t.gpus in SIZES and (t.identifier == own or _enough(t))
        )
    ]
    sizes = set(rented)
    for template in sorted(
        templates, key=lambda t: (t.identifier != own, t.cpu_cores, t.memory_bytes, t.identifier)
    ):
        if template.gpus not in sizes:
            sizes.add(template.gpus)
            yield _server(template)


def _enough(template: NodeTemplate) -> bool:
    return (
        template.cpu_cores * THREADS >= ENOUGH_VCPUS * template.gpus
        and template.memory_bytes >= ENOUGH_MEMORY_BYTES * template.gpus
    )


def _server(template: NodeTemplate) -> Shape:
    return Shape(
        name=template.identifier,
        provider=None,
        gpu=template.gpu,
        gpus=template.gpus,
        cpu_cores=template.cpu_cores,
        memory_bytes=template.memory_bytes,
        numa_nodes=template.numa_nodes,
        nvlink_nodes=template.nvlink_nodes,
        source=template.source,
    )
