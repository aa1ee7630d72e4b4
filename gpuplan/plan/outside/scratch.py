"""What pods write to the own disk of their node."""

from __future__ import annotations

from collections.abc import Iterable

from gpuplan.plan.site import NodeLayout, NodePool
from gpuplan.plan.workload import Workload


def scratch_bytes(pool: NodePool, layout: NodeLayout | None, workloads: Iterable[Workload]) -> int:
    """Of a node of the pool that is cut so; None where its GPUs are whole. Each of the workloads
    may be there as often as the node has devices for it, also where it is not now."""
    return sum(
        work.resources.scratch_bytes * (_devices(pool, layout, work) // work.gpus_per_node)
        for work in workloads
        if work.node_pool == pool.name
    )


def most_scratch_bytes(pool: NodePool, workloads: Iterable[Workload]) -> int:
    """Of any node of the pool."""
    works = tuple(workloads)
    cut = sum(layout.node_count for layout in pool.layouts)
    kinds = (*pool.layouts, *([None] if cut < pool.node_count else []))
    return max(scratch_bytes(pool, layout, works) for layout in kinds)


def planned_scratch_bytes(pool: NodePool, workloads: Iterable[Workload]) -> int:
    """Of all pods that the plan has on the pool, wherever they lie."""
    return sum(
        work.resources.scratch_bytes * work.members
        for work in workloads
        if work.node_pool == pool.name
    )


def _devices(pool: NodePool, layout: NodeLayout | None, work: Workload) -> int:
    """GPUs or instances as the workload takes them."""
    if work.partition is not None:
        return layout.count(work.partition) if layout else 0
    return pool.gpus_per_node - (layout.cut_gpus if layout else 0)
