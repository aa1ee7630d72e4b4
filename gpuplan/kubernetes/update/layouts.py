"""MIG layouts across compilations: a node is cut anew only where it must be, and never silently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from gpuplan.diagnostics import Diagnostic
from gpuplan.kubernetes import mig
from gpuplan.kubernetes.update import messages
from gpuplan.kubernetes.update.claims import same
from gpuplan.plan.model import GpuLayout, NodePool, Plan, Workload
from gpuplan.plan.risks import recut_nodes

Cut = tuple[GpuLayout, ...]  # of a node; empty where its GPUs are whole


def keep_layouts(before: Plan, after: Plan) -> tuple[Plan, tuple[Diagnostic, ...]]:
    """`after` with nodes cut as they are wherever that serves it, and a warning for each other."""
    there = {p.name: p for p in before.node_pools}
    notes: list[Diagnostic] = []
    pools = []
    for pool in after.node_pools:
        former = there.get(pool.name)
        kept = pool if former is None else _kept(before, after, former, pool)
        if former is not None and kept.layouts == former.layouts != _in_order(former, pool).layouts:
            notes.append(messages.keeps_layout(pool.name, pool.origin))
        pools.append(kept)
    plan = replace(after, node_pools=tuple(pools))
    return plan, (*notes, *_recut(before, plan))


def _kept(before: Plan, after: Plan, former: NodePool, pool: NodePool) -> NodePool:
    alike = (former.gpu, former.node_names) == (pool.gpu, pool.node_names)
    if alike and pool.node_names and former.layouts and _holds_all(before, after, pool):
        return replace(pool, layouts=former.layouts, partitions=former.partitions)
    return _in_order(former, pool)


def _holds_all(before: Plan, after: Plan, pool: NodePool) -> bool:
    """Whether all that runs on the pool did so before, in no fewer pods with no less each."""
    return all(
        (former := same(before, workload)) is not None and _is_part(workload, former)
        for workload in after.workloads
        if workload.node_pool == pool.name
    )


def _is_part(workload: Workload, former: Workload) -> bool:
    def shape(work: Workload) -> tuple[object, ...]:
        each = (work.partition, work.gpus_per_node, work.nodes_per_replica)
        return work.node_pool, work.isolation, each, work.resources

    return shape(workload) == shape(former) and workload.replicas <= former.replicas


def _in_order(former: NodePool, pool: NodePool) -> NodePool:
    """The pool's cuts, given to nodes so that as many as possible stay as they are."""
    if not pool.node_names:
        return pool
    was, now = cuts(former), cuts(pool)
    left = Counter(now.values())
    given: dict[str, Cut] = {}
    for node in now:
        if node in was and left[was[node]]:
            given[node] = was[node]
            left[was[node]] -= 1
    rest = iter(left.elements())
    dealt = {node: given[node] if node in given else next(rest) for node in now}
    layouts = []
    for layout in pool.layouts:
        names = tuple(n for n in pool.node_names if dealt[n] == layout.gpus)
        layouts.append(replace(layout, node_names=names))
    return replace(pool, layouts=tuple(layouts))


def cuts(pool: NodePool) -> dict[str, Cut]:
    """How the GPUs of each node are cut, in the pool's order."""
    own = {name: layout.gpus for layout in pool.layouts for name in layout.node_names}
    return {name: own.get(name, ()) for name in pool.node_names}


def _recut(before: Plan, after: Plan) -> Iterator[Diagnostic]:
    for node, former, layout, pool in recut_nodes(before, after):
        instances = former.instances
        name = mig.DISABLED if layout is None else mig.profile_name(layout)
        yield messages.recut(node, mig.profile_name(former), name, instances, pool.origin)
