"""The plan fits the nodes that it names: the real scheduler finds room for every pod."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.support.plans import read_plan
from tests.tools import crds
from tests.tools.kube import PATIENCE_SECONDS, Kube, Tree
from tests.tools.nodes import nodes, volumes
from tests.tools.stacks import objects_of, stacks

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


@pytest.mark.parametrize("stack", stacks("kubernetes"), ids=lambda s: s.name)
def test_every_pod_finds_room(full_cluster: Kube, stack: Path) -> None:
    cluster, plan, objects = full_cluster, read_plan(stack), objects_of(stack)
    crds.install(cluster, objects, [c.version for c in plan.components])
    site = [*nodes(plan), *volumes(objects)]
    cluster.apply(site)
    try:
        cluster.apply(objects)
        expected = sum(w.replicas * w.nodes_per_replica for w in plan.workloads)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline and (len(pods(cluster)) < expected or waiting(cluster)):
            time.sleep(0.5)
        assert waiting(cluster) == {}
        assert len(pods(cluster)) == expected
    finally:
        cluster.sweep([*(o for o in reversed(objects) if not o.is_patch), *site])
