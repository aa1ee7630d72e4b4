"""Rules about what is paid for and not used, also where no other GPU could be chosen."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal

from gpuplan.plan.model import NodePool, Plan
from gpuplan.policy.api import Finding, Subject
from gpuplan.policy.rules.cost import over_time
from gpuplan.policy.rules.memory import partition_of
from gpuplan.units import format_quantity, format_usd, significant


def headroom(subject: Subject) -> Iterator[Finding]:
    """A single replica serves many times what is asked of it.

    Why: the smallest layout on a GPU that is too large is far too much, and where one GPU alone is
    allowed nothing cheaper is weighed: each objective is met, and most of the machine idles.

    Looks at: the requests that a service is sized for and the pessimistic end of what its layout
    serves, of workloads with one replica: more replicas are there because they are needed.

    Threshold: more than `maximum_times` the requests asked. Below that, growth and a bad day take
    what is left.

    Fix: allow smaller GPUs in `platform.gpus`, let workloads share a GPU (`tenancy.isolation`), or
    put more work on this one; waive it where latency alone needs the GPU.

    Silent: for runs that end, notebooks, and workloads without a rate asked.
    """
    times = subject.thresholds["maximum_times"]
    for workload in subject.plan.workloads:
        every = ((m, m.limit) for m in workload.metrics if m.name.endswith("s_per_second"))
        rates = [(metric, limit) for metric, limit in every if limit]
        if workload.replicas > 1 or not rates:
            continue
        rate, asked = min(rates, key=lambda pair: pair[0].estimate.low / pair[1])
        if rate.estimate.low > times * asked:
            yield Finding(
                resource=f"workload/{workload.name}",
                path=f"workloads[{workload.name}].metrics[{rate.name}]",
                message=f"{workload.name} has {significant(rate.estimate.low / asked, 2)} × "
                f"headroom: {workload.gpu_count} × {workload.partition or workload.gpu} serves "
                f"{format_quantity(rate.estimate.low, rate.unit)} where "
                f"{format_quantity(asked, rate.unit)} are asked",
                help="allow a smaller GPU or a share of one, or give it more work",
                requested=asked,
                capacity=rate.estimate.low,
                unit=rate.unit,
                origin=workload.origin,
            )


def idle(subject: Subject) -> Iterator[Finding]:
    """Most GPUs of a node pool have no work.

    Why: nodes are paid for whole. A plan that uses one GPU of eight costs as much as eight, and
    nothing in its prices by workload shows it.

    Looks at: the GPUs of each node pool, less those that workloads have and those that are cut into
    partitions.

    Threshold: more than `maximum_percent` of the pool's GPUs.

    Fix: a node with fewer GPUs (`platform.nodes`), more workloads on this one, or a waiver where
    others use the rest.

    Silent: where hosts are cut in several ways, so that the pool lists no partitions. Spare
    nodes, which a manifest asks for (`training.spare_nodes`), count as used.
    """
    for pool in subject.plan.node_pools:
        gpus = pool.node_count * pool.gpus_per_node
        used = used_gpus(subject.plan, pool)
        wanted = (pool.spare_nodes or 0) * pool.gpus_per_node
        unused = 0 if used is None else gpus - used - wanted
        if unused * 100 > subject.thresholds["maximum_percent"] * gpus:
            price, wasted = "", None
            if pool.usd_per_hour is not None:
                cost = float(pool.usd_per_hour) * pool.node_count
                price = f", {format_usd(cost * unused / gpus)}/h of {format_usd(cost)}/h"
                wasted = round(cost * unused / gpus * _lasting(subject.plan, pool), 6)
            yield Finding(
                resource=f"node_pool/{pool.name}",
                path=f"node_pools[{pool.name}].node_count",
                message=f"{unused} of {gpus} GPUs of pool {pool.name} are idle{price}",
                help="choose a node with fewer GPUs, or give these some work",
                requested=used,
                capacity=gpus,
                unit="GPUs",
                usd_per_hour=wasted,
                origin=pool.origin,
            )


def _lasting(plan: Plan, pool: NodePool) -> float:
    """The part of a month for which the longest work of the pool has it; 1 where none has."""
    own = (w for w in plan.workloads if w.node_pool == pool.name)
    return float(max((over_time(Decimal(1), w)[0] for w in own), default=1))


def used_gpus(plan: Plan, pool: NodePool) -> int | None:
    """GPUs of the pool that workloads have whole, and those that are cut for them; None where it
    is not known how they are cut."""
    own = [w for w in plan.workloads if w.node_pool == pool.name]
    if any(w.partition and partition_of(pool, w) is None for w in own):
        return None
    cut = sum(item.node_count * len(g.gpus) for item in pool.layouts for g in item.gpus)
    if not pool.layouts:
        cut = sum(math.ceil(p.count / p.per_gpu) for p in pool.partitions)
    whole = (w for w in own if w.partition is None)
    return cut + sum(w.devices for w in whole)
