"""What nodes of any cloud are told: labels and taint, by which pods and operators find them."""

from __future__ import annotations

from gpuplan.kubernetes import mig, naming, nodes
from gpuplan.plan.model import Plan, by_name
from gpuplan.plan.outside.cloud import Group
from gpuplan.plan.partitions import MIG_CONFIG_LABEL
from gpuplan.vendors import vendor_of

TAINT_KEY, TAINT_VALUE = vendor_of(None).taint, nodes.TAINT_VALUE


def labels(plan: Plan, group: Group) -> dict[str, str]:
    """Whose the node is, and how its GPUs are cut: by MIG manager, which reads it, or the cloud."""
    pool = by_name(plan.node_pools, group.pool)
    labelled = {naming.STACK_LABEL: plan.name, naming.POOL_LABEL: pool.name}
    if plan.plugin_on_nodes:
        labelled |= nodes.cut(plan, pool, group.partition)
    elif pool.layouts:
        own = None if group.layout is None else pool.layouts[group.layout]
        labelled[MIG_CONFIG_LABEL] = mig.profile_name(own) if own else mig.DISABLED
    return labelled


def resources(plan: Plan, group: Group) -> dict[str, str]:
    """What pods find on a node beside CPUs and memory, once its plugins run."""
    pool = by_name(plan.node_pools, group.pool)
    cut = () if group.layout is None else pool.layouts[group.layout].gpus
    whole = pool.gpus_per_node - sum(len(g.gpus) for g in cut)
    counts = {pool.maker.resource: str(whole)} if whole else {}
    for partition in pool.partitions:
        count = sum(len(g.gpus) * g.counts.get(partition.name, 0) for g in cut)
        if count:
            counts[partition.resource] = str(count)
    if group.network_cards and plan.fabric and plan.fabric.resource:
        counts[plan.fabric.resource] = str(group.network_cards.devices)
    return counts


def disk_bytes(plan: Plan, group: Group, images_bytes: int) -> int:
    """The root volume of a node without disks of its own: images, and the scratch of its pods."""
    pool = by_name(plan.node_pools, group.pool)
    scratch = [
        workload.resources.scratch_bytes * max(1, pool.gpus_per_node // workload.gpus_per_node)
        for workload in plan.workloads
        if workload.node_pool == pool.name
    ]
    return images_bytes + sum(scratch)
