"""Node pools: whole nodes for the workloads that may share them.

A pool's GPUs are cut in one way and its nodes admit either every tenant or one, so that a scheduler
only has to look at the pool's name. Names depend on the workload alone: another workload renames
nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from gpuplan.catalog.model import Gpu
from gpuplan.diagnostics import Diagnostic
from gpuplan.placement.bins import beyond, capacity, items, nodes_needed
from gpuplan.placement.partitions import known_partitions, layout_of
from gpuplan.placement.problems import (
    does_not_fit,
    missing_fact,
    no_hardware,
    unknown_partition,
)
from gpuplan.plan.model import Evidence, NodePool, PartitionLayout, Shortfall, Workload, record
from gpuplan.sizing.api import GpuOffer
from gpuplan.sizing.formula import Formula, Ledger, Quantity

PRICE = Formula("usd_per_gpu_hour * gpus_per_node", "USD/h", "GPUs are priced with their share")
POWER = Formula("gpu_watts * gpus_per_node", "W", "the GPUs' power limits, without the host's own")


@record
class Pools:
    """`workloads` name the pool that each is on."""

    workloads: tuple[Workload, ...] = ()
    node_pools: tuple[NodePool, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    shortfalls: tuple[Shortfall, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(slots=True)
class _Draft:
    """`taken` counts the nodes of an offer, by its place, that earlier pools have."""

    pools: list[NodePool] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    shortfalls: list[Shortfall] = field(default_factory=list)
    problems: list[Diagnostic] = field(default_factory=list)
    taken: Counter[int] = field(default_factory=Counter)


def place_pools(workloads: Sequence[Workload], offers: Sequence[GpuOffer]) -> Pools:
    """Pools in the order of the workloads; a machine of an inventory is in one pool."""
    draft = _Draft()
    named = tuple(replace(w, node_pool=pool_name(w)) for w in workloads)
    for name in dict.fromkeys(w.node_pool for w in named):
        _place_pool(draft, name, [w for w in named if w.node_pool == name], offers)
    return Pools(
        workloads=named,
        node_pools=tuple(draft.pools),
        evidence=tuple(draft.evidence),
        shortfalls=tuple(draft.shortfalls),
        diagnostics=tuple(draft.problems),
    )


def pool_name(workload: Workload) -> str:
    """The workload's pool, with its partition and, where it shares no node, its tenant."""
    parts = [_slug(workload.node_pool)]
    if workload.partition is not None:
        parts.append(_slug(workload.partition))
    alone = workload.isolation == "node" or (
        workload.isolation == "gpu" and workload.partition is not None
    )
    if alone:
        parts.append(workload.tenant)
    name = parts[0]
    for part in parts[1:]:
        if not name.endswith(f"-{part}"):
            name = f"{name}-{part}"
    return name


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-")


def _place_pool(
    draft: _Draft,
    name: str,
    workloads: Sequence[Workload],
    offers: Sequence[GpuOffer],
) -> None:
    first = workloads[0]
    fitting = [(place, o) for place, o in enumerate(offers) if o.gpu.identifier == first.gpu]
    if not fitting:
        draft.problems.append(no_hardware(first.name, first.gpu, first.origin))
        return
    layout = layout_of(first.partition, fitting[0][1].gpu) if first.partition else None
    if first.partition and layout is None:
        known = known_partitions(fitting[0][1].gpu)
        problem = unknown_partition(first.partition, first.gpu, known, first.origin)
        draft.problems.append(problem)
        return
    needs = [_need(workloads, offer, layout, place, draft.taken[place]) for place, offer in fitting]
    need = min(needs, key=_rank)
    for workload, short in need.refused.items():
        origin = next(w.origin for w in workloads if w.name == workload)
        draft.problems.append(does_not_fit(f"'{workload}'", "a node", short, origin))
    if need.lacking:
        listed = ", ".join(f"'{w.name}'" for w in workloads)
        draft.problems.append(
            does_not_fit(listed, "the nodes there are", need.lacking, first.origin)
        )
    draft.shortfalls += [*(s for short in need.refused.values() for s in short), *need.lacking]
    if need.offer.gpu.product is None:
        draft.problems.append(_no_product(need.offer.gpu, first))
    ledger = Ledger(name)
    count = ledger.given("node_count", Quantity(need.nodes, "1", "placement: first fit decreasing"))
    start = draft.taken[need.place]
    names = need.offer.node_names[start : start + need.nodes]
    draft.taken[need.place] += need.nodes
    pool = replace(node_pool(name, need.offer, int(count), names, ledger), partitions=layout)
    draft.pools.append(pool)
    draft.evidence += ledger.evidence()


def _no_product(gpu: Gpu, workload: Workload) -> Diagnostic:
    return missing_fact(
        f"the product name of {gpu.name}",
        "selecting its nodes",
        workload.origin,
        "choose a GPU whose label `nvidia.com/gpu.product` the catalogue knows",
    )


@record
class _Need:
    """Nodes of one offer for a pool's workloads; which of them no node holds (by name), and the
    nodes that are lacking."""

    offer: GpuOffer
    place: int
    nodes: int
    refused: dict[str, tuple[Shortfall, ...]]
    lacking: tuple[Shortfall, ...]


def _need(
    workloads: Sequence[Workload],
    offer: GpuOffer,
    layout: PartitionLayout | None,
    place: int,
    taken: int,
) -> _Need:
    room = capacity(offer, layout.per_gpu if layout else 1)
    gpu = layout.name if layout else offer.gpu.identifier
    wanted = items(workloads)
    refused = {i.workload: short for i in wanted if (short := beyond(i, room, gpu))}
    nodes = nodes_needed([i for i in wanted if i.workload not in refused], room)
    lacking: tuple[Shortfall, ...] = ()
    if offer.node_count is not None and taken + nodes > offer.node_count:
        lacking = (
            Shortfall(
                resource=f"nodes with {offer.gpu.identifier}",
                requested=nodes,
                used=taken,
                capacity=offer.node_count,
                unit="1",
            ),
        )
    return _Need(offer=offer, place=place, nodes=nodes, refused=refused, lacking=lacking)


def _rank(need: _Need) -> tuple[int, bool, float, int]:
    """An offer that holds everything, the cheapest of those, the one with the fewest nodes."""
    price = need.offer.usd_per_gpu_hour
    cost = (price.value if price else 0.0) * need.offer.gpus_per_node * need.nodes
    return len(need.refused) + len(need.lacking), price is None, cost, need.nodes


def node_pool(
    name: str, offer: GpuOffer, nodes: int, names: tuple[str, ...], ledger: Ledger
) -> NodePool:
    """`nodes` nodes of `offer` without partitions. Its price and power go to `ledger`."""
    gpu = offer.gpu
    board = not gpu.form_factor.casefold().startswith("pcie")
    link = gpu.nvlink_bytes_per_s if board else None
    count = Quantity(offer.gpus_per_node, "1", "offer: GPUs of a node")
    price: Decimal | None = None
    if offer.usd_per_gpu_hour is not None:
        paid = offer.usd_per_gpu_hour
        price = Decimal(str(paid.value)) * offer.gpus_per_node
        ledger.derive("node_usd_per_hour", PRICE, usd_per_gpu_hour=paid, gpus_per_node=count)
    gpu_watts = Quantity(gpu.watts.value, "W", gpu.watts.source)
    watts = ledger.derive("node_watts", POWER, gpu_watts=gpu_watts, gpus_per_node=count)
    return NodePool(
        name=name,
        node_type=offer.node_type,
        gpu=gpu.identifier,
        node_count=nodes,
        node_names=names,
        gpus_per_node=offer.gpus_per_node,
        gpu_memory_bytes=int(gpu.memory_bytes.value),
        gpu_product=gpu.product or "",
        cpu_cores=offer.cpu_cores_per_node,
        threads_per_core=offer.threads_per_core,
        memory_bytes=offer.memory_bytes_per_node,
        numa_nodes=offer.numa_nodes,
        interconnect="nvlink" if link else "pcie",
        interconnect_bytes_per_s=(link or gpu.pcie_bytes_per_s).value,
        usd_per_hour=price,
        watts=watts.value,
        origin=offer.origin,
    )
