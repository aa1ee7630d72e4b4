"""Labels and taints of the nodes that the plan names.

The nodes belong to the cluster: these objects are patches. A label is a field of its own to the API
server, so labels never touch what others set. `spec.taints` is one atomic list: whoever applies it
owns all of it. The taint is therefore a patch apart, applied without force (on a node with other
taints the API server refuses it, and nothing is lost), and only where the stack's settings ask for
it: it also keeps away pods that are not gpuplan's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuplan.kubernetes import mig, naming
from gpuplan.kubernetes.objects import KubernetesObject, build
from gpuplan.plan.model import NodePool, Plan
from gpuplan.plan.partitions import MIG_CONFIG_LABEL, PartitionName, dotted
from gpuplan.render.commented import Tree

TAINT_SETTING = "taintNodes"
TAINT_VALUE = "present"


def nodes(plan: Plan) -> Iterator[KubernetesObject]:
    for pool in plan.node_pools:
        for node in pool.node_names:
            yield build(
                f"node-{node}",
                "v1",
                "Node",
                "pools",
                {"metadata": {"name": node, "labels": node_labels(plan, pool, node)}},
                patch=True,
            )
            yield _taint(pool, node)


def selector(plan: Plan, pool: NodePool) -> dict[str, str]:
    """Labels that the pool's nodes have, and no node of another pool of the plan: what was sized
    for a shape runs on it."""
    own = {naming.POOL_LABEL: pool.name} if labelled(plan, pool) else {}
    held = {naming.STACK_LABEL: plan.name} if pool.node_names or plan.cloud else {}
    return held | own | _given(plan, pool)


def cut(plan: Plan, pool: NodePool, partition: str | None) -> dict[str, str]:
    """The label of nodes whose GPUs are all `partition`s, or whole, where the cloud cuts them: a
    part has the resource's name of a whole GPU there."""
    if not plan.plugin_on_nodes or not pool.layouts:
        return {}
    part = None if partition is None else PartitionName(partition)
    return {naming.PARTITION_LABEL: "none" if part is None else dotted(part)}


def taints(plan: Plan, pool: NodePool) -> tuple[str, ...]:
    """Keys of the taints of the pool's nodes: of GPUs, and what a cloud puts on them by itself."""
    groups = plan.cloud.groups if plan.cloud else ()
    own = (key for g in groups if g.pool == pool.name for key in g.taints)
    return (pool.maker.taint, *dict.fromkeys(own))


def tolerations(keys: Iterable[str]) -> list[Tree]:
    """Of taints by their keys, whatever value they have."""
    return [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in keys]


def labelled(plan: Plan, pool: NodePool) -> bool:
    """Whether somebody labels the nodes with their pool: the stack where it knows them by name or
    makes them, else whoever adds them, where no other label tells them from those of another
    pool."""
    others = (p for p in plan.node_pools if p.name != pool.name)
    known = bool(pool.node_names) or plan.cloud is not None
    return known or any(_given(plan, pool).items() <= _given(plan, p).items() for p in others)


def wanted(plan: Plan, pool: NodePool) -> list[tuple[int, str]]:
    """How many of the pool's nodes want which label, that only a person can give them where their
    names are not known."""
    labels = [(n.node_count, f"{MIG_CONFIG_LABEL}={mig.profile_name(n)}") for n in pool.layouts]
    own = (pool.node_count, f"{naming.POOL_LABEL}={pool.name}")
    return [own, *labels] if labelled(plan, pool) else labels


def rdma_devices(plan: Plan, pool: NodePool, gpus: int) -> int:
    """How many RDMA devices a pod with so many of a node's GPUs has: its part of those that the
    node's plugin counts, where that is known, else one a GPU."""
    cards = plan.cloud.cards_of(pool.name) if plan.cloud else None
    return gpus if cards is None else max(1, cards.devices * gpus // pool.gpus_per_node)


def _given(plan: Plan, pool: NodePool) -> dict[str, str]:
    """What the vendor's labels, where its operator runs, and the provider say of each node. A guest
    may have another device than the GPU has: where nodes are known by name, these tell them."""
    by_device = bool(pool.node_names) and pool.maker.labelled_by == "device"
    labels = {
        pool.maker.label: "" if plan.plugin_on_nodes or by_device else pool.gpu_product,
        naming.INSTANCE_TYPE_LABEL: "" if pool.node_names else pool.labelled_type,
    }
    return {name: value for name, value in labels.items() if value}


def node_labels(plan: Plan, pool: NodePool, node: str) -> dict[str, str]:
    """What `node` carries. The stack's name keeps pods of other stacks away, and other stacks that
    name the node: the API server refuses a second value from another manager. MIG manager cuts the
    node's GPUs as its label says. Beside nodes that are cut, one that is not says so: it may have
    been."""
    labels = {naming.STACK_LABEL: plan.name, naming.POOL_LABEL: pool.name}
    if pool.layouts:
        own = (mig.profile_name(n) for n in pool.layouts if node in n.node_names)
        labels[MIG_CONFIG_LABEL] = next(own, mig.DISABLED)
    return labels


def taint(pool: NodePool) -> dict[str, str]:
    """What keeps pods away that do not ask for its GPUs."""
    return {"key": pool.maker.taint, "value": TAINT_VALUE, "effect": "NoSchedule"}


def _taint(pool: NodePool, node: str) -> KubernetesObject:
    body = {"metadata": {"name": node}, "spec": {"taints": [taint(pool)]}}
    return build(f"taint-{node}", "v1", "Node", "pools", body, patch=True, only_if=TAINT_SETTING)
