"""Node pools: whole nodes for the workloads that may share them.

A pool's nodes admit either every tenant or one, so that a scheduler only has to look at the pool's
name and count its GPUs and MIG instances. Names depend on the workload alone: another workload
renames nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from gpuplan.catalog.model import Gpu
from gpuplan.diagnostics import Diagnostic
from gpuplan.placement.pools.bins import Ask, capacity, more
from gpuplan.placement.pools.cutting import partitions
from gpuplan.placement.pools.former import Names
from gpuplan.placement.pools.leeway import crowding
from gpuplan.placement.pools.packing import Need, Packing, pool_name
from gpuplan.placement.pools.stages import Stage, hours_of
from gpuplan.placement.problems import (
    does_not_fit,
    lacking_nodes,
    missing_fact,
    no_hardware,
    stays_cut,
    unknown_partition,
    with_more_nodes,
)
from gpuplan.plan.model import Evidence, NodePool, Room, Shortfall, Workload, record
from gpuplan.sharing.partitions import partition, per_gpu
from gpuplan.sizing.evidence.formula import Formula, Ledger, Quantity
from gpuplan.sizing.hardware.offers import GpuOffer
from gpuplan.sizing.hardware.power import record_node_watts
from gpuplan.units import plural
from gpuplan.vendors import FIRST, vendor_of

PRICE = Formula("usd_per_gpu_hour * gpus_per_node", "USD/h", "GPUs are priced with their share")


@record
class Pools:
    """`workloads` name the pool that each is on; `stages` say of each pool, by its place, how long
    its nodes are needed."""

    workloads: tuple[Workload, ...] = ()
    node_pools: tuple[NodePool, ...] = ()
    stages: tuple[tuple[Stage, ...], ...] = ()
    evidence: tuple[Evidence, ...] = ()
    shortfalls: tuple[Shortfall, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(slots=True)
class _Draft:
    """`taken` counts the nodes of an offer, by its place, that earlier pools have, `spare` those
    that none needs; `crowding` are the workloads that may take the room of others."""

    names: Names
    pools: list[NodePool] = field(default_factory=list)
    stages: list[tuple[Stage, ...]] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    shortfalls: list[Shortfall] = field(default_factory=list)
    problems: list[Diagnostic] = field(default_factory=list)
    spare: Counter[int] = field(default_factory=Counter)
    taken: Counter[int] = field(default_factory=Counter)
    crowding: set[str] = field(default_factory=set)


def place_pools(
    workloads: Sequence[Workload],
    offers: Sequence[GpuOffer],
    former: Sequence[NodePool] = (),
    *,
    one_by_one: bool = False,
) -> Pools:
    """Pools in the order of the workloads; a machine of an inventory is in one pool. `former` are
    those of the stack that is there: live nodes stay as they are cut while others serve.
    `one_by_one`: whoever puts workloads on nodes looks at each pod alone."""
    draft = _Draft(names=Names(offers, former))
    named = tuple(
        replace(
            w,
            node_pool=pool_name(
                w.node_pool, w.isolation, w.tenant, partitioned=w.partition is not None
            ),
        )
        for w in workloads
    )
    lacking: list[tuple[list[Workload], Need]] = []
    kinds = {w.name: w.node_pool for w in workloads}
    needs = list(Packing(offers).pools(_ask(w, kinds[w.name]) for w in named))
    draft.spare = _spare(offers, needs)
    others = [asks[0].pool for asks, _ in needs]
    for asks, need in needs:
        members = [w for w in named if w.node_pool == asks[0].pool]
        first = members[0]
        if need is None:
            present = (o.gpu.identifier for o in offers)
            draft.problems.append(no_hardware(first.name, first.gpu, present, first.origin))
            continue
        _place_pool(draft, members, asks, need, others)
        if need.lacking:
            lacking.append((members, need))
    for members, need in lacking:
        draft.problems.append(_lacking(members, need, offers, draft))
    if one_by_one:
        named = tuple(replace(w, packed=w.name in draft.crowding or None) for w in named)
    return Pools(
        workloads=named,
        node_pools=tuple(draft.pools),
        stages=tuple(draft.stages),
        evidence=tuple(draft.evidence),
        shortfalls=tuple(draft.shortfalls),
        diagnostics=tuple(draft.problems),
    )


def _ask(workload: Workload, kind: str) -> Ask:
    return Ask(
        workload=workload.name,
        pool=workload.node_pool,
        kind=kind,
        gpu=workload.gpu,
        partition=workload.partition,
        replicas=workload.replicas,
        nodes=workload.nodes_per_replica,
        gpus=workload.gpus_per_node,
        cores=workload.resources.cpu_cores,
        memory_bytes=workload.resources.host_memory_bytes,
        hours=hours_of(workload.run_hours, workload.schedule),
        recurs=workload.starts_per_month is not None,
        spares=workload.spare_nodes,
    )


def _spare(
    offers: Sequence[GpuOffer], needs: Iterable[tuple[Sequence[Ask], Need | None]]
) -> Counter[int]:
    """The nodes of each offer, by its place, that no pool needs."""
    spare = Counter({n: o.node_count or 0 for n, o in enumerate(offers)})
    for _, need in needs:
        if need is not None:
            spare[need.place] -= need.nodes
    return spare


def _place_pool(
    draft: _Draft,
    workloads: Sequence[Workload],
    asks: Sequence[Ask],
    need: Need,
    others: Sequence[str],
) -> None:
    first, gpu = workloads[0], need.offer.gpu
    unknown = [
        unknown_partition(w.partition, gpu, w.origin)
        for w in workloads
        if w.partition and partition(w.partition, gpu) is None
    ]
    if unknown:
        draft.problems += unknown
        return
    for workload, short in need.refused.items():
        work = next(w for w in workloads if w.name == workload)
        gpus = 0 if work.partition else work.gpus_per_node
        draft.problems.append(does_not_fit(f"'{workload}'", "a node", short, work.origin, gpus))
    draft.shortfalls += [*(s for short in need.refused.values() for s in short), *need.lacking]
    if not (_labelled(need.offer) or gpu.vendor != FIRST):
        draft.problems.append(_no_product(gpu, first))
    ledger = Ledger(first.node_pool)
    chosen = draft.names.choose(
        first.node_pool, asks, need, max(draft.spare[need.place], 0), others
    )
    draft.spare[need.place] -= chosen.need.nodes - need.nodes
    if chosen.kept:
        fresh = tuple(n for n in chosen.names if n not in chosen.kept)
        draft.problems.append(stays_cut(first.node_pool, chosen.kept, fresh, need.offer.origin))
    more_nodes = chosen.need.nodes - need.nodes
    draft.stages.append(tuple(replace(s, nodes=s.nodes + more_nodes) for s in need.stages))
    need, cut = chosen.need, chosen.layouts
    if need.vgpu is None and not (need.lacking or need.refused):
        draft.crowding |= crowding(asks, need.filled, capacity(need.offer, 1), gpu)
    count = ledger.given("node_count", Quantity(need.nodes, "1", "placement: first fit decreasing"))
    draft.taken[need.place] += need.nodes
    pool = node_pool(first.node_pool, need.offer, int(count), chosen.names, ledger)
    shared = partitions(gpu, need.vgpu, need.nodes * need.offer.gpus_per_node, cut)
    free = sum(n.gpus // per_gpu(need.vgpu) for n in need.filled)
    room = tuple(Room(workload=a.workload, replicas=more(need.filled, a, gpu)) for a in asks)
    pool = replace(pool, partitions=shared, layouts=cut, idle_gpus=free, room=room if free else ())
    if need.spares:
        pool = replace(pool, spare_nodes=need.spares)
    draft.pools.append(pool)
    draft.evidence += ledger.evidence()


def _lacking(
    workloads: Sequence[Workload], need: Need, offers: Sequence[GpuOffer], draft: _Draft
) -> Diagnostic:
    """Too few nodes, and those that stand idle."""
    listed = ", ".join(f"'{w.name}' ({plural(w.gpu_count, 'GPU')})" for w in workloads)
    free = [
        (o, left)
        for place, o in enumerate(offers)
        if o.node_count is not None and (left := o.node_count - draft.taken[place]) > 0
    ]
    idle = [
        f"{left} node{'s' * (left > 1)} of {o.gpus_per_node} × {o.gpu.identifier}"
        for o, left in free
    ]
    kinds = any(o.gpu.identifier == need.offer.gpu.identifier for o, _ in free)
    problem = lacking_nodes(listed, need.lacking, workloads[0].origin, idle, kinds=kinds)
    now = need.offer.node_count or 0
    if need.offer.node_names or now <= 1:  # an inventory's, or all that a target takes
        return problem
    return with_more_nodes(problem, now, now - draft.spare[need.place])


def _no_product(gpu: Gpu, workload: Workload) -> Diagnostic:
    return missing_fact(
        f"the product name of {gpu.name}",
        "selecting its nodes",
        workload.origin,
        "choose a GPU whose label `nvidia.com/gpu.product` the catalogue knows",
    )


def _labelled(offer: GpuOffer) -> str:
    """What the vendor's label says on the offer's nodes; empty where nobody knows that: machines
    that are rented have virtual functions, which are other devices."""
    gpu = offer.gpu
    if vendor_of(gpu.vendor).labelled_by == "product":
        return gpu.product or ""
    rented = offer.shape is not None and offer.shape.provider
    return "" if rented or len(gpu.pci_ids) != 1 else gpu.pci_ids[0].partition(":")[2]


def node_pool(
    name: str, offer: GpuOffer, nodes: int, names: tuple[str, ...], ledger: Ledger
) -> NodePool:
    """`nodes` nodes of `offer` without partitions. Its price and power go to `ledger`."""
    gpu = offer.gpu
    link = None if gpu.is_card else gpu.nvlink_bytes_per_s
    count = Quantity(offer.gpus_per_node, "1", "offer: GPUs of a node")
    price: Decimal | None = None
    if offer.usd_per_gpu_hour is not None:
        paid = offer.usd_per_gpu_hour
        price = Decimal(str(paid.value)) * offer.gpus_per_node
        ledger.derive("node_usd_per_hour", PRICE, usd_per_gpu_hour=paid, gpus_per_node=count)
    watts = record_node_watts(ledger, offer)
    return NodePool(
        name=name,
        node_type=offer.node_type,
        labelled_type=offer.node_type if offer.shape and offer.shape.labelled else None,
        gpu=gpu.identifier,
        vendor=None if gpu.vendor == FIRST else gpu.vendor,
        node_count=nodes,
        node_names=names,
        gpus_per_node=offer.gpus_per_node,
        gpu_memory_bytes=int(gpu.memory_bytes.value),
        gpu_product=_labelled(offer),
        cpu_cores=offer.cpu_cores_per_node,
        threads_per_core=offer.threads_per_core,
        memory_bytes=offer.memory_bytes_per_node,
        numa_nodes=offer.numa_nodes,
        interconnect="nvlink" if link else "pcie",
        interconnect_bytes_per_s=(link or gpu.pcie_bytes_per_s).value,
        nvlink_nodes=offer.nvlink_nodes if offer.nvlink_nodes > 1 else None,
        rented=offer.shape.rented if offer.shape else None,
        usd_per_hour=price,
        priced_at=offer.listed.source.origin.citation if offer.listed else None,
        watts=watts.value,
        boards_only=offer.node_watts is None,
        origin=offer.origin,
    )
