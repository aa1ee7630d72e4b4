"""Platform and inventory → the GPU types that may be used, in which nodes, at which price."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gpuplan.catalog.load import Catalog
from gpuplan.catalog.model import Gpu
from gpuplan.diagnostics import Diagnostic, Severity, worst
from gpuplan.inventory.allocations import nothing_of
from gpuplan.inventory.cores import cores
from gpuplan.inventory.words import UNKNOWN
from gpuplan.manifest.v1 import Platform
from gpuplan.plan.model import Fabric
from gpuplan.resolve import messages
from gpuplan.resolve.clusters.domains import within_domains
from gpuplan.resolve.where import Where, known_gpu, node_watts, planned_on, price_of
from gpuplan.sharing.partitions import mediated
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.hardware.locality import Locality, localities
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.source import Origin
from gpuplan.targets import NO_RACKS, TARGETS
from gpuplan.vendors import vendor_of

if TYPE_CHECKING:
    from gpuplan.inventory.v1 import HostSpec, Inventory


def find_site(where: Where, catalog: Catalog) -> tuple[Site | None, list[Diagnostic]]:
    """What the platform offers, with warnings; or every problem it has."""
    platform = where.platform
    problems = [*_names(where, catalog)]
    problems += _contradictions(where)
    if problems or (platform.inventory and where.inventory is None):
        return None, problems
    if where.inventory:
        offers, problems = _from_inventory(where, catalog)
    else:
        from gpuplan.resolve.bought import bought

        offers, problems = bought(where, catalog)
    offers, wrong = within_domains(offers, where)
    problems += wrong
    storage, rack = platform.storage, _rack_watts(platform)
    if where.inventory and TARGETS[platform.target].guests_on_hosts:
        offers = _for_guests(offers, where.inventory, where)
    site = Site(
        target=platform.target,
        gpus=tuple(replace(o, rack_watts=rack) if rack else o for o in offers),
        fabric=_fabric(platform),
        storage_bytes_per_s=Quantity(
            storage.bandwidth, "B/s", "manifest: platform.storage.bandwidth"
        )
        if storage and storage.bandwidth
        else None,
        storage_usd_per_gb_month=_storage_price(platform, catalog),
        storage_class=storage.storage_class if storage else None,
        storage_shared=storage.shared if storage else None,
    )
    return (None if worst(problems) is Severity.ERROR else site), problems


def _contradictions(where: Where) -> Iterator[Diagnostic]:
    """Fields that say twice, or where nothing is bought, which nodes there are."""
    platform = where.platform
    ways = [n for n in ("inventory", "node", "nodes") if getattr(platform, n) is not None]
    if len(ways) > 1:
        yield messages.nodes_twice(ways, where.at(ways[-1]))
    described = [n for n in ("inventory", "node") if n in ways]
    if platform.provider and described:
        yield messages.nodes_twice([*described, "provider"], where.at("provider"))
    if platform.region and where.provider is None:
        yield messages.region_without_provider(platform.target, where.at("region"))


# As AWS's device plugin counts them, which has no other name for them.
EFA_RESOURCE = "vpc.amazonaws.com/efa"


def _fabric(platform: Platform) -> Fabric | None:
    spec = platform.fabric
    if spec is None:
        return None
    rate = spec.bandwidth_per_gpu
    resource = spec.resource or _rdma_resource(platform, spec.kind)
    return Fabric(
        kind=spec.kind,
        bytes_per_s_per_gpu=rate,
        resource=resource,
        oversubscription=spec.oversubscription,
        nodes_per_switch=spec.nodes_per_switch,
        switch_label=spec.switch_label,
    )


def _rack_watts(platform: Platform) -> Quantity | None:
    """What a rack feeds, where racks are the manifest's to state."""
    if platform.rack_power is None or NO_RACKS in TARGETS[platform.target].ignored_of_platform:
        return None
    return Quantity(platform.rack_power, "W", "manifest: platform.rack_power")


def _rdma_resource(platform: Platform, kind: str) -> str | None:
    """What pods ask for, where the plugin that the target's documentation installs has one name."""
    if kind == "efa":
        return EFA_RESOURCE
    return TARGETS[platform.target].infiniband if kind == "infiniband" else None


def _storage_price(platform: Platform, catalog: Catalog) -> Quantity | None:
    """The manifest's own price, else that of the type of storage."""
    storage, unit = platform.storage, "USD/GB/month"
    if storage is None:
        return None
    if storage.price is not None:
        return Quantity(float(storage.price), unit, "manifest: platform.storage.price")
    known = None if storage.type is None else catalog.storage_class(storage.type)
    amount = None if known is None else known.usd_per_gb_month
    return None if amount is None else Quantity(float(amount.value), unit, amount.source)


def _names(where: Where, catalog: Catalog) -> Iterator[Diagnostic]:
    """Names of GPUs and components that do not exist, wherever they stand."""
    known = catalog.gpu_ids
    for number, name in enumerate(where.platform.gpus or ()):
        yield from _gpu_name(catalog, name, where.at("gpus", number), where.platform.target)
    for name in where.platform.prices:
        if name not in known:
            at = where.at("prices", name)
            yield messages.unknown_gpu(name, known, Origin(at.document, at.path, key=True))
    types = catalog.ids("storage") if where.platform.storage else ()
    if where.platform.storage and where.platform.storage.type not in (None, *types):
        name, remedy = where.platform.storage.type or "", "`gpuplan catalog list storage` shows all"
        yield messages.unknown_name("storage", name, types, remedy, where.at("storage", "type"))
    if where.inventory:
        target = where.platform.target
        yield from gpu_names(where.inventory, where.inventory_document, catalog, target)


def gpu_names(
    inventory: Inventory, document: str, catalog: Catalog, target: str | None
) -> Iterator[Diagnostic]:
    """GPUs of a valid inventory that do not exist, or that nodes are not set up for; without a
    target, as guests and jobs of any."""
    for number in range(len(inventory.hosts)):
        yield from _of_host(inventory, number, document, catalog, target)


def _of_host(
    inventory: Inventory, number: int, document: str, catalog: Catalog, target: str | None
) -> Iterator[Diagnostic]:
    for place, gpu in enumerate(inventory.hosts[number].gpus):
        at = Origin(document, ("hosts", number, "gpus", place, "type"))
        yield from _gpu_name(catalog, gpu.type, at, target)


def plannable(
    inventory: Inventory, document: str, catalog: Catalog, target: str | None
) -> tuple[Inventory, tuple[Diagnostic, ...]]:
    """The inventory without the hosts whose GPUs nobody can plan, and a warning of each kind. Where
    there are no others all stay: then their names are errors."""
    hosts = inventory.hosts
    numbers = range(len(hosts))
    problems = {n: [*_of_host(inventory, n, document, catalog, target)] for n in numbers}
    if all(problems[n] for n, host in enumerate(hosts) if host.gpus):
        return inventory, ()
    kept = [nothing_of(host) if problems[n] else host for n, host in enumerate(hosts)]
    warnings = (
        messages.left_out(p, hosts[n].names) for n, each in problems.items() for p in each[:1]
    )
    return inventory.model_copy(update={"hosts": kept}), tuple(warnings)


def _gpu_name(catalog: Catalog, name: str, at: Origin, target: str | None) -> Iterator[Diagnostic]:
    """A name that is not in the catalogue, or that nodes are not set up for."""
    gpu = catalog.gpu(name)
    if name == UNKNOWN:
        yield messages.unnamed_gpu(at)
    elif gpu is None:
        yield messages.unknown_gpu(name, catalog.gpu_ids, at)
    elif not catalog.plannable(gpu):
        yield messages.foreign_gpu(gpu.name, at)
    elif not planned_on(target, gpu):
        yield messages.gpu_of_another_target(gpu.name, vendor_of(gpu.vendor), target, at)


def _from_inventory(where: Where, catalog: Catalog) -> tuple[list[GpuOffer], list[Diagnostic]]:
    assert where.inventory is not None
    offers: list[GpuOffer] = []
    problems: list[Diagnostic] = []
    for number, host in enumerate(where.inventory.hosts):
        types = tuple(dict.fromkeys(g.type for g in host.gpus))
        if not types:
            continue
        if len(types) > 1:
            problems.append(messages.mixed_host(types, where.host(number).child("gpus")))
        elif where.platform.gpus is None or types[0] in where.platform.gpus:
            gpu = known_gpu(catalog, types[0])
            offers.append(_host_offer(where, host, gpu, catalog, where.host(number)))
    known = sorted({g.type for h in where.inventory.hosts for g in h.gpus})
    absent = [
        messages.not_in_inventory(name, known, where.at("gpus", place))
        for place, name in enumerate(where.platform.gpus or ())
        if name not in known
    ]
    return offers, [*problems, *messages.without_machines(absent, others=bool(offers))]


def _host_offer(
    where: Where, host: HostSpec, gpu: Gpu, catalog: Catalog, origin: Origin
) -> GpuOffer:
    count = sum(g.count or 1 for g in host.gpus)
    described = sum(len(cores(n, host.threads_per_core)) for n in host.numa_nodes)
    price, listed = price_of(where, gpu, catalog)
    if host.price is not None and gpu.identifier not in where.platform.prices:
        names = f"{host.names[0]}…" if len(host.names) > 1 else host.names[0]
        price = Quantity(float(host.price) / count, "USD/h", f"inventory: price of {names}")
        listed = None
    return GpuOffer(
        gpu=gpu,
        node_type=host.node_type,
        gpus_per_node=count,
        node_count=len(host.names),
        node_names=tuple(host.names),
        cpu_cores_per_node=host.cpu_cores or described or None,
        threads_per_core=host.threads_per_core,
        memory_bytes_per_node=host.memory or _memory(host),
        cards_bytes_per_s=_cards(host),
        numa_nodes=sum(n.cpus is not None for n in host.numa_nodes) or None,
        usd_per_gpu_hour=price,
        listed=listed,
        node_watts=node_watts(catalog, host.node_type, gpu.identifier, count),
        origin=origin,
    )


def _for_guests(offers: Sequence[GpuOffer], inventory: Inventory, where: Where) -> list[GpuOffer]:
    """Each with the NUMA nodes that its GPUs are on, on all hosts: a guest is the same on any; and
    whether its GPUs can be shared."""
    known: dict[str, list[Locality]] = {}
    for number, host in enumerate(inventory.hosts):
        for locality in localities(host, where.host(number), guests=True):
            if locality.gpus and locality.cores and locality.memory_bytes is not None:
                known.setdefault(host.gpus[0].type, []).append(locality)
    unstated = dict(_without_functions(offers, inventory, where))
    shared = any(o.gpu.vgpu_types and o.gpu.identifier not in unstated for o in offers)
    return [
        replace(
            offer,
            localities=tuple(known.get(offer.gpu.identifier, ())),
            unshared=unstated.get(offer.gpu.identifier) if shared else None,
        )
        for offer in offers
    ]


def _without_functions(
    offers: Sequence[GpuOffer], inventory: Inventory, where: Where
) -> Iterator[tuple[str, Origin]]:
    """The GPU types whose vGPUs are virtual functions that no host states, each with its place."""
    gpus = [
        (gpu, where.host(number).child("gpus", place))
        for number, host in enumerate(inventory.hosts)
        for place, gpu in enumerate(host.gpus)
    ]
    stated = {gpu.type for gpu, _ in gpus if gpu.virtual_functions}
    by_function = {o.gpu.identifier for o in offers if o.gpu.vgpu_types and not mediated(o.gpu)}
    for gpu, origin in reversed(gpus):
        if gpu.type in by_function - stated:
            yield gpu.type, origin


def _memory(host: HostSpec) -> int | None:
    """What the NUMA nodes have together, where the inventory states it of each."""
    sizes = [node.memory for node in host.numa_nodes]
    return sum(s or 0 for s in sizes) if sizes and all(sizes) else None


def _cards(host: HostSpec) -> float | None:
    """What the network cards carry together, where the inventory states it of each."""
    rates = [card.bandwidth for card in host.nics]
    return sum(r or 0.0 for r in rates) if rates and all(rates) else None
