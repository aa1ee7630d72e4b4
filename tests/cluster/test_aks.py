"""Nodes as the agent pools of a stack on AKS would be: the real scheduler finds room on them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gpuplan.simulate.nodes import nodes, volumes
from tests.cluster.test_schedule import pods, waiting
from tests.support.clouds import need, registered
from tests.support.plans import read_plan
from tests.tools import crds
from tests.tools.kube import PATIENCE_SECONDS, Kube, Object, Tree
from tests.tools.stacks import objects_of

pytestmark = [pytest.mark.cluster, pytest.mark.sdk, pytest.mark.azure]

STACK = Path(__file__).parents[2] / "stacks" / "aks"
OTHER = {"key": "example.org/other", "value": "yes", "effect": "NoSchedule"}


def taint(text: str) -> dict[str, str]:
    """As AKS reads one: `key=value:effect`."""
    key, _, rest = text.partition("=")
    value, _, effect = rest.partition(":")
    return {"key": key, "value": value, "effect": effect}


def played(*more: dict[str, str]) -> list[Object]:
    """The nodes of the pools: what they have as the plan knows it, labels and taints as the program
    gives them to AKS, with those that AKS and feature discovery write by themselves. `more` are
    further taints."""
    plan = read_plan(STACK)
    assert plan.cloud is not None
    made = registered(STACK, "pools", {"clusterStack": "own/aks-cluster/dev"}).resources
    inputs = {r.name: r.inputs for r in made}
    products = {p.name: p.gpu_product for p in plan.node_pools}
    found = []
    for node in nodes(plan):
        own = node.tree["metadata"]["labels"]["gpuplan.dev/pool"]
        group = next(g for g in plan.cloud.groups if g.pool == own)
        given = inputs[group.name]
        labels = {
            **given["nodeLabels"],
            "kubernetes.azure.com/agentpool": given["agentPoolName"],
            "kubernetes.io/hostname": node.tree["metadata"]["name"],
            "node.kubernetes.io/instance-type": given["vmSize"],
            "topology.kubernetes.io/zone": f"eastus-{given['availabilityZones'][0]}",
            "nvidia.com/gpu.product": products[own],
        }
        tree: Tree = {
            **node.tree,
            "metadata": {**node.tree["metadata"], "labels": labels},
            "spec": {"taints": [*map(taint, given["nodeTaints"]), *more]},
        }
        found.append(Object(tree))
    return found


def test_pods_run_on_the_nodes_of_the_pools_and_on_no_others(full_cluster: Kube) -> None:
    need("azure", ("pulumi-azure-native",))
    cluster, plan, objects = full_cluster, read_plan(STACK), objects_of(STACK)
    crds.install(cluster, objects, [c.version for c in plan.components])
    site = [*played(OTHER), *volumes(objects)]
    expected = sum(w.replicas * w.nodes_per_replica for w in plan.workloads)
    cluster.apply(site)
    try:
        cluster.apply(objects)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline and not (
            len(pods(cluster)) == expected
            and all("untolerated taint" in reason for reason in waiting(cluster).values())
            and len(waiting(cluster)) == expected
        ):
            time.sleep(0.5)
        assert len(waiting(cluster)) == expected
        cluster.apply(played())
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline and waiting(cluster):
            time.sleep(0.5)
        assert waiting(cluster) == {}
        assert len(pods(cluster)) == expected
    finally:
        cluster.sweep([*(o for o in reversed(objects) if not o.is_patch), *site])
