"""What a change could destroy or break, judged from two plans: data, machines, namespaces,
objectives."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.diagnostics import Severity
from gpuplan.plan.changes.moves import Move
from gpuplan.plan.figures import headroom
from gpuplan.plan.model import (
    NodeLayout,
    NodePool,
    Plan,
    RetainedClaim,
    VirtualMachine,
    Volume,
    Workload,
    record,
)
from gpuplan.plan.times import in_words
from gpuplan.units import format_bytes, format_quantity, plural


@record
class Risk:
    """`ERROR`: something stateful is lost or made anew. `WARNING`: a service stops or misses an
    objective."""

    severity: Severity
    resource: str
    message: str


def lost(resource: str, message: str) -> Risk:
    return Risk(severity=Severity.ERROR, resource=resource, message=message)


def worse(resource: str, message: str) -> Risk:
    return Risk(severity=Severity.WARNING, resource=resource, message=message)


def risks(
    base: Plan | None, head: Plan | None, pairs: list[tuple[Workload | None, Workload | None]]
) -> tuple[Risk, ...]:
    """The gravest first; `pairs` are the workloads before and after."""
    kept = _retained(head) if head else {}
    every = [r for old, new in pairs for r in _workload(old, new, kept)]
    if base is not None:
        machines = {m.name: m for m in head.virtual_machines} if head else {}
        for machine in base.virtual_machines:
            every += _machine(machine, machines.get(machine.name))
        tenants = {t.name for t in head.tenants} if head else set()
        every += [
            lost(f"tenant/{t.name}", f"tenant {t.name} is removed, with all in its namespace")
            for t in base.tenants
            if t.name not in tenants
        ]
        every += [
            worse(
                f"node/{node}",
                f"node {node} is cut anew: whoever works on its"
                f" {plural(layout.instances, 'MIG instance')} is stopped",
            )
            for node, layout, _, _ in (recut_nodes(base, head) if head else ())
        ]
    return tuple(sorted(every, key=lambda r: r.severity.rank))


def recut_nodes(
    base: Plan, head: Plan
) -> Iterator[tuple[str, NodeLayout, NodeLayout | None, NodePool]]:
    """Nodes that both plans have and whose GPUs, cut before, are cut otherwise: the node, its
    layouts before and after (None: whole GPUs), its pool."""
    cut = {name: item for p in base.node_pools for item in p.layouts for name in item.node_names}
    for pool in head.node_pools:
        own = {name: item for item in pool.layouts for name in item.node_names}
        for node in pool.node_names:
            now = own.get(node)
            if node in cut and (now is None or now.gpus != cut[node].gpus):
                yield node, cut[node], now, pool


Kept = dict[tuple[str, str, int | None], RetainedClaim]  # by workload, volume, generation


def _retained(plan: Plan) -> Kept:
    return {(c.workload, c.volume, c.generation): c for c in plan.retained_claims}


def _workload(old: Workload | None, new: Workload | None, kept: Kept) -> Iterator[Risk]:
    if old is not None:
        yield from _data(old, new, kept)
    if old is not None and new is None:
        yield worse(f"workload/{old.name}", f"workload {old.name} stops")
    if new is not None:
        yield from _objectives(old, new)


def _data(old: Workload, new: Workload | None, retained: Kept) -> Iterator[Risk]:
    volumes = {v.name: v for v in new.volumes} if new else {}
    for volume in old.volumes:
        resource = f"volume/{old.name}/{volume.name}"
        name = f"volume {volume.name} of {old.name} ({format_bytes(volume.size_bytes)})"
        kept = volumes.get(volume.name)
        claim = retained.get((old.oldest_name, volume.name, volume.generation))
        if claim and claim.pods and new and new.tenant == claim.tenant:
            pods = plural(claim.pods, "pod")
            yield worse(resource, f"{name} is kept of {pods} and no longer mounted there")
        elif claim:
            again = ", and its place is taken by an empty one" if kept else ""
            yield worse(resource, f"{name} is kept and no longer mounted{again}")
        elif new is None or kept is None:
            yield lost(resource, f"{name} is removed")
        elif new.tenant != old.tenant:
            yield lost(resource, f"{name} is made anew for tenant {new.tenant}")
        elif new.oldest_name != old.oldest_name:
            loss = f"{name} is made anew: 'renamed_from' must keep '{old.oldest_name}' first"
            yield lost(resource, loss)
        else:
            yield from _volume(resource, name, volume, kept)


def _volume(resource: str, name: str, old: Volume, new: Volume) -> Iterator[Risk]:
    if new.size_bytes < old.size_bytes:
        size = format_bytes(new.size_bytes)
        yield lost(resource, f"{name} cannot shrink to {size}: it is replaced")
    if new.storage_class != old.storage_class:
        to = new.storage_class or "the default class"
        yield lost(resource, f"{name} changes its storage class to {to}: it is replaced")
    if new.shared != old.shared:
        yield lost(resource, f"{name} changes who may mount it: it is replaced")


def _machine(old: VirtualMachine, new: VirtualMachine | None) -> Iterator[Risk]:
    resource = f"virtual_machine/{old.name}"
    if new is None:
        yield lost(resource, f"VM {old.name} is destroyed")
        return
    if new.uuid != old.uuid:
        yield lost(resource, f"VM {old.name} is replaced: its UUID changes")
    if new.host != old.host:
        yield lost(resource, Move(before=old, after=new).text)
    disks = {d.name: d for d in new.disks}
    for disk in old.disks:
        kept = disks.get(disk.name)
        if kept is None or kept.source != disk.source:
            yield lost(resource, f"VM {old.name} loses its disk {disk.name} ({disk.source})")
        elif kept.size_bytes < disk.size_bytes:
            yield lost(resource, f"disk {disk.name} of VM {old.name} shrinks")


def _objectives(old: Workload | None, new: Workload) -> Iterator[Risk]:
    """Objectives that are missed now and were not before."""
    before = {m.name: headroom(m) for m in old.metrics} if old else {}
    for metric in new.metrics:
        room, was = headroom(metric), before.get(metric.name)
        if room is not None and metric.limit is not None and room < 0 and (was is None or was >= 0):
            value = format_quantity(metric.estimate.value, metric.unit)
            limit = format_quantity(metric.limit, metric.unit)
            missed = f"{new.name} misses its {in_words(metric.name)}: {value} of {limit}"
            accepted = ", as its manifest accepts" if metric.accepted_miss else ""
            yield worse(f"workload/{new.name}", missed + accepted)
