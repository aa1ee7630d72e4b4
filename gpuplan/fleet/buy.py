"""Hosts that may be bought: more of a host of the inventory, or a GPU's reference node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpuplan.catalog.load import Catalog
from gpuplan.catalog.model import Gpu, NodeTemplate
from gpuplan.fleet import messages
from gpuplan.fleet.hosts import MICRO, Hosts, joined, micro_usd, named
from gpuplan.fleet.modes import Sharing
from gpuplan.fleet.problem import HostType, NumaNode
from gpuplan.inventory.v1 import HostSpec, NumaNodeSpec
from gpuplan.placement.machines.reserve import spare
from gpuplan.source import Origin
from gpuplan.units import format_usd


def with_bought(fleet: Hosts, wanted: Sequence[str], catalog: Catalog) -> Hosts:
    """`fleet` with what may be bought without limit; a name of `wanted` is a GPU type, or a host
    or node type of the fleet."""
    found: list[HostType] = []
    sharing, wrong = list(fleet.sharing), list(fleet.problems)
    for name in dict.fromkeys(wanted):
        more = [replace(k, available=None, names=()) for k in fleet.types if _is(k, name)]
        if more:
            found += more
            continue
        gpu, template = catalog.gpu(name), catalog.node(name)
        price = catalog.price(name)
        if gpu is not None and template is None:
            wrong.append(messages.no_reference_node(name))
        elif gpu is None or template is None:
            sold = (g for g in catalog.gpu_ids if catalog.node(g))
            known = (*sold, *(k.name for k in fleet.types))
            wrong.append(messages.unknown_purchase(name, known))
        elif price is None:
            wrong.append(messages.no_price(template.identifier, name, None))
        else:
            cost = micro_usd(price.usd_per_hour * template.gpus)
            usd = format_usd(cost / MICRO)
            wrong.append(messages.reference_node(template.identifier, name, usd))
            found.append(_reference(template, gpu, cost))
            sharing.append((name, Sharing(), None))
    types = tuple(named((*fleet.types, *_renamed(joined(found), fleet.types))))
    return replace(fleet, types=types, sharing=tuple(sharing), problems=tuple(wrong))


def _is(kind: HostType, name: str) -> bool:
    return kind.name == name or name in kind.names


def _renamed(bought: Sequence[HostType], there: Sequence[HostType]) -> Iterator[HostType]:
    known = {k.name for k in there}
    for kind in bought:
        yield replace(kind, name=f"{kind.name}-new") if kind.name in known else kind


def _reference(template: NodeTemplate, gpu: Gpu, cost: int) -> HostType:
    """Cores, memory and GPUs evenly over the NUMA nodes."""
    nodes = template.numa_nodes if template.gpus % template.numa_nodes == 0 else 1
    cores, each = template.cpu_cores // nodes, template.gpus // nodes
    spec = HostSpec.model_construct(
        names=[template.identifier],
        gpus=[],
        threads_per_core=1,
        hypervisor=None,
        numa_nodes=[
            NumaNodeSpec.model_construct(
                cpus=f"0-{cores - 1}", siblings="split", memory=template.memory_bytes // nodes
            )
        ],
    )
    at = Origin(template.identifier)
    free, memory = spare(spec, 0, at)
    return HostType(
        name=template.identifier,
        gpu=gpu.identifier,
        nodes=tuple(
            NumaNode(
                gpus=tuple(range(n * each, (n + 1) * each)),
                cores=free,
                memory_bytes=memory,
            )
            for n in range(nodes)
        ),
        cost=cost,
        available=None,
    )
