"""Workloads in virtual machines on the hosts of an inventory, and the pools those hosts are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from gpuplan.catalog.model import Gpu, VgpuType
from gpuplan.diagnostics import Diagnostic, Severity, worst
from gpuplan.placement.machines.guests import Guest, guests
from gpuplan.placement.machines.hypervisors import Hypervisor, lower
from gpuplan.placement.machines.idle import with_idle
from gpuplan.placement.machines.machines import Machines, place_machines
from gpuplan.placement.pools.pools import Pools, node_pool
from gpuplan.placement.pools.stages import Stage, stages
from gpuplan.placement.problems import no_hardware, unknown_partition
from gpuplan.plan.model import Evidence, NodePool, Partition, VirtualMachine, Workload, record
from gpuplan.sharing.partitions import guest_type, in_pool, partition
from gpuplan.sizing.evidence.formula import Ledger, Quantity
from gpuplan.sizing.hardware.offers import GpuOffer
from gpuplan.source import Origin

if TYPE_CHECKING:
    from gpuplan.inventory.v1 import HostSpec, Inventory


@record
class Virtual:
    """`diagnostics` are all but the pools' own."""

    pools: Pools = Pools()
    machines: Machines = Machines()
    diagnostics: tuple[Diagnostic, ...] = ()


def place_virtual(
    name: str,
    workloads: Sequence[Workload],
    offers: Sequence[GpuOffer],
    inventory: Inventory,
    document: str,
    *,
    former: Sequence[VirtualMachine] = (),
    fabric_bytes_per_s: float | None = None,
) -> Virtual:
    """Every replica's nodes as guests on the inventory's hosts, where `former` has some already."""
    gpus = {o.gpu.identifier: o.gpu for o in reversed(offers)}
    wanted: list[Guest] = []
    problems: list[Diagnostic] = []
    for workload in workloads:
        problem = _refusal(workload, gpus, inventory)
        if problem is None:
            wanted += guests(workload, gpus[workload.gpu], fabric_bytes_per_s)
        else:
            problems.append(problem)
    lowered = lower(inventory, document, {w.gpu for w in workloads})
    problems += lowered.diagnostics
    if worst(problems) is Severity.ERROR:
        return Virtual(diagnostics=tuple(problems))
    machines = place_machines(name, lowered.hypervisors, wanted, former)
    pools = _pools(workloads, machines, offers, inventory, document)
    if not machines.shortfalls:
        every = (with_idle(name, p, machines, pools.workloads, offers) for p in pools.node_pools)
        pools = replace(pools, node_pools=tuple(every))
    return Virtual(
        pools=pools,
        machines=machines,
        diagnostics=(*problems, *machines.diagnostics),
    )


def _refusal(workload: Workload, gpus: dict[str, Gpu], inventory: Inventory) -> Diagnostic | None:
    """Why a workload cannot be placed whatever is free."""
    present = {g.type for spec in inventory.hosts for g in spec.gpus}
    if workload.gpu not in gpus or workload.gpu not in present:
        return no_hardware(workload.name, workload.gpu, present, workload.origin)
    gpu = gpus[workload.gpu]
    if workload.partition is not None and _guest_type(workload, gpu) is None:
        return unknown_partition(workload.partition, gpu, workload.origin)
    return None


def _guest_type(workload: Workload, gpu: Gpu) -> VgpuType | None:
    return guest_type(partition(workload.partition, gpu), gpu)


def _pools(
    workloads: Sequence[Workload],
    machines: Machines,
    offers: Sequence[GpuOffer],
    inventory: Inventory,
    document: str,
) -> Pools:
    """One pool for each inventory entry whose hosts are used, called after the first workload on
    it. A host is in one pool, whatever else runs on it."""
    hypervisors = {h.host.name: h for h in machines.hypervisors}
    pools: dict[int, NodePool] = {}
    evidence: list[Evidence] = []
    placed: list[Workload] = []
    for workload in workloads:
        own = (m for m in machines.virtual_machines if m.workload == workload.name)
        used = [hypervisors[machine.host] for machine in own]
        for hypervisor in used:
            kind = hypervisor.kind
            if kind not in pools:
                ledger = Ledger(_free_name(workload.node_pool, [p.name for p in pools.values()]))
                spec, at = inventory.hosts[kind], Origin(document, ("hosts", kind))
                names = tuple(n for n, h in hypervisors.items() if h.kind == kind)
                offer = _offer(hypervisor, spec, workload, offers, at)
                pool = node_pool(ledger.prefix, offer, len(names), names, ledger)
                pools[kind] = _priced(pool, spec, at, ledger)
                evidence += ledger.evidence()
        placed.append(replace(workload, node_pool=pools[used[0].kind].name) if used else workload)
    complete = (replace(p, partitions=_partitions(p, placed, offers)) for p in pools.values())
    return Pools(
        workloads=tuple(placed),
        node_pools=tuple(complete),
        stages=tuple(_stages(placed, machines, pool.node_names) for pool in pools.values()),
        evidence=tuple(evidence),
    )


def _stages(
    workloads: Sequence[Workload], machines: Machines, hosts: Sequence[str]
) -> tuple[Stage, ...]:
    """How long the hosts of a pool are needed: each until the last of its guests ends."""
    hours = {w.name: w.run_hours for w in workloads}
    on = [(hours[m.workload], m.host) for m in machines.virtual_machines if m.host in hosts]

    def nodes(until: Decimal | None) -> int:
        longer = (host for own, host in on if own is None or (until and own >= until))
        return len(set(longer))

    return stages((own for own, _ in on), nodes, len(hosts))


def _free_name(name: str, taken: Sequence[str]) -> str:
    candidates = (name, *(f"{name}-{number}" for number in range(2, len(taken) + 3)))
    return next(c for c in candidates if c not in taken)


def _offer(
    hypervisor: Hypervisor,
    spec: HostSpec,
    workload: Workload,
    offers: Sequence[GpuOffer],
    at: Origin,
) -> GpuOffer:
    same = [o for o in offers if o.gpu.identifier == workload.gpu]
    exact = [o for o in same if o.node_type == spec.node_type]
    nodes = hypervisor.host.numa_nodes
    return GpuOffer(
        gpu=same[0].gpu,
        node_type=spec.node_type,
        gpus_per_node=sum(d.device.model == workload.gpu for d in hypervisor.of("gpu")),
        node_count=len(spec.names),
        cpu_cores_per_node=sum(len(n.cores) for n in nodes),
        threads_per_core=hypervisor.host.threads_per_core,
        memory_bytes_per_node=sum(n.memory_bytes for n in nodes),
        numa_nodes=len(nodes),
        usd_per_gpu_hour=(exact or same)[0].usd_per_gpu_hour,
        origin=at,
    )


def _priced(pool: NodePool, spec: HostSpec, at: Origin, ledger: Ledger) -> NodePool:
    """The pool at the price that the inventory states for a host, if it does."""
    if spec.price is None:
        return pool
    source = f"inventory: {at.child('price')}"
    ledger.given("node_usd_per_hour", Quantity(float(spec.price), "USD/h", source))
    return replace(pool, usd_per_hour=spec.price)


def _partitions(
    pool: NodePool, workloads: Sequence[Workload], offers: Sequence[GpuOffer]
) -> tuple[Partition, ...]:
    """What the pool's GPUs are shared as, where all its workloads use the same vGPU type. In a
    mixed pool the hosts' devices and the guests say which GPU is cut how."""
    users = [w for w in workloads if w.node_pool == pool.name]
    gpu = next(o.gpu for o in offers if o.gpu.identifier == pool.gpu)
    types = {_guest_type(w, gpu) for w in users}
    only = next(iter(types)) if len(types) == 1 else None
    gpus = pool.node_count * pool.gpus_per_node
    return () if only is None else (in_pool(only, gpus * only.maximum),)
