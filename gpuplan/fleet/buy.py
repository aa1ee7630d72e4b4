"""Hosts that may be bought: more of a host of the inventory, or a GPU's shapes, as compiled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

from gpuplan.catalog.load import Catalog
from gpuplan.catalog.shapes import Place, Shape, Wanted, shapes
from gpuplan.fleet import messages
from gpuplan.fleet.hosts import Hosts, merged, micro_usd, named
from gpuplan.fleet.problem import HostType, NumaCapacity
from gpuplan.plan import window
from gpuplan.sharing.modes import HostSharing
from gpuplan.sizing.hardware.locality import of_shape
from gpuplan.units import format_usd


def with_bought(fleet: Hosts, names: Sequence[str], catalog: Catalog, wanted: Wanted) -> Hosts:
    """`fleet` with what may be bought without limit; a name is a GPU type, of which the shapes that
    are `wanted`, or a host or node type of the fleet."""
    bought: list[HostType] = []
    sharing, problems = list(fleet.sharing), list(fleet.problems)
    for name in dict.fromkeys(names):
        more = [replace(k, available=None, names=()) for k in fleet.types if _is(k, name)]
        if more:
            bought += more
            continue
        gpu = catalog.gpu(name)
        known = shapes(catalog, name, wanted) if gpu is not None else ()
        if gpu is not None and not known and wanted.place is not None:
            continue
        if gpu is not None and not known:
            problems.append(messages.not_sold(name))
        elif gpu is None:
            sold = (g for g in catalog.gpu_ids if catalog.node(g))
            problems.append(
                messages.unknown_purchase(name, (*sold, *(k.name for k in fleet.types)))
            )
        elif not (priced := _priced(known, name, catalog)):
            problems.append(messages.no_price(known[0].name, name, None))
        else:
            listed = [
                f"{s.name} ({s.rented or 'a server'}) at {format_usd(usd)}/h" for s, usd in priced
            ]
            problems.append(messages.shapes_to_buy(name, listed))
            bought += (_host_type(shape, micro_usd(usd)) for shape, usd in priced)
            sharing.append((name, HostSharing(), None))
    types = tuple(named((*fleet.types, *_renamed(merged(bought), fleet.types))))
    return replace(fleet, types=types, sharing=tuple(sharing), problems=tuple(problems))


def _priced(known: Sequence[Shape], gpu: str, catalog: Catalog) -> list[tuple[Shape, Decimal]]:
    """Whole nodes with their price an hour, of which cores and memory are known: those that have
    one of their own, else all at the GPU's."""
    whole = [s for s in known if s.cpu_cores is not None and s.memory_bytes is not None]
    own = [(s, s.price.usd_per_hour * s.gpus) for s in whole if s.price]
    listed = catalog.price(gpu)
    if own or listed is None:
        return own
    return [(s, listed.usd_per_hour * s.gpus) for s in whole]


def _is(kind: HostType, name: str) -> bool:
    return kind.name == name or name in kind.names


def _renamed(bought: Sequence[HostType], own: Sequence[HostType]) -> Iterator[HostType]:
    known = {k.name for k in own}
    for kind in bought:
        yield replace(kind, name=f"{kind.name}-new") if kind.name in known else kind


def _host_type(shape: Shape, cost: int) -> HostType:
    """Cores, memory and GPUs evenly over the NUMA nodes."""
    node = of_shape(shape, guests=False)
    return HostType(
        name=shape.name,
        gpu=shape.gpu,
        nodes=tuple(
            NumaCapacity(
                gpus=tuple(range(first, first + node.gpus)),
                cores=node.free_cores,
                memory_bytes=node.free_pages * window.PAGE_BYTES,
            )
            for first in range(0, shape.gpus, node.gpus)
        ),
        cost=cost,
        available=None,
        place=None if shape.price is None else _place(shape),
    )


def _place(shape: Shape) -> Place | None:
    provider, region = shape.place
    return Place(provider, region) if provider and region else None
