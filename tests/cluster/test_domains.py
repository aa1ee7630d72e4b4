"""Replicas over the trays of a rack, as the real scheduler puts them: never over two racks."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuplan.cli.main import main
from gpuplan.plan.partitions import DOMAIN_LABEL
from gpuplan.simulate import groups
from gpuplan.simulate.cards import channels
from gpuplan.simulate.nodes import cards, nodes, volumes
from tests.cluster.test_schedule import PATIENCE_SECONDS, pods, waiting
from tests.support.plans import read_plan
from tests.tools import crds
from tests.tools.kube import Kube, Object
from tests.tools.stacks import objects_of

pytestmark = [pytest.mark.cluster, pytest.mark.sdk]

GROUP = "leaderworkerset.sigs.k8s.io/group-index"


def rack(name: str, trays: int) -> dict[str, Any]:
    return {
        "names": [f"{name}-{n}" for n in range(trays)],
        "sockets": 2,
        "cpu_cores": 144,
        "threads_per_core": 1,
        "memory": "960 GB",
        "gpus": [{"type": "gb200-186gb", "count": 4, "nvlink_domain": name}],
    }


def compiled(folder: Path, works: list[dict[str, Any]], *racks: dict[str, Any]) -> Path:
    site = {"apiVersion": "gpuplan.dev/inventory/v1", "name": "row", "hosts": [*racks]}
    storage = {"class": "rwx", "shared": True, "bandwidth": "10 GB/s"}
    platform = {"target": "kubernetes", "inventory": "row.yaml", "storage": storage}
    asked = {"apiVersion": "gpuplan.dev/v1", "name": "row", "platform": platform}
    (folder / "row.yaml").write_text(json.dumps(site), encoding="utf-8")
    (folder / "asked.yaml").write_text(json.dumps(asked | {"workloads": works}), encoding="utf-8")
    assert main(["compile", str(folder / "asked.yaml"), "-o", str(folder / "stacks")]) == 0
    return folder / "stacks" / "row"


def service(replicas: int) -> dict[str, Any]:
    return {
        "name": "reader",
        "task": "inference",
        "model": "meta-llama/Llama-3.1-405B-Instruct",
        "precision": "bf16",
        "load": {"requests_per_second": 0.1, "input_tokens": 900, "output_tokens": 300},
        "overrides": {"replicas": replicas},
    }


def run(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "task": "finetuning",
        "model": "meta-llama/Llama-3.1-8B",
        "precision": "bf16",
        "training": {"sequence_length": 4096, "global_batch": 64, "steps": 1000},
        "dataset": {"name": "example-org/support", "tokens": 5e8, "size": "2 GB"},
        "overrides": {"gpu_count": 8},
    }


def index(pod: Object) -> int:
    number: str = pod.tree["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/worker-index"]
    return int(number)


ORDERS: dict[str, Callable[[Object], int]] = {
    "leaders first": index,
    "leaders last": lambda pod: -index(pod),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("trays", "away"),
    [(2, ()), (4, ()), (2, ("left-1", "right-1"))],
    ids=["a replica a rack", "two replicas a rack", "one tray of each rack away"],
)
def test_a_replica_lies_in_one_rack_or_waits(
    full_cluster: Kube, tmp_path: Path, trays: int, away: tuple[str, ...], order: str
) -> None:
    cluster = full_cluster
    stack = compiled(tmp_path, [service(trays)], rack("left", trays), rack("right", trays))
    plan, objects = read_plan(stack), objects_of(stack)
    assert plan.workloads[0].one_domain
    crds.install(cluster, objects, [c.version for c in plan.components])
    there = [n for n in nodes(plan) if n.tree["metadata"]["name"] not in away]
    site = [*there, *cards(plan, away), *volumes(objects)]
    objects = [o for o in objects if o.tree["metadata"]["name"] not in away]
    made = [*objects, *channels(objects)]
    pods_in_turn = sorted(groups.pods(objects), key=ORDERS[order])
    cluster.apply(site)
    try:
        cluster.apply(made)
        for pod in pods_in_turn:
            cluster.apply([pod])
        bound = spread(cluster, GROUP, expected=2 if away else len(there))
        racks = {n.tree["metadata"]["name"]: n.tree["metadata"]["labels"] for n in there}
        for found in bound.values():
            assert len({racks[tray][DOMAIN_LABEL] for tray in found}) == 1
        complete = [found for found in bound.values() if len(found) == 2]
        assert len(complete) == (0 if away else trays)
    finally:
        made += pods_in_turn
        cluster.sweep([*(o for o in reversed(made) if not o.is_patch), *site])


@pytest.mark.parametrize("turn", range(3))
def test_runs_that_begin_at_once_each_have_a_rack(
    full_cluster: Kube, tmp_path: Path, turn: int
) -> None:
    """Their Jobs' pods are made and bound in an order that is chance's."""
    names = [f"tune-{letter}{turn}" for letter in "ab"]
    stack = compiled(tmp_path, [run(name) for name in names], rack("left", 2), rack("right", 2))
    plan, objects = read_plan(stack), objects_of(stack)
    assert all(w.one_domain for w in plan.workloads)
    crds.install(full_cluster, objects, [c.version for c in plan.components])
    made = [*nodes(plan), *cards(plan), *volumes(objects), *objects, *channels(objects)]
    try:
        full_cluster.apply(made)
        bound = spread(full_cluster, "batch.kubernetes.io/job-name", expected=4)
        assert sorted(map(sorted, bound.values())) == [["left-0", "left-1"], ["right-0", "right-1"]]
    finally:
        full_cluster.sweep([o for o in reversed(made) if not o.is_patch])


def spread(cluster: Kube, label: str, expected: int) -> dict[str, list[str]]:
    """The nodes of pods by their label, once so many are bound and the others told to wait."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = defaultdict(list)
        for pod in pods(cluster):
            if node := pod["spec"].get("nodeName"):
                found[pod["metadata"]["labels"][label]].append(node)
        told = all(reason != "Pending" for reason in waiting(cluster).values())
        if sum(map(len, found.values())) == expected and told:
            return found
        time.sleep(0.5)
    raise TimeoutError(f"the pods do not come to rest: {waiting(cluster)}")
