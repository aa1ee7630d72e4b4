"""The cluster of a cloud's target: which machines in which zones, by which facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from gpuplan.catalog.clouds import CloudFacts, CloudRelease, load_cloud
from gpuplan.catalog.market import Instance, load_market
from gpuplan.diagnostics import Diagnostic
from gpuplan.manifest.cluster import ClusterSpec, ReservationSpec
from gpuplan.manifest.v1 import Platform
from gpuplan.plan.model import NodePool, Workload
from gpuplan.plan.outside.cloud import (
    Capacity,
    Cloud,
    Group,
    NetworkCards,
    Quota,
    Release,
    Reservation,
)
from gpuplan.resolve.clouds import messages
from gpuplan.resolve.run import Resolved
from gpuplan.source import Origin
from gpuplan.targets import TARGETS

LONGEST_BLOCK = 64  # machines of a Capacity Block (EC2 user guide, Capacity Blocks for ML)
NOTHING = ClusterSpec()


def cloud(
    resolved: Resolved, pools: Sequence[NodePool], workloads: Sequence[Workload]
) -> Cloud | None:
    """None of a target whose cluster nobody manages, or where `cloud_problems` are errors."""
    platform, facts = resolved.loaded.manifest.platform, _facts(resolved)
    spec = platform.cluster or NOTHING
    release = _release(platform, facts) if facts else None
    if facts is None or release is None or not spec.zones:
        return None
    groups = tuple(
        group for pool in pools for group in _groups(resolved, pool, workloads, facts, spec)
    )
    return Cloud(
        provider=TARGETS[platform.target].provider or "",
        existing=spec.existing,
        zones=tuple(spec.zones),
        scaling=spec.scaling or "fixed",
        release=Release(
            version=release.version,
            standard_until=release.standard_until,
            extended_until=release.extended_until,
            source=release.source,
        ),
        driver_on_nodes=TARGETS[platform.target].driver_on_nodes,
        groups=groups,
        quotas=tuple(_quotas(groups, facts)),
    )


def cloud_problems(
    resolved: Resolved, pools: Sequence[NodePool], workloads: Sequence[Workload]
) -> list[Diagnostic]:
    """What the cluster cannot be made of, and what a person should know of it."""
    facts, platform = _facts(resolved), resolved.loaded.manifest.platform
    if facts is None:
        return []
    at = Origin(resolved.loaded.document, ("platform",))
    spec = platform.cluster or NOTHING
    problems = [*_of_zones(platform, spec, at), *_of_platform(platform, facts, at)]
    for number, reserved in enumerate(spec.reservations):
        here = at.child("cluster", "reservations", number)
        problems += _of_reservation(reserved, pools, spec, here)
    for pool in pools:
        if pool.layouts and spec.scaling == "karpenter":
            problems.append(messages.cut_by_karpenter(pool))
        problems += _of_pool(resolved, pool, workloads, facts)
    return problems


def used_facts(resolved: Resolved) -> Iterator[tuple[str, object]]:
    """What a plan for the cloud rests on, by name: the release, and what is known of the machines
    that it may rent beside the catalogue's list of them."""
    facts = _facts(resolved)
    release = _release(resolved.loaded.manifest.platform, facts) if facts else None
    if facts is None or release is None:
        return
    file = release.source.file
    yield f"{file} {release.version}", (release.standard_until, release.extended_until)
    for name in sorted({o.shape.name for o in resolved.site.gpus if o.shape}):
        cards, numa = facts.interfaces.get(name), facts.numa_nodes.get(name)
        if cards or numa:
            yield f"{file} {name}", (cards and (cards.cards, cards.first), numa)


def _facts(resolved: Resolved) -> CloudFacts | None:
    target = TARGETS[resolved.loaded.manifest.platform.target]
    return load_cloud(target.provider) if target.provider and target.backends else None


def _of_zones(platform: Platform, spec: ClusterSpec, at: Origin) -> Iterator[Diagnostic]:
    if platform.region is None:
        yield messages.no_region(platform.target, at)
    if not spec.zones:
        yield messages.no_zones(platform.target, at)
    elif len(set(spec.zones)) < 2 and spec.existing is None:
        yield messages.one_zone(platform.target, at.child("cluster", "zones"))
    for number, zone in enumerate(spec.zones or ()):
        if platform.region and zone[:-1] != platform.region:
            here = at.child("cluster", "zones", number)
            yield messages.other_region(zone, platform.region, here)


def _of_platform(platform: Platform, facts: CloudFacts, at: Origin) -> Iterator[Diagnostic]:
    """What the cloud's nodes are, and a manifest cannot make otherwise."""
    for field in ("inventory", "node"):
        if getattr(platform, field) is not None:
            yield messages.no_machines_of_ones_own(platform.target, field, at.child(field))
    if _release(platform, facts) is None:
        here = at.child("versions", "kubernetes")
        stated = platform.versions["kubernetes"].version
        yield messages.unknown_release(stated, [r.version for r in facts.releases], here)
    if TARGETS[platform.target].driver_on_nodes and "driver" in platform.versions:
        yield messages.driver_of_the_image(platform.target, at.child("versions", "driver"))
    if platform.fabric and platform.fabric.kind not in ("efa", "ethernet"):
        here = at.child("fabric", "kind")
        yield messages.other_fabric(platform.target, platform.fabric.kind, here)


def _of_reservation(
    reserved: ReservationSpec, pools: Sequence[NodePool], spec: ClusterSpec, at: Origin
) -> Iterator[Diagnostic]:
    held = [p for p in pools if p.node_type == reserved.node]
    if not held:
        yield messages.unused_reservation(reserved, at.child("node"))
    for pool in held:
        if reserved.kind == "block" and pool.node_count > LONGEST_BLOCK:
            yield messages.large_block(pool, LONGEST_BLOCK, at)
        if pool.spot:
            yield messages.spot_and_reserved(pool, at)
    if spec.zones and reserved.zone not in spec.zones:
        yield messages.reservation_elsewhere(reserved, at.child("zone"))


def _of_pool(
    resolved: Resolved, pool: NodePool, workloads: Sequence[Workload], facts: CloudFacts
) -> Iterator[Diagnostic]:
    machine = _machine(pool)
    if machine is None:
        yield messages.unknown_machine(pool)
        return
    fabric = resolved.site.fabric
    spanning = _spanning(pool, workloads)
    if fabric is not None and fabric.kind == "efa" and spanning:
        if machine.name not in facts.interfaces:
            yield messages.no_efa(pool, machine.name)
        for workload in spanning:
            yield messages.image_without_plugin(workload)
    if machine.name not in facts.numa_nodes:
        yield messages.no_memory_manager(pool, machine.name)


def _release(platform: Platform, facts: CloudFacts) -> CloudRelease | None:
    """The one that the manifest names, else the newest whose days are known."""
    stated = platform.versions.get("kubernetes")
    if stated is None:
        return facts.newest
    minor = ".".join(stated.version.removeprefix("v").split(".")[:2])
    return next((r for r in facts.releases if r.version == minor), None)


def _machine(pool: NodePool) -> Instance | None:
    found = load_market().instance(pool.node_type) if pool.node_type else None
    return found[1] if found else None


def _spanning(pool: NodePool, workloads: Sequence[Workload]) -> list[Workload]:
    """Work of the pool whose GPUs talk to those of other nodes."""
    return [w for w in workloads if w.node_pool == pool.name and w.nodes_per_replica > 1]


def _groups(
    resolved: Resolved,
    pool: NodePool,
    workloads: Sequence[Workload],
    facts: CloudFacts,
    spec: ClusterSpec,
) -> Iterator[Group]:
    """A group for each way in which nodes of the pool are cut."""
    machine = _machine(pool)
    if machine is None:
        return
    fabric = resolved.site.fabric
    together = bool(fabric and fabric.kind == "efa" and _spanning(pool, workloads))
    held = next((r for r in spec.reservations if r.node == pool.node_type), None)
    zones = tuple(spec.zones or ())
    card = facts.interfaces.get(machine.name) if together else None
    cut = sum(layout.node_count for layout in pool.layouts)
    parts: list[tuple[int | None, int]] = [(n, x.node_count) for n, x in enumerate(pool.layouts)]
    parts += [(None, pool.node_count - cut)] if pool.node_count > cut else []
    for layout, count in parts:
        end = "whole" if layout is None else str(layout + 1)
        yield Group(
            name=pool.name if len(parts) == 1 else f"{pool.name}-{end}",
            pool=pool.name,
            node_type=machine.name,
            count=count,
            layout=layout,
            capacity=_capacity(pool, held),
            reservation=None
            if held is None
            else Reservation(identifier=held.id, placement_group=held.placement_group),
            zones=(held.zone,) if held else zones[:1] if together else zones,
            together=together,
            network_cards=None
            if card is None
            else NetworkCards(cards=card.cards, first=card.first, source=card.source),
            vcpus=machine.vcpus,
            memory_bytes=machine.memory_bytes,
            nvme_bytes=machine.nvme_bytes,
            numa_nodes=facts.numa_nodes.get(machine.name),
        )


def _capacity(pool: NodePool, held: ReservationSpec | None) -> Capacity:
    if held is not None:
        return "block" if held.kind == "block" else "reserved"
    return "spot" if pool.spot else "on-demand"


def _quotas(groups: Sequence[Group], facts: CloudFacts) -> Iterator[Quota]:
    """Of each family and kind of capacity together. Reservations count as on demand; a Capacity
    Block needs none."""
    needed: dict[tuple[str, Literal["on-demand", "spot"]], int] = {}
    for group in (g for g in groups if g.capacity != "block" and g.vcpus):
        kind: Literal["on-demand", "spot"] = "spot" if group.capacity == "spot" else "on-demand"
        family = group.node_type.partition(".")[0]
        known = [
            q
            for q in facts.quotas
            if q.capacity == kind and any(family.startswith(f) for f in q.families)
        ]
        key = (known[0].name if known else family, kind)
        needed[key] = needed.get(key, 0) + group.count * (group.vcpus or 0)
    by_name = {q.name: q for q in facts.quotas}
    for (name, kind), amount in needed.items():
        fact = by_name.get(name)
        yield Quota(
            name=fact.name if fact else None,
            code=fact.code if fact else None,
            families=fact.families if fact else (name,),
            capacity=kind,
            amount=amount,
            source=fact.source if fact else None,
        )
