"""MIG layouts across compilations: a node is cut anew only where it must be, and never silently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from gpuplan.diagnostics import Diagnostic
from gpuplan.kubernetes import mig
from gpuplan.kubernetes.update import messages
from gpuplan.plan.model import GpuLayout, NodePool, Plan
from gpuplan.plan.risks import recut_nodes

Cut = tuple[GpuLayout, ...]  # of a node; empty where its GPUs are whole


def keep_layouts(before: Plan, after: Plan) -> tuple[Plan, tuple[Diagnostic, ...]]:
    """`after` with its cuts dealt to nodes so that as many as possible stay as they are, and a
    warning for each other."""
    former = {p.name: p for p in before.node_pools}
    pools = (_in_order(former[p.name], p) if p.name in former else p for p in after.node_pools)
    plan = replace(after, node_pools=tuple(pools))
    return plan, tuple(_recut(before, plan))


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
