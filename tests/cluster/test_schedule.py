"""The plan fits the nodes that it names: the real scheduler finds room for every pod."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from gpuplan.cli.main import main
from gpuplan.kubernetes.routed import ROUTERS
from gpuplan.render import yaml
from gpuplan.simulate import groups
from gpuplan.simulate.cards import channels
from gpuplan.simulate.nodes import cards, nodes, volumes
from tests.support.changing_manifests import INVENTORY, manifest, serving
from tests.support.plans import read_plan
from tests.tools import crds
from tests.tools.kube import PATIENCE_SECONDS, Kube, Tree
from tests.tools.stacks import clusters, objects_of

pytestmark = [pytest.mark.cluster, pytest.mark.sdk]


def pods(cluster: Kube) -> list[Tree]:
    items: list[Tree] = json.loads(cluster.kubectl("get", "pods", "-A", "-o", "json"))["items"]
    return items


def waiting(cluster: Kube) -> dict[str, str]:
    """What the pods that do not run wait for, in the scheduler's words."""
    found = {}
    for pod in pods(cluster):
        status = pod["status"]
        if status["phase"] not in ("Running", "Succeeded"):
            reasons = [c.get("message", "") for c in status.get("conditions", ())]
            found[pod["metadata"]["name"]] = "; ".join(reasons) or str(status["phase"])
    return found


@pytest.mark.parametrize("stack", clusters(), ids=lambda s: s.name)
def test_every_pod_finds_room(full_cluster: Kube, stack: Path) -> None:
    finds_room(full_cluster, stack)


def test_pods_of_two_vendors_find_room(full_cluster: Kube, tmp_path: Path) -> None:
    """Two pods fill each node: no GPU of one vendor would do for the other's pods."""
    hosts = (("a", "mi300x-192gb"), ("n", "h100-sxm-80gb"))
    rack = [
        {
            "names": [f"{name}1", f"{name}2"],
            "cpu_cores": 96,
            "memory": "2 TiB",
            "price": "$30/h",
            "gpus": [{"type": gpu, "count": 8}],
        }
        for name, gpu in hosts
    ]
    works = [
        serving(gpu[:2], "meta-llama/Llama-3.1-8B-Instruct", 0.5, "a")
        | {"overrides": {"gpu": gpu, "tensor_parallel_size": 4, "replicas": 4}}
        for _, gpu in hosts
    ]
    site = {"apiVersion": "gpuplan.dev/inventory/v1", "name": "rack", "hosts": rack}
    platform = {"target": "kubernetes", "inventory": "rack.yaml"}
    asked = {"apiVersion": "gpuplan.dev/v1", "name": "both", "platform": platform}
    (tmp_path / "rack.yaml").write_text(json.dumps(site), encoding="utf-8")
    (tmp_path / "both.yaml").write_text(json.dumps(asked | {"workloads": works}), encoding="utf-8")
    assert main(["compile", str(tmp_path / "both.yaml"), "-o", str(tmp_path / "stacks")]) == 0
    finds_room(full_cluster, tmp_path / "stacks" / "both")


def finds_room(cluster: Kube, stack: Path) -> None:
    plan, objects = read_plan(stack), objects_of(stack)
    crds.install(cluster, objects, [c.version for c in plan.components])
    site = [*nodes(plan), *cards(plan), *volumes(objects)]
    cluster.apply(site)
    try:
        cluster.apply([*objects, *channels(objects), *groups.pods(objects)])
        at_once = (w for w in plan.workloads if w.task != "batch")  # that waits for its requests
        expected = sum(w.replicas * w.nodes_per_replica for w in at_once)
        expected += ROUTERS * sum(w.disaggregation is not None for w in plan.workloads)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline and (len(pods(cluster)) < expected or waiting(cluster)):
            time.sleep(0.5)
        assert waiting(cluster) == {}
        assert len(pods(cluster)) == expected
    finally:
        made = [*objects, *channels(objects), *groups.pods(objects)]
        cluster.sweep([*(o for o in reversed(made) if not o.is_patch), *site])


def workload(name: str, replicas: int, priority: str) -> dict[str, Any]:
    """Each replica fills a node of the rack."""
    work = serving(name, "meta-llama/Llama-3.3-70B-Instruct", 0.5, "a")
    layout = {"replicas": replicas, "tensor_parallel_size": 8}
    own = {"team": "a", "isolation": "gpu"}
    return work | {"tenancy": own, "overrides": layout, "priority": priority}


def settled(cluster: Kube, expected: int) -> dict[str, str]:
    """Pods that wait, once that no longer changes."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    before: dict[str, str] = {"": "nothing yet"}
    while time.monotonic() < deadline:
        now = waiting(cluster)
        if len(pods(cluster)) == expected and now == before and "Pending" not in now.values():
            return now
        before = now
        time.sleep(1.5)
    raise TimeoutError(f"the pods do not come to rest: {before}")


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_with_a_node_less_those_wait_that_matter_least(
    full_cluster: Kube, tmp_path: Path, lost: int
) -> None:
    cluster = full_cluster
    (tmp_path / "rack.yaml").write_text(INVENTORY, encoding="utf-8")
    tree = manifest(workload("first", 2, "high"), workload("last", 2, "low"), shared=True)
    (tmp_path / "m.yaml").write_text(yaml.dumps(tree), encoding="utf-8")
    assert main(["compile", str(tmp_path / "m.yaml"), "-o", str(tmp_path / "stacks")]) == 0
    stack = tmp_path / "stacks" / "shop"
    plan, objects = read_plan(stack), objects_of(stack, {"taintNodes": "false"})
    there = nodes(plan)
    assert len(there) == 4
    gone = {o.tree["metadata"]["name"] for o in there[len(there) - lost :]}
    kept = [o for o in objects if not (o.is_patch and o.tree["metadata"]["name"] in gone)]
    site = [*there[: len(there) - lost], *volumes(objects)]
    cluster.apply(site)
    try:
        cluster.apply(kept)
        left = settled(cluster, 4)
        assert len(left) == lost
        assert all(name.startswith("last-") for name in left)
        assert all("Insufficient nvidia.com/gpu" in reason for reason in left.values())
    finally:
        cluster.sweep([*(o for o in reversed(kept) if not o.is_patch), *site])
