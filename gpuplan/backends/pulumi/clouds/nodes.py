"""What nodes of any cloud are told: labels and taint, by which pods and operators find them."""

from __future__ import annotations

from gpuplan.kubernetes import mig, naming, nodes
from gpuplan.plan.model import Plan, by_name
from gpuplan.plan.outside.cloud import Group
from gpuplan.plan.outside.scratch import scratch_bytes
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
    cut = None if group.layout is None else pool.layouts[group.layout]
    whole = pool.gpus_per_node - (cut.cut_gpus if cut else 0)
    counts = {pool.maker.resource: str(whole)} if whole else {}
    for partition in pool.partitions:
        if count := cut.count(partition.name) if cut else 0:
            counts[partition.resource] = str(count)
    if group.network_cards and plan.fabric and plan.fabric.resource:
        counts[plan.fabric.resource] = str(group.network_cards.devices)
    return counts


def disk_bytes(plan: Plan, group: Group, images_bytes: int) -> int:
    """The root volume of a node without disks of its own: images, and the scratch of its pods."""
    pool = by_name(plan.node_pools, group.pool)
    cut = None if group.layout is None else pool.layouts[group.layout]
    return images_bytes + scratch_bytes(pool, cut, plan.workloads)
