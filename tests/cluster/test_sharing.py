"""Two stacks on one cluster: each has its nodes, and the cluster itself refuses a second owner."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuplan.cli.main import main
from gpuplan.render import yaml
from gpuplan.simulate.nodes import nodes, volumes
from tests.cluster.test_schedule import pods, waiting
from tests.support.changing_manifests import INVENTORY, serving
from tests.support.plans import read_plan
from tests.tools import crds
from tests.tools.kube import PATIENCE_SECONDS, Kube, Object, Refused
from tests.tools.stacks import objects_of

pytestmark = [pytest.mark.cluster, pytest.mark.sdk]

MODEL = "meta-llama/Llama-3.3-70B-Instruct"


def compiled(folder: Path, name: str) -> Path:
    """A stack that fills one node of the rack."""
    work = serving("chat", MODEL, 0.5, "web") | {"precision": "bf16", "overrides": {"replicas": 2}}
    work["overrides"]["tensor_parallel_size"] = 4
    work["tenancy"]["isolation"] = "gpu"
    tree: dict[str, Any] = {
        "apiVersion": "gpuplan.dev/v1",
        "name": name,
        "platform": {"target": "kubernetes", "inventory": "rack.yaml", "storage": {"shared": True}},
        "workloads": [work],
    }
    (folder / f"{name}.yaml").write_text(yaml.dumps(tree), encoding="utf-8")
    assert main(["compile", str(folder / f"{name}.yaml"), "-o", str(folder / "stacks")]) == 0
    return folder / "stacks" / name


@pytest.fixture
def rack(tmp_path: Path) -> Path:
    (tmp_path / "rack.yaml").write_text(INVENTORY, encoding="utf-8")
    return tmp_path


@pytest.fixture
def shared(full_cluster: Kube) -> Iterator[tuple[Kube, list[Object]]]:
    """The cluster, and what is to be swept from it, the last first."""
    made: list[Object] = []
    yield full_cluster, made
    full_cluster.sweep([o for o in reversed(made) if not o.is_patch])


def apply(shared: tuple[Kube, list[Object]], stack: Path) -> list[Object]:
    cluster, made = shared
    plan, objects = read_plan(stack), objects_of(stack, {"taintNodes": "false"})
    crds.install(cluster, objects, [c.version for c in plan.components])
    site = [*nodes(plan), *volumes(objects)]
    made += site
    cluster.apply(site)
    made += objects
    cluster.apply(objects)
    return objects


def test_both_run_on_nodes_of_their_own(rack: Path, shared: tuple[Kube, list[Object]]) -> None:
    cluster, _ = shared
    first = compiled(rack, "one")
    assert main(["inventory", "allocate", str(rack / "rack.yaml"), str(first)]) == 0
    second = compiled(rack, "two")
    for stack in (first, second):
        apply(shared, stack)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline and (len(pods(cluster)) < 4 or waiting(cluster)):
        time.sleep(0.5)
    assert waiting(cluster) == {}
    where = {(p["metadata"]["namespace"], p["spec"]["nodeName"]) for p in pods(cluster)}
    assert where == {("one-web", "n1"), ("two-web", "n2")}


def test_a_node_that_two_stacks_name_is_refused(
    rack: Path, shared: tuple[Kube, list[Object]]
) -> None:
    first, second = compiled(rack, "one"), compiled(rack, "two")  # nobody has allocated anything
    apply(shared, first)
    with pytest.raises(Refused, match=r"conflict with .*\.metadata\.labels\.gpuplan\.dev/stack"):
        apply(shared, second)
