"""Whether the machines of a plan are listed for less by another provider that may be taken, or in
another region."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

from gpuplan.catalog.market import Capacity, Instance, RegionPrice, load_market
from gpuplan.plan.model import CheaperMachine, NodePool, Workload
from gpuplan.resolve.run import Resolved
from gpuplan.targets import TARGETS

CENT = Decimal("0.01")  # prices of one GPU are rounded: less is no difference


def with_cheaper(
    resolved: Resolved, pools: Sequence[NodePool], workloads: Sequence[Workload]
) -> tuple[NodePool, ...]:
    """The pools, each with the machine that costs least of those that do the same."""
    return tuple(replace(pool, cheaper=_cheaper(resolved, pool, workloads)) for pool in pools)


def _cheaper(
    resolved: Resolved, pool: NodePool, workloads: Sequence[Workload]
) -> CheaperMachine | None:
    """Of lists with a date of their own. None where it is the manifest that says the price, or
    where nothing says what the machine costs."""
    platform = resolved.loaded.manifest.platform
    if not pool.rented or pool.usd_per_hour is None or pool.gpu in platform.prices:
        return None
    spans = any(w.nodes_per_replica > 1 for w in workloads if w.node_pool == pool.name)
    fabric = platform.fabric.kind if platform.fabric and spans else None
    provider = platform.provider or TARGETS[platform.target].provider
    found = [
        (rate.usd_per_hour, rate.region, machine.name, machine, rate)
        for machine in load_market().of_gpu(pool.gpu)
        if provider in (None, machine.provider) and _does(machine, pool, fabric)
        for rate in _rates(machine, "spot" if pool.spot else "on-demand", platform.region)
        if pool.usd_per_hour - rate.usd_per_hour >= CENT
    ]
    if not found:
        return None
    *_, machine, rate = min(found, key=lambda row: row[:3])
    capacity = ", spot" if pool.spot else ""
    return CheaperMachine(
        node_type=machine.name,
        rented=f"{machine.provider}, {rate.region}{capacity}",
        usd_per_hour=rate.usd_per_hour,
        priced_at=rate.source.origin.citation,
    )


def _does(machine: Instance, pool: NodePool, fabric: str | None) -> bool:
    """What is not known of either is not enough."""
    cores = machine.cores or (machine.vcpus or 0) // (machine.threads_per_core or 2)
    return (
        machine.gpus == pool.gpus_per_node
        and pool.cpu_cores is not None
        and cores >= pool.cpu_cores
        and pool.memory_bytes is not None
        and (machine.memory_bytes or 0) >= pool.memory_bytes
        and (fabric is None or (machine.rdma is not None and machine.rdma.kind == fabric))
    )


def _rates(machine: Instance, capacity: Capacity, region: str | None) -> Iterator[RegionPrice]:
    for rate in load_market().rates(machine, capacity):
        if rate.dated and region in (None, rate.region):
            yield rate
