"""Whether the machines of a plan are listed for less by another provider that may be taken, or in
another region."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import NamedTuple

from gpuplan.catalog.market import CapacityKind, Instance, RegionPrice, load_market
from gpuplan.catalog.shapes import Place
from gpuplan.plan.model import CheaperMachine, NodePool, Workload
from gpuplan.resolve.run import Resolved
from gpuplan.targets import TARGETS


class Listed(NamedTuple):
    usd_per_hour: Decimal
    machine: str
    region: str
    provider: str
    priced_at: str


CENT = Decimal("0.01")  # prices of one GPU are rounded: less is no difference


def with_cheaper(
    resolved: Resolved, pools: Sequence[NodePool], workloads: Sequence[Workload]
) -> tuple[NodePool, ...]:
    """The pools, each with the machine that costs least of those that do the same. Pools of one
    place are one cluster: they move together, to where none of them costs more."""
    taken: dict[str, Listed] = {}
    for place in {_place(pool) for pool in pools}:
        here = [pool for pool in pools if _place(pool) == place]
        listed = {pool.name: _listed(resolved, pool, workloads) for pool in here}
        places = set[Place].intersection(*(set(by_place) for by_place in listed.values()))
        sums = [
            (sum(listed[p.name][t].usd_per_hour * p.node_count for p in here), t) for t in places
        ]
        if sums:
            best = min(sums)[1]
            taken |= {name: by_place[best] for name, by_place in listed.items()}
    return tuple(replace(pool, cheaper=_cheaper(pool, taken.get(pool.name))) for pool in pools)


def _place(pool: NodePool) -> str:
    """Provider and region, whatever of it is spot."""
    return (pool.rented or "").removesuffix(", spot")


def _listed(
    resolved: Resolved, pool: NodePool, workloads: Sequence[Workload]
) -> dict[Place, Listed]:
    """By place the machine that costs least, and no more than the pool's, of lists with a date of
    their own. None where it is the manifest that says the price, or where nothing says what the
    machine costs."""
    platform = resolved.loaded.manifest.platform
    if not pool.rented or pool.usd_per_hour is None or pool.gpu in platform.prices:
        return {}
    spans = any(w.joined for w in workloads if w.node_pool == pool.name)
    fabric = platform.fabric.kind if platform.fabric and spans else None
    provider = platform.provider or TARGETS[platform.target].provider
    cheapest: dict[Place, Listed] = {}
    for machine in load_market().of_gpu(pool.gpu):
        if provider in (None, machine.provider) and _does(machine, pool, fabric):
            for rate in _rates(machine, "spot" if pool.spot else "on-demand", platform.region):
                cited = rate.source.origin.citation
                place = Place(machine.provider, rate.region)
                one = Listed(rate.usd_per_hour, machine.name, rate.region, machine.provider, cited)
                if one.usd_per_hour <= pool.usd_per_hour:
                    cheapest[place] = min(one, cheapest.get(place, one))
    return cheapest


def _cheaper(pool: NodePool, listed: Listed | None) -> CheaperMachine | None:
    own = pool.usd_per_hour
    if listed is None or own is None or own - listed.usd_per_hour < CENT:
        return None
    return CheaperMachine(
        node_type=listed.machine,
        rented=f"{listed.provider}, {listed.region}{', spot' if pool.spot else ''}",
        usd_per_hour=listed.usd_per_hour,
        priced_at=listed.priced_at,
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


def _rates(machine: Instance, capacity: CapacityKind, region: str | None) -> Iterator[RegionPrice]:
    for rate in load_market().rates(machine, capacity):
        if rate.dated and region in (None, rate.region):
            yield rate
