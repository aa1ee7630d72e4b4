"""Labels and taints of the nodes that the plan names.

The nodes belong to the cluster: these objects are patches. A label is a field of its own to the API
server, so labels never touch what others set. `spec.taints` is one atomic list: whoever applies it
owns all of it. The taint is therefore a patch apart, applied without force (on a node with other
taints the API server refuses it, and nothing is lost), and only where the stack's settings ask for
it: it also keeps away pods that are not gpuplan's.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.kubernetes import mig, naming
from gpuplan.kubernetes.objects import KubernetesObject, build
from gpuplan.plan.model import NodePool, Plan

TAINT_SETTING = "taintNodes"
TAINT = {"key": naming.GPU_TAINT, "value": "present", "effect": "NoSchedule"}


def nodes(plan: Plan) -> Iterator[KubernetesObject]:
    for pool in plan.node_pools:
        for node in pool.node_names:
            yield _labels(pool, node)
            yield _taint(node)


def node_labels(pool: NodePool) -> dict[str, str]:
    """What every node of a pool carries; MIG manager cuts the GPUs as its label says."""
    labels = {naming.POOL_LABEL: pool.name}
    if pool.partitions is not None and pool.partitions.kind == "mig":
        labels[mig.LABEL] = mig.profile_name(pool.partitions)
    return labels


def _labels(pool: NodePool, node: str) -> KubernetesObject:
    metadata = {"name": node, "labels": node_labels(pool)}
    return build(f"node-{node}", "v1", "Node", "pools", {"metadata": metadata}, patch=True)


def _taint(node: str) -> KubernetesObject:
    body = {"metadata": {"name": node}, "spec": {"taints": [TAINT]}}
    return build(f"taint-{node}", "v1", "Node", "pools", body, patch=True, only_if=TAINT_SETTING)
