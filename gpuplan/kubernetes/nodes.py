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
from gpuplan.plan.partitions import MIG_CONFIG_LABEL

TAINT_SETTING = "taintNodes"
TAINT = {"key": naming.GPU_TAINT, "value": "present", "effect": "NoSchedule"}


def nodes(plan: Plan) -> Iterator[KubernetesObject]:
    for pool in plan.node_pools:
        for node in pool.node_names:
            yield build(
                f"node-{node}",
                "v1",
                "Node",
                "pools",
                {"metadata": {"name": node, "labels": node_labels(pool, node)}},
                patch=True,
            )
            yield _taint(node)


def node_labels(pool: NodePool, node: str) -> dict[str, str]:
    """What `node` carries; MIG manager cuts its GPUs as its label says. Beside nodes that are cut,
    one that is not says so: it may have been."""
    labels = {naming.POOL_LABEL: pool.name}
    if pool.layouts:
        own = (mig.profile_name(n) for n in pool.layouts if node in n.node_names)
        labels[MIG_CONFIG_LABEL] = next(own, mig.DISABLED)
    return labels


def _taint(node: str) -> KubernetesObject:
    body = {"metadata": {"name": node}, "spec": {"taints": [TAINT]}}
    return build(f"taint-{node}", "v1", "Node", "pools", body, patch=True, only_if=TAINT_SETTING)
