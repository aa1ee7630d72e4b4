"""Replicas over the trays of a rack, as the real scheduler puts them: never over two racks."""

from __future__ import annotations

import json
import time
from collections import defaultdict
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
from tests.tools.kube import Kube
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


def compiled(folder: Path, *racks: dict[str, Any]) -> Path:
    site = {"apiVersion": "gpuplan.dev/inventory/v1", "name": "row", "hosts": [*racks]}
    load = {"requests_per_second": 0.1, "input_tokens": 900, "output_tokens": 300}
    work = {
        "name": "reader",
        "task": "inference",
        "model": "meta-llama/Llama-3.1-405B-Instruct",
        "precision": "bf16",
        "load": load,
        "overrides": {"replicas": 2},
    }
    storage = {"class": "rwx", "shared": True}
    platform = {"target": "kubernetes", "inventory": "row.yaml", "storage": storage}
    asked = {"apiVersion": "gpuplan.dev/v1", "name": "row", "platform": platform}
    (folder / "row.yaml").write_text(json.dumps(site), encoding="utf-8")
    (folder / "asked.yaml").write_text(json.dumps(asked | {"workloads": [work]}), encoding="utf-8")
    assert main(["compile", str(folder / "asked.yaml"), "-o", str(folder / "stacks")]) == 0
    return folder / "stacks" / "row"


@pytest.mark.parametrize("away", [(), ("left-1", "right-1")], ids=["all trays", "one of each rack"])
def test_a_replica_lies_in_one_rack_or_waits(
    full_cluster: Kube, tmp_path: Path, away: tuple[str, ...]
) -> None:
    cluster, stack = full_cluster, compiled(tmp_path, rack("left", 2), rack("right", 2))
    plan, objects = read_plan(stack), objects_of(stack)
    assert plan.workloads[0].one_domain
    crds.install(cluster, objects, [c.version for c in plan.components])
    there = [n for n in nodes(plan) if n.tree["metadata"]["name"] not in away]
    site = [*there, *cards(plan, away), *volumes(objects)]
    objects = [o for o in objects if o.tree["metadata"]["name"] not in away]
    made = [*objects, *channels(objects), *groups.pods(objects)]
    cluster.apply(site)
    try:
        cluster.apply(made)
        bound = spread(cluster, expected=4 - len(away))
        racks = {n.tree["metadata"]["name"]: n.tree["metadata"]["labels"] for n in there}
        for trays in bound.values():
            assert len({racks[tray][DOMAIN_LABEL] for tray in trays}) == 1
        complete = [trays for trays in bound.values() if len(trays) == 2]
        assert len(complete) == (0 if away else 2)
    finally:
        cluster.sweep([*(o for o in reversed(made) if not o.is_patch), *site])


def spread(cluster: Kube, expected: int) -> dict[str, list[str]]:
    """The nodes of each group's pods, once so many are bound and the others are told to wait."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = defaultdict(list)
        for pod in pods(cluster):
            if node := pod["spec"].get("nodeName"):
                found[pod["metadata"]["labels"][GROUP]].append(node)
        told = all(reason != "Pending" for reason in waiting(cluster).values())
        if sum(map(len, found.values())) == expected and told:
            return found
        time.sleep(0.5)
    raise TimeoutError(f"the pods do not come to rest: {waiting(cluster)}")
