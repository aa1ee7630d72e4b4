"""Fields that a plan has no use for are named, and no others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpuplan.inventory.v1 import Inventory
from gpuplan.manifest.load import validate
from gpuplan.manifest.text import read_yaml
from gpuplan.manifest.v1 import Manifest
from gpuplan.placement.ignored import ignored, unneeded, unshared
from gpuplan.plan.model import Notebook, Volume, Workload
from gpuplan.source import Origin
from gpuplan.units import GIB
from tests.support.placement_samples import l40s, notebook, offer, workload

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
    (told,) = notes("libvirt", storage={"class": "fast"})
    assert told.startswith("m.yaml:platform.storage.class: platform.storage.class has no effect")
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


@pytest.mark.parametrize("oversubscription", [None, 1, 3])
def test_how_many_nodes_a_switch_has_is_of_use_where_the_next_switch_is_slower(
    oversubscription: int | None,
) -> None:
    """To work over nodes; to others the whole fabric is of none."""
    more = {"nodes_per_switch": 4}
    more |= {"oversubscription": oversubscription} if oversubscription else {}
    work = workload(nodes_per_replica=2)
    given = manifest(target="kubernetes", fabric=FABRIC | more)
    found = [*unneeded(given, "m.yaml", [work], None, "")]
    assert [str(d.origin) for d in found] == (
        [] if oversubscription else ["m.yaml:platform.fabric.nodes_per_switch"]
    )
    assert unused("kubernetes", work, fabric=FABRIC) == []
    assert unused("kubernetes", workload(), fabric=FABRIC | more) == ["fabric"]


def test_jobs_as_sets_are_of_use_to_a_run_that_starts_once_on_several_nodes() -> None:
    assert unused("kubernetes", workload(), jobs="jobset") == ["jobs"]
    assert unused("kubernetes", workload(nodes_per_replica=2), jobs="jobset") == ["jobs"]
    assert unused("kubernetes", workload(), jobs="job") == []


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


@pytest.mark.parametrize(("nodes", "used"), [(1, False), (2, True)])
def test_a_queue_is_of_use_to_work_over_several_nodes(nodes: int, *, used: bool) -> None:
    work = workload(nodes_per_replica=nodes)
    assert unused("kubernetes", work, queue="gpus") == ([] if used else ["queue"])
    assert unused("kubernetes", work) == []
    assert unused("docker", work, queue="gpus") == [], "said of the target"


CHECKPOINTS = Volume(
    name="c",
    purpose="checkpoints",
    size_bytes=GIB,
    mount_path="/c",
    storage_class=None,
    shared=False,
)


@pytest.mark.parametrize("field", ["type", "price"])
def test_the_kind_of_storage_is_of_use_where_checkpoints_are_written(field: str) -> None:
    storage = {"type": "gcp-hyperdisk-balanced"} if field == "type" else {"price": "$0.1/GB/month"}
    assert unused("kubernetes", workload(), storage=storage) == [f"storage.{field}"]
    assert unused("kubernetes", workload(volumes=(CHECKPOINTS,)), storage=storage) == []


def test_a_subscription_of_vgpus_is_of_use_where_some_are_given() -> None:
    price = {"vgpu_subscription": "$4,500/year"}
    assert unused("libvirt", workload(), **price) == ["vgpu_subscription"]
    assert unused("libvirt", notebook(), **price) == []


def test_what_is_read_how_fast_is_of_no_use_to_notebooks() -> None:
    (told,) = notes("kubernetes", storage={"bandwidth": "1 GB/s"})
    assert told.startswith("m.yaml:platform.storage.bandwidth: platform.storage.bandwidth has no")


@pytest.mark.parametrize(("target", "used"), [("slurm", True), ("kubernetes", False)])
def test_switches_are_of_use_to_a_target_that_places_by_them(target: str, *, used: bool) -> None:
    listed = inventory().model_copy(update={"switches": [{"name": "s"}]})
    found = [*unneeded(manifest(target=target), "m.yaml", [workload()], listed, "inventory.yaml")]
    assert [str(d.origin) for d in found] == ([] if used else ["inventory.yaml:switches"])


def test_gpus_that_cannot_be_shared_are_named_once_where_somebody_shares() -> None:
    at = Origin("inventory.yaml", ("hosts", 0, "gpus", 0))
    offers = [offer(l40s(), unshared=at), offer(l40s(), unshared=at), offer(l40s())]
    (told,) = unshared([notebook()], offers)
    assert (told.rule, told.origin) == ("GP012", at)
    assert "l40s is planned as whole GPUs alone" in told.message
    assert [*unshared([workload()], offers)] == [*unshared([notebook()], offers[2:])] == []
