"""Pods of unlike sizes on the nodes of one pool: the large ones find whole nodes, whoever comes
first, and when the stack changes."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from gpuplan.cli.main import main
from gpuplan.plan.model import Plan
from gpuplan.render import yaml
from gpuplan.simulate.nodes import nodes, volumes
from tests.cluster.test_schedule import pods, waiting
from tests.support.changing_manifests import INVENTORY, manifest, notebooks, serving, tuning
from tests.support.plans import read_plan
from tests.tools.kube import PATIENCE_SECONDS, Kube, Object
from tests.tools.stacks import objects_of

pytestmark = [pytest.mark.cluster, pytest.mark.sdk]

CONTROLLERS = ("Deployment", "StatefulSet", "Job")
Lying = dict[str, list[str]]  # the nodes of each workload's pods


def service(name: str, gpus: int, replicas: int = 1) -> dict[str, Any]:
    layout = {"tensor_parallel_size": gpus, "replicas": replicas}
    model = "meta-llama/Llama-3.1-8B-Instruct"
    return serving(name, model, 0.5, "a") | {"overrides": layout}


def run(name: str) -> dict[str, Any]:
    return tuning(name, 1, "a") | {"overrides": {"gpu_count": 4}}


class Site:
    """A stack on a rack of four nodes, of which the plan names some."""

    def __init__(self, cluster: Kube, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.made: list[Object] = []
        self.around: list[Object] = []
        (folder / "rack.yaml").write_text(INVENTORY, encoding="utf-8")

    def compile(self, *works: dict[str, Any]) -> tuple[Plan, list[Object]]:
        path = self.folder / "m.yaml"
        path.write_text(yaml.dumps(manifest(*works, shared=True)), encoding="utf-8")
        assert main(["compile", str(path), "-o", str(self.folder / "stacks")]) == 0
        stack = self.folder / "stacks" / "shop"
        return read_plan(stack), objects_of(stack, {"taintNodes": "false"})

    def apply(self, *works: dict[str, Any], order: Sequence[str] = ()) -> Lying:
        """The workloads named in `order` are there, with all their pods, before the others."""
        plan, objects = self.compile(*works)
        around = [*nodes(plan), *volumes(objects)]
        self.around += around
        self.made += [o for o in objects if not o.is_patch]
        first = [_of(objects, name) for name in order]
        later = [o for o in objects if o.tree["kind"] in CONTROLLERS and o not in first]
        self.cluster.apply([*around, *(o for o in objects if o.tree["kind"] not in CONTROLLERS)])
        bound = 0
        for item, name in zip(first, order, strict=True):
            self.cluster.apply([item])
            bound += next(w.replicas for w in plan.workloads if w.name == name)
            self.settled(bound)
        self.cluster.apply(later)
        return self.settled(sum(w.replicas for w in plan.workloads))

    def settled(self, expected: int) -> Lying:
        end = time.monotonic() + PATIENCE_SECONDS / 4
        while time.monotonic() < end and (len(pods(self.cluster)) != expected or self.waiting):
            time.sleep(0.5)
        assert self.waiting == {}
        found: Lying = defaultdict(list)
        for pod in pods(self.cluster):
            name = pod["metadata"]["labels"]["app.kubernetes.io/name"]
            found[name].append(pod["spec"]["nodeName"])
        assert sum(map(len, found.values())) == expected
        return found

    @property
    def waiting(self) -> dict[str, str]:
        return waiting(self.cluster)

    def sweep(self) -> None:
        """Nodes go last: the scheduler counts pods of one that is gone as long as they end."""
        self.cluster.sweep(list({o.reference: o for o in reversed(self.made)}.values()))
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end and pods(self.cluster):
            time.sleep(0.5)
        self.cluster.sweep(list({o.reference: o for o in self.around}.values()))


def _of(objects: Sequence[Object], name: str) -> Object:
    (found,) = (
        o
        for o in objects
        if o.tree["kind"] in CONTROLLERS
        and o.tree["metadata"]["labels"]["app.kubernetes.io/name"] == name
    )
    return found


@pytest.fixture
def site(full_cluster: Kube, tmp_path: Path) -> Iterator[Site]:
    made = Site(full_cluster, tmp_path)
    yield made
    made.sweep()


@pytest.mark.parametrize("order", [("small", "tuner"), ("tuner", "small"), ("large",)])
def test_a_large_pod_finds_a_whole_node_whoever_comes_first(
    site: Site, order: tuple[str, ...]
) -> None:
    lying = site.apply(service("small", 2, 2), run("tuner"), service("large", 8), order=order)
    (whole,) = lying["large"]
    (other,) = {*lying["small"], *lying["tuner"]}
    assert whole != other


@pytest.mark.parametrize("order", [("four",), ("desks", "four"), ("large", "four")])
def test_whole_gpus_beside_parts_leave_the_node_that_is_not_cut(
    site: Site, order: tuple[str, ...]
) -> None:
    works = notebooks("desks", 4, "a"), service("four", 4), service("large", 8)
    lying = site.apply(*works, order=order)
    assert {*lying["desks"]} == {*lying["four"]} != {*lying["large"]}


def test_pods_that_lie_apart_make_room_for_a_large_one_that_comes_later(site: Site) -> None:
    apart = site.apply(service("small", 2, 5))
    assert len({*apart["small"]}) == 2
    lying = site.apply(service("small", 2, 4), service("large", 8))
    assert len({*lying["small"]}) == 1
    assert {*lying["small"]} != {*lying["large"]}


def test_a_node_is_drained_although_no_replica_of_a_service_is_ready(site: Site) -> None:
    """None is kept for a budget that only answers could fill."""
    lying = site.apply(service("small", 4, 2))
    (node,) = {*lying["small"]}
    status = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    for pod in pods(site.cluster):
        name, where = pod["metadata"]["name"], f"-n{pod['metadata']['namespace']}"
        how = ("--subresource=status", "--type=merge", f"--patch={json.dumps(status)}")
        site.cluster.kubectl("patch", "pod", name, where, *how)
    site.cluster.kubectl("drain", node, "--delete-emptydir-data", "--timeout=30s")
    assert {p["spec"].get("nodeName") for p in pods(site.cluster)} != {node}
