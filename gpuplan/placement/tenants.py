"""Tenants with what their workloads need, no more: quotas are the sum of what was placed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from gpuplan.plan.isolation import strictest
from gpuplan.plan.model import NodePool, Tenant, Workload
from gpuplan.plan.partitions import PartitionName

Resources = dict[tuple[str, PartitionName], str]  # of a pool's partition, what schedulers count


def tenants(workloads: Sequence[Workload], pools: Iterable[NodePool]) -> tuple[Tenant, ...]:
    """One tenant for each name, in the order of the workloads."""
    resources = {(p.name, s.name): s.resource for p in pools for s in p.partitions}
    return tuple(
        _tenant(name, [w for w in workloads if w.tenant == name], resources)
        for name in dict.fromkeys(w.tenant for w in workloads)
    )


def _tenant(name: str, workloads: Sequence[Workload], resources: Resources) -> Tenant:
    gpus = 0
    partitions: Counter[str] = Counter()
    for workload in workloads:
        if workload.partition is None:
            gpus += workload.devices
        else:
            asked = (workload.node_pool, workload.partition)
            partitions[resources.get(asked, workload.partition)] += workload.devices
    return Tenant(
        name=name,
        gpu_quota=gpus,
        partition_quota=tuple(sorted(partitions.items())),
        storage_quota_bytes=sum(w.storage_bytes for w in workloads),
        isolation=strictest(w.isolation for w in workloads),
    )
