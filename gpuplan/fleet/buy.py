"""Hosts that may be bought: more of a host of the inventory, or a GPU's reference node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpuplan.catalog.load import Catalog
from gpuplan.catalog.model import Gpu, NodeTemplate
from gpuplan.fleet import messages
from gpuplan.fleet.hosts import MICRO, Hosts, merged, micro_usd, named
from gpuplan.fleet.problem import HostType, NumaCapacity
from gpuplan.plan import window
from gpuplan.sharing.modes import HostSharing
from gpuplan.sizing.hardware.locality import of_template
from gpuplan.units import format_usd


def with_bought(fleet: Hosts, wanted: Sequence[str], catalog: Catalog) -> Hosts:
    """`fleet` with what may be bought without limit; a name of `wanted` is a GPU type, or a host
    or node type of the fleet."""
    bought: list[HostType] = []
    sharing, problems = list(fleet.sharing), list(fleet.problems)
    for name in dict.fromkeys(wanted):
        more = [replace(k, available=None, names=()) for k in fleet.types if _is(k, name)]
        if more:
            bought += more
            continue
        gpu, template = catalog.gpu(name), catalog.node(name)
        price = catalog.price(name)
        if gpu is not None and template is None:
            problems.append(messages.no_reference_node(name))
        elif gpu is None or template is None:
            sold = (g for g in catalog.gpu_ids if catalog.node(g))
            known = (*sold, *(k.name for k in fleet.types))
            problems.append(messages.unknown_purchase(name, known))
        elif price is None:
            problems.append(messages.no_price(template.identifier, name, None))
        else:
            cost = micro_usd(price.usd_per_hour * template.gpus)
            usd = format_usd(cost / MICRO)
            problems.append(messages.reference_node(template.identifier, name, usd))
            bought.append(_reference(template, gpu, cost))
            sharing.append((name, HostSharing(), None))
    types = tuple(named((*fleet.types, *_renamed(merged(bought), fleet.types))))
    return replace(fleet, types=types, sharing=tuple(sharing), problems=tuple(problems))


def _is(kind: HostType, name: str) -> bool:
    return kind.name == name or name in kind.names


def _renamed(bought: Sequence[HostType], own: Sequence[HostType]) -> Iterator[HostType]:
    known = {k.name for k in own}
    for kind in bought:
        yield replace(kind, name=f"{kind.name}-new") if kind.name in known else kind


def _reference(template: NodeTemplate, gpu: Gpu, cost: int) -> HostType:
    """Cores, memory and GPUs evenly over the NUMA nodes."""
    node = of_template(template, guests=False)
    return HostType(
        name=template.identifier,
        gpu=gpu.identifier,
        nodes=tuple(
            NumaCapacity(
                gpus=tuple(range(first, first + node.gpus)),
                cores=node.free_cores,
                memory_bytes=node.free_pages * window.PAGE_BYTES,
            )
            for first in range(0, template.gpus, node.gpus)
        ),
        cost=cost,
        available=None,
    )
