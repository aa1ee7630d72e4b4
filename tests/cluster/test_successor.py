"""The one pod of a service that is updated: its successor is there as soon as it has gone, although
the tenant's quota has no GPU for both, and whoever ends keeps its GPUs until then."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuplan.cli.main import main
from gpuplan.render import yaml
from gpuplan.simulate import plane
from gpuplan.simulate.nodes import nodes, volumes
from tests.support.changing_manifests import INVENTORY, manifest, serving
from tests.support.plans import read_plan
from tests.support.require import require
from tests.tools.engines import BIN, absent
from tests.tools.kube import PATIENCE_SECONDS, Kube, Tree
from tests.tools.stacks import objects_of

pytestmark = [pytest.mark.cluster, pytest.mark.sdk]

NAMESPACE = "shop-a"
ENDING_SECONDS = 12  # a ReplicaSet that is refused a pod since then next tries some 8 s later
SOON_SECONDS = 4


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Kube]:
    """A cluster whose pods nobody ends but the test."""
    if missing := absent(("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")):
        require("scheduler", f"{', '.join(missing)} not built: `make engines-full`")
    programs = {n: p for n, p in plane.programs(plane.FULL, BIN).items() if n != "kwok"}
    folder = tmp_path / "plane"
    folder.mkdir()
    with plane.running(folder, programs, full=True) as started:
        yield Kube(started)


def pods(cluster: Kube) -> list[Tree]:
    found: list[Tree] = json.loads(cluster.kubectl("get", "pods", f"-n{NAMESPACE}", "-o", "json"))[
        "items"
    ]
    return found


def until(cluster: Kube, phase: str, seconds: float = PATIENCE_SECONDS) -> Tree:
    """The pod that does not end, once it is so far; `bound` or `made`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = [p for p in pods(cluster) if "deletionTimestamp" not in p["metadata"]]
        if found and (phase == "made" or found[0]["spec"].get("nodeName")):
            return found[0]
        time.sleep(0.2)
    raise TimeoutError(f"no pod is {phase}")


def test_it_is_there_as_soon_as_the_other_has_gone(held: Kube, tmp_path: Path) -> None:
    work = serving("chat", "meta-llama/Llama-3.1-8B-Instruct", 0.5, "a")
    (tmp_path / "rack.yaml").write_text(INVENTORY, encoding="utf-8")
    work |= {"overrides": {"replicas": 1, "tensor_parallel_size": 4}}
    (tmp_path / "m.yaml").write_text(yaml.dumps(manifest(work, shared=True)), encoding="utf-8")
    assert main(["compile", str(tmp_path / "m.yaml"), "-o", str(tmp_path / "stacks")]) == 0
    stack = tmp_path / "stacks" / "shop"
    objects = objects_of(stack, {"taintNodes": "false"})
    held.apply([*nodes(read_plan(stack)), *volumes(objects), *objects])
    first = until(held, "bound")["metadata"]["name"]
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    patch = json.dumps({"status": status})
    how = ("--subresource=status", "--type=merge", f"--patch={patch}")
    held.kubectl("patch", "pod", first, f"-n{NAMESPACE}", *how)
    held.kubectl("rollout", "restart", f"-n{NAMESPACE}", "deployment/chat")
    time.sleep(ENDING_SECONDS)
    (ending,) = pods(held)
    assert "deletionTimestamp" in ending["metadata"]
    held.kubectl("delete", "pod", f"-n{NAMESPACE}", first, "--force", "--grace-period=0")
    until(held, "made", SOON_SECONDS)
