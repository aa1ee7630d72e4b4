"""Nodes that are bought: one that the manifest describes, else those of the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gpuplan.catalog.load import Catalog
from gpuplan.catalog.model import Gpu
from gpuplan.catalog.shapes import RULE, Shape, Wanted, known_names, providers, regions, shapes
from gpuplan.diagnostics import Diagnostic, Severity
from gpuplan.manifest.v1 import NodeShape
from gpuplan.resolve import messages
from gpuplan.resolve.where import Where, known_gpu, node_watts, planned_on, price_of
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.hardware.offers import GpuOffer
from gpuplan.vendors import FIRST


def bought(where: Where, catalog: Catalog) -> tuple[list[GpuOffer], list[Diagnostic]]:
    """The node that the manifest describes with each GPU type that may be used, else the
    catalogue's shapes of each. Types of which neither a node nor a dated price is known are offered
    only when named, and then a type without any node is a problem."""
    platform = where.platform
    problems = list(_unknown(where, catalog))
    if any(p.severity is Severity.ERROR for p in problems):
        return [], problems
    named: Sequence[str] | None = platform.gpus
    offers: list[GpuOffer] = []
    absent: list[Diagnostic] = []
    for place, name in enumerate(named or catalog.gpu_ids):
        gpu = known_gpu(catalog, name)
        if named is None and not _sold(where, gpu, catalog):
            continue
        if platform.node is not None:
            offers.append(_described(where, platform.node, gpu, catalog))
        elif shaped := list(_shaped(where, gpu, catalog)):
            offers += shaped if named or gpu.vendor == FIRST else _priced(shaped)
        elif named is not None and platform.nodes is None:
            absent.append(_no_node(where, name, catalog, place))
    problems += messages.without_machines(absent, others=bool(offers))
    if not offers and not any(p.severity is Severity.ERROR for p in problems):
        allowed = ", ".join(named or ()) or "a GPU that is planned with"
        wanted = Wanted(where.provider, platform.region)
        names = dict.fromkeys(s.name for g in named or () for s in shapes(catalog, g, wanted))
        at = where.at("nodes")
        problems.append(messages.no_such_nodes(allowed, where.provider, list(names), at))
    return offers, problems


def _no_node(where: Where, name: str, catalog: Catalog, place: int) -> Diagnostic:
    """Who has nodes of that type, and where, and which types there are nodes of."""
    provider, region = where.provider, where.platform.region
    wanted = Wanted(provider, region)
    offered = [g for g in catalog.gpu_ids if shapes(catalog, g, wanted)] if provider else []
    renting = [p for p in providers() if shapes(catalog, name, Wanted(p))]
    whose = f"of {provider}" if provider else ""
    if provider and region:
        whose += f" in {region}"
        there = [r for r in regions(provider) if shapes(catalog, name, Wanted(provider, r))]
        elsewhere = f"{provider} in {' and '.join(there[: messages.MOST_NEAR])}"
        renting = [elsewhere if p == provider else p for p in renting if p != provider or there]
    return messages.no_node(name, whose, renting, offered, where.at("gpus", place))


def _unknown(where: Where, catalog: Catalog) -> Iterator[Diagnostic]:
    """Names of providers, regions and nodes that nobody knows."""
    platform = where.platform
    if platform.provider is not None and platform.provider not in providers():
        remedy = f"use {', '.join(providers())}"
        at = where.at("provider")
        yield messages.unknown_name("provider", platform.provider, providers(), remedy, at)
    elif where.provider is not None and platform.region is not None:
        listed = regions(where.provider)
        if listed and platform.region not in listed:
            at = where.at("region")
            own = bool(platform.gpus) and set(platform.gpus or ()) <= set(platform.prices)
            yield messages.unknown_region(where.provider, platform.region, listed, at, own=own)
    for place, name in enumerate(platform.nodes or ()):
        if name not in (names := known_names(catalog)):
            remedy = "`gpuplan catalog list instances` and `… list nodes` show all"
            yield messages.unknown_name("node", name, names, remedy, where.at("nodes", place))


def _sold(where: Where, gpu: Gpu, catalog: Catalog) -> bool:
    """Whether a GPU type is offered that the manifest does not name."""
    if not (catalog.plannable(gpu) and planned_on(where.platform.target, gpu)):
        return False
    if where.provider is not None or where.platform.nodes is not None:
        return True
    listed = catalog.price(gpu.identifier)
    return catalog.node(gpu.identifier) is not None or (listed is not None and listed.dated)


def _priced(offers: Iterable[GpuOffer]) -> list[GpuOffer]:
    """Of another vendor's GPUs that nobody names, those that are compared by their price."""
    return [offer for offer in offers if offer.usd_per_gpu_hour is not None]


def _described(where: Where, node: NodeShape, gpu: Gpu, catalog: Catalog) -> GpuOffer:
    price, listed = price_of(where, gpu, catalog)
    return GpuOffer(
        gpu=gpu,
        gpus_per_node=node.gpus,
        node_count=node.count,
        cpu_cores_per_node=node.cpu_cores,
        memory_bytes_per_node=node.memory,
        nvlink_nodes=node.nvlink_nodes or 1,
        usd_per_gpu_hour=price,
        listed=listed,
        origin=where.at("node"),
    )


def _shaped(where: Where, gpu: Gpu, catalog: Catalog) -> Iterator[GpuOffer]:
    """The catalogue's shapes, the largest first; at the end those of spare capacity, unless the
    manifest has a price of its own."""
    names = tuple(where.platform.nodes or ())
    wanted = Wanted(where.provider, where.platform.region, names, place=where.place)
    listed = shapes(catalog, gpu.identifier, wanted)
    if where.spot and gpu.identifier not in where.platform.prices:
        listed += shapes(catalog, gpu.identifier, wanted._replace(capacity="spot"))
    for shape in listed:
        yield _offer(where, gpu, shape, catalog)


def _offer(where: Where, gpu: Gpu, shape: Shape, catalog: Catalog) -> GpuOffer:
    """At the manifest's own price, else at the one that the shape is listed at."""
    price, listed = None, shape.price
    if gpu.identifier in where.platform.prices:
        price, listed = price_of(where, gpu, catalog)
    elif listed is not None:
        rule = RULE.replace("on-demand", listed.capacity)
        rule = "of the nodes that are named" if where.platform.nodes else rule
        price = Quantity(float(listed.usd_per_hour), "USD/h", f"{listed.source}: {rule}")
    return GpuOffer(
        gpu=gpu,
        node_type=shape.name,
        gpus_per_node=shape.gpus,
        cpu_cores_per_node=shape.cpu_cores,
        threads_per_core=shape.threads_per_core,
        memory_bytes_per_node=shape.memory_bytes,
        numa_nodes=shape.numa_nodes,
        nvlink_nodes=shape.nvlink_nodes or 1,
        usd_per_gpu_hour=price,
        listed=listed,
        node_watts=None
        if shape.provider
        else node_watts(catalog, shape.name, shape.gpu, shape.gpus),
        shape=shape,
        origin=where.at("nodes" if where.platform.nodes else "gpus"),
    )
