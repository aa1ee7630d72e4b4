"""What a plan expects of a cluster, on paper: its nodes, idle, and volumes for its claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from gpuplan.plan.model import NodePool, Plan
from tests.tools.kube import Object, Tree


def nodes(plan: Plan) -> list[Object]:
    return [_node(plan, pool, name) for pool in plan.node_pools for name in _names(pool)]


def _names(pool: NodePool) -> tuple[str, ...]:
    return pool.node_names or tuple(f"{pool.name}-{n}" for n in range(pool.node_count))


def _node(plan: Plan, pool: NodePool, name: str) -> Object:
    resources = {"pods": "110", "ephemeral-storage": "10Ti", **_devices(pool, name)}
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


def _devices(pool: NodePool, name: str) -> dict[str, str]:
    """What the device plugin offers with strategy `mixed`: whole GPUs, and instances by profile."""
    names = [n for p in pool.layouts for n in p.node_names]
    layout = next((p for p in pool.layouts if name in p.node_names), None)
    if pool.layouts and not names:
        owners = [p for p in pool.layouts for _ in range(p.node_count)]
        layout = dict(zip(_names(pool), owners, strict=False)).get(name)
    whole, counts = pool.gpus_per_node, Counter[str]()
    for gpus in layout.gpus if layout else ():
        whole -= len(gpus.gpus)
        for instance in gpus.instances:
            counts[instance.profile] += len(gpus.gpus)
    resources = {p.resource: str(counts[p.name]) for p in pool.partitions if counts[p.name]}
    return ({"nvidia.com/gpu": str(whole)} if whole else {}) | resources


def volumes(objects: Iterable[Object]) -> list[Object]:
    """A volume for each claim among `objects`, and for those that stateful sets make, as a storage
    driver would provide it."""
    return [
        Object(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": f"{namespace}-{name}"},
                "spec": {
                    "accessModes": spec["accessModes"],
                    "capacity": spec["resources"]["requests"],
                    "claimRef": {"namespace": namespace, "name": name},
                    "storageClassName": spec.get("storageClassName", ""),
                    "persistentVolumeReclaimPolicy": "Retain",
                    "hostPath": {"path": "/volumes"},
                },
            }
        )
        for o in objects
        for namespace, name, spec in _claims(o.tree)
    ]


def _claims(tree: Tree) -> Iterator[tuple[str, str, Tree]]:
    metadata = tree["metadata"]
    if tree["kind"] == "PersistentVolumeClaim":
        yield metadata["namespace"], metadata["name"], tree["spec"]
    if tree["kind"] == "StatefulSet":
        for number in range(tree["spec"]["replicas"]):
            for claim in tree["spec"].get("volumeClaimTemplates", ()):
                name = f"{claim['metadata']['name']}-{metadata['name']}-{number}"
                yield metadata["namespace"], name, claim["spec"]
