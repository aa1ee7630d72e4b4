"""Work on nodes that GKE makes: network cards that pods claim, and parts of GPUs."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest

from gpuplan.simulate.nodes import cards, nodes, volumes
from tests.backends.test_clouds_google import MANIFESTS
from tests.cluster.test_schedule import pods, settled, waiting
from tests.support.clouds import compiled
from tests.support.plans import read_plan
from tests.tools import crds
from tests.tools.kube import PATIENCE_SECONDS, Kube
from tests.tools.stacks import objects_of

pytestmark = [pytest.mark.cluster, pytest.mark.sdk]
ROOT = Path(__file__).parents[2]


def test_a_pod_whose_node_has_too_few_cards_waits(full_cluster: Kube) -> None:
    cluster, stack = full_cluster, ROOT / "stacks" / "gke"
    plan, objects = read_plan(stack), objects_of(stack)
    crds.install(cluster, objects, [c.version for c in plan.components])
    names = [
        n.tree["metadata"]["name"] for n in nodes(plan) if "h200" in n.tree["metadata"]["name"]
    ]
    kept = cards(plan, without=names[:1])
    site = [*nodes(plan), *kept, *volumes(objects)]
    cluster.apply(site)
    try:
        cluster.apply(objects)
        found = settled(cluster, sum(w.replicas * w.nodes_per_replica for w in plan.workloads))
        assert len(found) == 1
        assert "cannot allocate all claims" in min(found.values())
        running = {
            p["spec"].get("nodeName") for p in pods(cluster) if "tune" in p["metadata"]["name"]
        }
        assert names[0] not in running
    finally:
        cluster.sweep([*(o for o in reversed(objects) if not o.is_patch), *site])


def test_parts_of_gpus_are_on_the_nodes_that_are_cut(full_cluster: Kube, tmp_path: Path) -> None:
    cluster, stack = full_cluster, compiled(tmp_path, MANIFESTS["cut"])
    plan, objects = read_plan(stack), objects_of(stack)
    there = nodes(plan)
    site = [*there, *volumes(objects)]
    cluster.apply(site)
    try:
        cluster.apply(objects)
        expected = sum(w.replicas * w.nodes_per_replica for w in plan.workloads)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline and (len(pods(cluster)) < expected or waiting(cluster)):
            time.sleep(0.5)
        assert waiting(cluster) == {}
        room = {
            n.tree["metadata"]["name"]: int(n.tree["status"]["capacity"]["nvidia.com/gpu"])
            for n in there
            if n.tree["metadata"]["labels"].get("gpuplan.dev/partition", "none") != "none"
        }
        taken = Counter(p["spec"]["nodeName"] for p in pods(cluster))
        assert sum(taken.values()) == expected > 7
        assert all(count <= room[name] for name, count in taken.items())
    finally:
        cluster.sweep([*(o for o in reversed(objects) if not o.is_patch), *site])
