"""Fields that a plan has no use for are named, and no others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpuplan.inventory.v1 import Inventory
from gpuplan.manifest.load import validate
from gpuplan.manifest.text import read_yaml
from gpuplan.manifest.v1 import Manifest
from gpuplan.placement.ignored import unneeded
from tests.support.placement_samples import workload

CARD = {"type": "connectx-7", "address": "0000:41:00.0"}
WITH = CARD | {"virtual_functions": ["0000:41:00.1"]}


def manifest(**platform: Any) -> Manifest:
    tree = {
        "apiVersion": "gpuplan.dev/v1",
        "name": "lab",
        "platform": {"target": "libvirt"} | platform,
        "workloads": [
            {"name": "desk", "task": "notebook", "notebook": {"users": 1, "gpu_memory": "8 GiB"}}
        ],
    }
    ((document, _),) = read_yaml("m.yaml", json.dumps(tree))
    read, problems = validate(Manifest, document)
    assert read is not None, problems
    return read


def inventory(*nics: dict[str, Any]) -> Inventory:
    gpus = [{"type": "l40s", "count": 2}]
    hosts = [{"names": ["bare"], "gpus": gpus}, {"names": ["a"], "gpus": gpus, "nics": [*nics]}]
    tree = {"apiVersion": "gpuplan.dev/inventory/v1", "name": "hosts", "hosts": hosts}
    return Inventory.model_validate(tree)


def told(target: str, nodes: int, *nics: dict[str, Any]) -> list[tuple[str, str]]:
    """The place and the reason of each note, for a workload on so many nodes a replica."""
    work = workload("desk", nodes_per_replica=nodes)
    listed = inventory(*nics) if nics else None
    found = unneeded(manifest(target=target), "m.yaml", [work], listed, "inventory.yaml")
    return [(str(d.origin), d.message.rpartition(": ")[2]) for d in found]


@pytest.mark.parametrize(
    ("target", "nodes", "reason"),
    [
        ("libvirt", 1, "every replica has its GPUs in one guest, which needs none to reach them"),
        ("libvirt", 2, None),
        ("kubernetes", 1, "on target 'kubernetes' pods get network devices by "),
        ("kubernetes", 2, "on target 'kubernetes' pods get network devices by "),
    ],
)
def test_network_functions_are_of_guests_on_several_hosts(
    target: str, nodes: int, reason: str | None
) -> None:
    found = told(target, nodes, CARD, WITH, WITH)
    assert [place for place, _ in found] == (
        ["inventory.yaml:hosts[1].nics[1].virtual_functions"] if reason else []
    )
    assert all(said.startswith(reason or "") for _, said in found)
    assert told(target, nodes, CARD) == told(target, nodes) == []
