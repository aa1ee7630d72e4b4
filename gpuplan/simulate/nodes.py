"""What a plan expects of a cluster, on paper: its nodes, idle, and volumes for its claims."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from gpuplan.kubernetes.lower import lower
from gpuplan.kubernetes.nodes import TAINT_VALUE, cut, rdma_devices, selector, taints
from gpuplan.plan.model import NodeLayout, NodePool, Plan
from gpuplan.plan.partitions import DOMAIN_LABEL, GPU_RESOURCE
from gpuplan.render.commented import Tree
from gpuplan.simulate.cards import cards_of, device_class
from gpuplan.simulate.kube import Object
from gpuplan.units import GIB, MIB, TIB


def nodes(plan: Plan) -> list[Object]:
    return [_node(plan, pool, name) for pool in plan.node_pools for name in _names(pool)]


def cards(plan: Plan, without: Iterable[str] = ()) -> list[Object]:
    """The network cards that pods claim of the nodes, but of those that are away."""
    named = [(pool, name) for pool in plan.node_pools for name in _names(pool)]
    present = (pair for pair in named if pair[1] not in without)
    own = (card for pool, name in present for card in cards_of(plan, pool.name, name))
    return [*device_class(plan), *own]


def _names(pool: NodePool) -> tuple[str, ...]:
    return pool.node_names or tuple(f"{pool.name}-{n}" for n in range(pool.node_count))


def _node(plan: Plan, pool: NodePool, name: str) -> Object:
    devices, part = _devices(pool, name), dict[str, str]()
    if plan.plugin_on_nodes:
        devices, part = _cut_by_the_cloud(plan, pool, name)
    resources = {"pods": "110", "ephemeral-storage": "10Ti", **devices}
    if plan.fabric and plan.fabric.resource:
        resources[plan.fabric.resource] = str(rdma_devices(plan, pool, pool.gpus_per_node))
    free = dict(resources) | {"ephemeral-storage": str(10 * TIB * 9 // 10 - 100 * GIB)}
    if pool.cpu_cores:
        cpus = pool.cpu_cores * (pool.threads_per_core or 1)
        resources["cpu"] = str(cpus)
        free["cpu"] = f"{1000 * cpus - reserved_cpu(cpus)}m"
    if pool.memory_bytes:
        resources["memory"] = str(pool.memory_bytes)
        free["memory"] = str(pool.memory_bytes - reserved_memory(pool.memory_bytes))
    labels = {"kubernetes.io/hostname": name, **labels_of(plan, pool), **part}
    if pool.nvlink_nodes:
        labels[DOMAIN_LABEL] = f"{pool.name}.{_names(pool).index(name) // pool.nvlink_nodes}"
    return Object(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            **_spec(plan, pool),
            "status": {"capacity": resources, "allocatable": free},
        }
    )


def _spec(plan: Plan, pool: NodePool) -> Tree:
    """Taints of nodes that the stack's own programs make; of others nobody knows them, and a list
    without any would take those from the stack that sets them."""
    keys = taints(plan, pool) if plan.cloud else ()
    tainted = [{"key": key, "value": TAINT_VALUE, "effect": "NoSchedule"} for key in keys]
    return {"spec": {"taints": tainted}} if tainted else {}


def reserved_cpu(cpus: int) -> int:
    """Thousandths of a CPU that a node keeps: 6 % of the first, 1 % of the second, 0.5 % of the
    next two, 0.25 % of the rest. Source: GKE, "Plan node sizes", allocatable CPU."""
    steps = ((1, 60.0), (1, 10.0), (2, 5.0), (cpus, 2.5))
    return math.ceil(_stepwise(cpus, steps))


def reserved_memory(size: int) -> int:
    """Bytes that a node keeps: 25 % of the first 4 GiB, 20 % of the next 4, 10 % of the next 8, 6 %
    of the next 112, 2 % of the rest, and 100 MiB that it evicts pods for. Source: as above,
    allocatable memory."""
    steps = ((4 * GIB, 0.25), (4 * GIB, 0.2), (8 * GIB, 0.1), (112 * GIB, 0.06), (size, 0.02))
    return int(math.ceil(_stepwise(size, steps)) + 100 * MIB)


def _stepwise(amount: int, steps: Iterable[tuple[int, float]]) -> float:
    """The sum over steps: each has its width and its part."""
    total = 0.0
    for width, part in steps:
        total += part * min(amount, width)
        amount -= min(amount, width)
    return total


def labels_of(plan: Plan, pool: NodePool) -> dict[str, str]:
    """As feature discovery, the provider and, where a warning asks for it, a person set them."""
    discovered = pool.gpu_product and not plan.plugin_on_nodes
    labels = {pool.maker.label: pool.gpu_product} if discovered else {}
    if pool.labelled_type:
        labels["node.kubernetes.io/instance-type"] = pool.labelled_type
    if plan.cloud:
        labels |= selector(plan, pool)
    for problem in lower(plan).diagnostics:
        if problem.message.startswith(f"pool {pool.name}: its nodes are not known by name"):
            labels |= dict(re.findall(r"NODE (gpuplan.dev/pool)=([^\s;]+)", problem.help))
    return labels


def _devices(pool: NodePool, name: str) -> dict[str, str]:
    """What the device plugin offers with strategy `mixed`: whole GPUs, and instances by profile."""
    layout = _layout(pool, name)
    whole, counts = pool.gpus_per_node, Counter[str]()
    for gpus in layout.gpus if layout else ():
        whole -= len(gpus.gpus)
        for instance in gpus.instances:
            counts[instance.profile] += len(gpus.gpus)
    resources = {p.resource: str(counts[p.name]) for p in pool.partitions if counts[p.name]}
    return ({pool.maker.resource: str(whole)} if whole else {}) | resources


def _layout(pool: NodePool, name: str) -> NodeLayout | None:
    names = [n for p in pool.layouts for n in p.node_names]
    if pool.layouts and not names:
        owners = [p for p in pool.layouts for _ in range(p.node_count)]
        return dict(zip(_names(pool), owners, strict=False)).get(name)
    return next((p for p in pool.layouts if name in p.node_names), None)


def _cut_by_the_cloud(
    plan: Plan, pool: NodePool, name: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Resources and the label of a node whose GPUs are all cut alike, those that the plan leaves
    whole too: a part counts as a GPU."""
    layout = _layout(pool, name)
    if layout is None:
        return {GPU_RESOURCE: str(pool.gpus_per_node)}, cut(plan, pool, None)
    ((profile, each),) = {pair for g in layout.gpus for pair in g.counts.items()}
    return {GPU_RESOURCE: str(each * pool.gpus_per_node)}, cut(plan, pool, profile)


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
