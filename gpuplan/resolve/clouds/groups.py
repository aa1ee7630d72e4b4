"""Pools of a plan as groups of machines that a cloud makes and removes together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from gpuplan.catalog.clouds import QuotaFact
from gpuplan.catalog.market import Instance, load_market
from gpuplan.plan.model import NodeLayout, NodePool
from gpuplan.plan.outside.cloud import (
    WAITED,
    CapacityKind,
    CapacityReservation,
    Group,
    NetworkCards,
    Quota,
)
from gpuplan.resolve.clouds.driver import driver_on_nodes
from gpuplan.resolve.clouds.provider import Asked, Provider
from gpuplan.targets import TARGETS


def machine_of(pool: NodePool) -> Instance | None:
    listed = load_market().instance(pool.node_type) if pool.node_type else None
    return listed[1] if listed else None


def groups_of(asked: Asked, provider: Provider) -> tuple[Group, ...]:
    return tuple(group for pool in asked.pools for group in _groups(asked, provider, pool))


def _groups(asked: Asked, provider: Provider, pool: NodePool) -> Iterator[Group]:
    """A group for each way in which nodes of the pool are cut."""
    machine = machine_of(pool)
    if machine is None:
        return
    facts, spec = asked.facts, asked.spec
    together, held, waited = (
        asked.together(pool, provider),
        asked.reserved(pool),
        asked.provisioned(pool),
    )
    zones = tuple(spec.zones or ())
    cards = _cards(asked, machine) if together else None
    platform = asked.platform
    by_cloud = TARGETS[platform.target].plugin_on_nodes or (
        provider.cuts and driver_on_nodes(platform, asked.pools)
    )
    capacity = _capacity(asked, pool)
    spread = provider.even_zones and capacity not in WAITED and spec.scaling in (None, "fixed")
    for name, layout, count in _parts(pool):
        cut = None if layout is None else pool.layouts[layout]
        yield Group(
            name=name,
            pool=pool.name,
            node_type=machine.name,
            count=count,
            layout=layout,
            partition=one_profile(asked, pool, cut) if cut and by_cloud else None,
            capacity=capacity,
            taints=provider.taints.get(capacity, ()),
            run_seconds=int(waited.longest) if waited else None,
            reservation=None
            if held is None
            else CapacityReservation(identifier=held.id, placement_group=held.placement_group),
            zones=(held.zone,) if held else zones[:1] if together else _even(zones, count, spread),
            together=together,
            network_cards=cards,
            vcpus=machine.vcpus,
            memory_bytes=machine.memory_bytes,
            nvme=spec.local_disks or "ephemeral",
            nvme_bytes=machine.nvme_bytes,
            nvme_drives=machine.nvme_drives or facts.drives.get(machine.name),
            accelerator=facts.accelerator(machine.name),
            temporary_bytes=facts.temporary_bytes.get(machine.name),
            numa_nodes=facts.numa_nodes.get(machine.name),
        )


def _cards(asked: Asked, machine: Instance) -> NetworkCards | None:
    """Those that a source lists one by one, else the adapters of a machine with InfiniBand."""
    card, rdma = asked.facts.interfaces.get(machine.name), machine.rdma
    if card is not None:
        return NetworkCards(cards=card.cards, first=card.first, source=card.source)
    if rdma is not None and rdma.kind == "infiniband":
        return NetworkCards(cards=rdma.interfaces, first="rdma", source=machine.source)
    return None


def _parts(pool: NodePool) -> Iterator[tuple[str, int | None, int]]:
    """Name, layout and size of each group."""
    cut = sum(layout.node_count for layout in pool.layouts)
    parts: list[tuple[int | None, int]] = [(n, x.node_count) for n, x in enumerate(pool.layouts)]
    parts += [(None, pool.node_count - cut)] if pool.node_count > cut else []
    for layout, count in parts:
        end = "whole" if layout is None else str(layout + 1)
        yield pool.name if len(parts) == 1 else f"{pool.name}-{end}", layout, count


def one_profile(asked: Asked, pool: NodePool, layout: NodeLayout) -> str | None:
    """The profile that all GPUs of a node can be cut by alike: those that nobody has may be, too.
    None where the plan has several profiles there, or somebody takes whole GPUs of the pool."""
    names = {name for gpus in layout.gpus for name in gpus.counts}
    every = sum(len(gpus.gpus) for gpus in layout.gpus) == pool.gpus_per_node
    taken = any(w.node_pool == pool.name and w.partition is None for w in asked.workloads)
    return min(names) if len(names) == 1 and (every or not taken) else None


def _even(zones: tuple[str, ...], count: int, spread: bool) -> tuple[str, ...]:
    """As many of the first zones as have equally many of the machines, where they must."""
    if not spread:
        return zones
    return next((zones[:n] for n in range(len(zones), 0, -1) if count % n == 0), zones)


def _capacity(asked: Asked, pool: NodePool) -> CapacityKind:
    held, waited = asked.reserved(pool), asked.provisioned(pool)
    if held is not None:
        return "block" if held.kind == "block" else "reserved"
    if waited is not None:
        return waited.kind
    return "spot" if pool.spot else "on-demand"


def quotas_of(asked: Asked, provider: Provider, groups: Sequence[Group]) -> Iterator[Quota]:
    """Of each quota that counts some of the groups, what they need together; of a family that none
    is known to count, its own."""
    needed: dict[tuple[str, Literal["on-demand", "spot", "any"]], int] = {}
    facts: dict[str, QuotaFact] = {q.name: q for q in asked.facts.quotas}
    for group in groups:
        kind = provider.quota_kinds.get(group.capacity, "on-demand")
        amount = _amount(asked, provider, group)
        if kind is None or not amount:
            continue
        kinds = (kind, "any")
        counting = [
            q for q in asked.facts.quotas if q.capacity in kinds and q.counts(group.node_type)
        ]
        keys = [(q.name, q.capacity) for q in counting]
        if not any(q.families for q in counting):
            family = re.match(provider.family, group.node_type)
            keys.insert(0, (family[0] if family else group.node_type, kind))
        for key in keys:
            needed[key] = needed.get(key, 0) + amount
    for (name, counted), amount in needed.items():
        fact = facts.get(name)
        yield Quota(
            name=fact.name if fact else None,
            code=fact.code if fact else None,
            families=fact.families if fact else (name,),
            capacity=counted,
            amount=amount,
            unit=provider.quota_unit,
            source=fact.source if fact else None,
        )


def _amount(asked: Asked, provider: Provider, group: Group) -> int:
    if provider.quota_unit == "vCPUs":
        return group.count * (group.vcpus or 0)
    pool = next(p for p in asked.pools if p.name == group.pool)
    return group.count * pool.gpus_per_node
