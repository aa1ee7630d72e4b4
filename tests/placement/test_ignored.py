"""Fields that a plan has no use for are named, and no others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpuplan.inventory.v1 import Inventory
from gpuplan.manifest.load import validate
from gpuplan.manifest.text import read_yaml
from gpuplan.manifest.v1 import Manifest
from gpuplan.placement.ignored import ignored, unneeded
from gpuplan.plan.model import Notebook, Workload
from gpuplan.units import GIB
from tests.support.placement_samples import notebook, workload

CARD = {"type": "connectx-7", "address": "0000:41:00.0"}
WITH = CARD | {"virtual_functions": ["0000:41:00.1"]}


def manifest(work: dict[str, Any] | None = None, **platform: Any) -> Manifest:
    tree = {
        "apiVersion": "gpuplan.dev/v1",
        "name": "lab",
        "platform": {"target": "libvirt"} | platform,
        "workloads": [
            {"name": "desk", "task": "notebook", "notebook": {"users": 1, "gpu_memory": "8 GiB"}}
            | (work or {})
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


def notes(target: str, work: dict[str, Any] | None = None, **platform: Any) -> list[str]:
    found = ignored(manifest(work, target=target, **platform), "m.yaml")
    return [f"{d.origin}: {d.message}" for d in found]


def test_fields_that_a_target_has_no_use_for_are_named_where_they_are_written() -> None:
    network = {"dns": "openshift"}
    assert notes("libvirt", queue="gpus") == [
        (
            "m.yaml:platform.queue: platform.queue has no effect on target 'libvirt': "
            "guests run from the start"
        )
    ]
    [told] = notes("docker", network=network)
    assert told.startswith("m.yaml:platform.network.dns: platform.network.dns has no effect on")
    assert notes("libvirt", work={"priority": "high"}) == [
        (
            "m.yaml:workloads[0].priority: 'desk': priority has no effect on target 'libvirt': "
            "the guests of a host are equals"
        )
    ]


def test_fields_that_are_used_or_not_written_are_not_named() -> None:
    assert notes("kubernetes", queue="gpus", work={"priority": "high"}) == []
    assert notes("libvirt") == notes("docker") == []


def unused(target: str, work: Workload, **platform: Any) -> list[str]:
    """The fields of the platform that a workload has no use for."""
    found = [*unneeded(manifest(target=target, **platform), "m.yaml", [work], None, "")]
    assert all("has no effect here" in d.message for d in found)
    return [str(d.origin).removeprefix("m.yaml:platform.") for d in found]


FABRIC = {"kind": "infiniband", "bandwidth_per_gpu": "400 Gb/s"}


@pytest.mark.parametrize(
    ("target", "work", "used"),
    [
        ("libvirt", workload(), True),
        ("libvirt", notebook(), False),
        ("kubernetes", workload(), False),
        ("kubernetes", workload(nodes_per_replica=2), True),
    ],
    ids=["a guest with whole GPUs", "guests with parts", "a pod", "a replica of several pods"],
)
def test_a_fabric_is_of_use_to_work_over_nodes_and_to_guests_with_whole_gpus(
    target: str, work: Workload, used: bool
) -> None:
    assert unused(target, work, fabric=FABRIC) == ([] if used else ["fabric"])


@pytest.mark.parametrize(
    ("work", "used"),
    [
        (workload(replicas=2), True),
        (workload(nodes_per_replica=2), True),
        (workload(), False),
        (workload(replicas=2, notebook=Notebook(users=2, gpu_memory_bytes=GIB)), False),
    ],
    ids=["two replicas", "one over two nodes", "one", "notebooks, each with a volume of its own"],
)
def test_that_volumes_are_not_shared_is_of_use_where_several_pods_mount_one(
    work: Workload, used: bool
) -> None:
    assert unused("kubernetes", work, storage={"shared": False}) == (
        [] if used else ["storage.shared"]
    )
    assert unused("kubernetes", work, storage={"shared": True}) == []
