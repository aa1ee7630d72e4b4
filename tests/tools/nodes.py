"""What a plan expects of a cluster, on paper: its nodes, idle, and volumes for its claims."""

from __future__ import annotations

from collections.abc import Iterable

from gpuplan.plan.model import NodePool, Plan
from tests.tools.kube import Object


def nodes(plan: Plan) -> list[Object]:
    return [_node(plan, pool, name) for pool in plan.node_pools for name in _names(pool)]


def _names(pool: NodePool) -> tuple[str, ...]:
    return pool.node_names or tuple(f"{pool.name}-{n}" for n in range(pool.node_count))


def _node(plan: Plan, pool: NodePool, name: str) -> Object:
    resources = {"pods": "110", "ephemeral-storage": "10Ti"}
    if pool.partitions:
        count = pool.gpus_per_node * pool.partitions.per_gpu
        resources[pool.partitions.resource] = str(count)
    else:
        resources["nvidia.com/gpu"] = str(pool.gpus_per_node)
    if plan.fabric and plan.fabric.resource:
        resources[plan.fabric.resource] = str(pool.gpus_per_node)
    if pool.cpu_cores:
        resources["cpu"] = str(pool.cpu_cores * (pool.threads_per_core or 1))
    if pool.memory_bytes:
        resources["memory"] = str(pool.memory_bytes)
    labels = {"kubernetes.io/hostname": name, "nvidia.com/gpu.product": pool.gpu_product}
    return Object(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "status": {"capacity": resources, "allocatable": resources},
        }
    )


def volumes(objects: Iterable[Object]) -> list[Object]:
    """A volume for each claim among `objects`, as a storage driver would provide it."""
    claims = (o.tree for o in objects if o.tree["kind"] == "PersistentVolumeClaim")
    return [
        Object(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": "-".join((c["metadata"]["namespace"], c["metadata"]["name"]))},
                "spec": {
                    "accessModes": c["spec"]["accessModes"],
                    "capacity": c["spec"]["resources"]["requests"],
                    "storageClassName": c["spec"].get("storageClassName", ""),
                    "persistentVolumeReclaimPolicy": "Retain",
                    "hostPath": {"path": "/volumes"},
                },
            }
        )
        for c in claims
    ]
