"""Every field of the platform, set alone on every target: the stack changes, or a message names it.
Fields of workloads and of the network are held on one target in `test_fields_matter`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpuplan.manifest.cluster import ClusterSpec
from gpuplan.manifest.slurm import SlurmSpec
from gpuplan.manifest.v1 import Platform
from gpuplan.targets import TARGETS, implemented
from tests.cli.test_fields_matter import ROOT, WORK, answer, put
from tests.house.test_fields import fields

INVENTORIES = ROOT / "examples/inventories"
SLURM = {"controller": "slurm-01", "storage": "/lustre/gpuplan", "containers": "pyxis"}
BASES: dict[str, dict[str, Any]] = {
    "kubernetes": {"gpus": ["h100-sxm-80gb", "l40s"]},
    "libvirt": {"inventory": str(INVENTORIES / "hypervisors.yaml"), "gpus": ["h100-sxm-80gb"]},
    "slurm": {"inventory": str(INVENTORIES / "slurm.yaml"), "slurm": SLURM},
    "docker": {"gpus": ["l40s"], "node": {"gpus": 8}},
    "eks": {
        "region": "us-east-1",
        "cluster": {"zones": ["us-east-1a", "us-east-1b"]},
        "nodes": ["g6e.2xlarge", "p5.48xlarge"],
    },
    "gke": {
        "region": "us-central1",
        "cluster": {"zones": ["us-central1-b", "us-central1-c"]},
        "nodes": ["g2-standard-12", "a2-ultragpu-1g"],
    },
    "aks": {
        "region": "eastus",
        "cluster": {"zones": ["1", "2"]},
        "nodes": ["Standard_NC24ads_A100_v4", "Standard_NC40ads_H100_v5"],
    },
}
MACHINE = {"eks": "g6e.2xlarge", "gke": "a2-ultragpu-1g", "aks": "Standard_NC24ads_A100_v4"}
GPU = {
    "eks": "l40s",
    "gke": "a100-sxm-80gb",
    "aks": "a100-pcie-80gb",
    "slurm": "l40s",
    "docker": "l40s",
}
REGION = {"eks": "us-gov-west-1", "gke": "us-east4", "aks": "westus2"}
ZONES = {
    "eks": ["us-east-1b", "us-east-1c"],
    "gke": ["us-central1-a"],
    "aks": ["3"],
}


def values(target: str) -> dict[str, Any]:
    """Something else for each field, by its path below `platform`."""
    machine = MACHINE.get(target, "p5.48xlarge")
    zone = BASES[target].get("cluster", {}).get("zones", ["us-east-1a"])[0]
    gpu = GPU.get(target, "h100-sxm-80gb")
    return {
        "target": "kubernetes" if target != "kubernetes" else "docker",
        "region": REGION.get(target, "us-east-2"),
        "regions": {"places": [{"region": "us-east4"}, {"region": "us-east5"}]},
        "inventory": str(INVENTORIES / "rack-7.yaml"),
        "gpus": ["a100-sxm-80gb"],
        "provider": "azure" if target != "aks" else "gcp",
        "nodes": [machine],
        "node.gpus": 2,
        "node.cpu_cores": 24,
        "node.memory": "200 GiB",
        "node.count": 40,
        "fabric": {"kind": "infiniband", "bandwidth_per_gpu": "100 Gb/s"},
        "fabric.resource": "rdma/other",
        "fabric.oversubscription": 4,
        "fabric.nodes_per_switch": 2,
        "fabric.switch_label": "example.com/leaf",
        "storage.class": "models-rwx",
        "storage.shared": False,
        "storage.bandwidth": "5 GB/s",
        "storage.type": "aws-fsx-lustre-125",
        "storage.price": "$0.08/GB/month",
        "network.proxy": {"https": "http://proxy.example.org:3128"},
        "network.hub": "https://hub.example.org",
        "network.images": {"docker.io": "a.example.org/a", "quay.io": "a.example.org/b"},
        "cluster.existing": "shared",
        "cluster.zones": ZONES.get(target, ["us-east-2a", "us-east-2b"]),
        "cluster.scaling": "autoscaler",
        "cluster.driver": "operator" if target != "aks" else "provider",
        "cluster.local_disks": "block",
        "cluster.provisioning": [{"node": machine, "kind": "flex-start", "longest": "3 d"}],
        "cluster.reservations": [
            {"node": machine, "id": "cr-0123456789abcdef0", "kind": "on-demand", "zone": zone}
        ],
        "queue": "gpus",
        "operators": "separate",
        "quadlet": True,
        "ansible": True,
        "vgpu_subscription": "$1/year",
        "slurm.controller": "slurm-09",
        "slurm.database": "slurm-02",
        "slurm.storage": "/scratch",
        "slurm.containers": "apptainer",
        "slurm.reservations": [
            {"workload": "work", "start": "2026-12-01T08:00", "duration": "12 h"}
        ],
        "rack_power": "40 kW",
        "jobs": "jobset",
        "budget": "$20/month",
        "calibration": "anchors",
        "prices": {gpu: "$0.01/hour"},
        "versions": {"driver": "570.148.08"},
    }


def platform(target: str) -> dict[str, Any]:
    return dict(json.loads(json.dumps({"target": target} | BASES[target])))


def named(path: str, told: str) -> bool:
    """Whether a message says the field, or the mapping that it is in."""
    first, _, last = path.partition(".")
    says = (f"platform.{path} ", f"platform.{first} has no effect", f"'{last or first}'")
    return any(words in told for words in says)


def document(where: dict[str, Any]) -> str:
    work = json.loads(json.dumps(WORK["serving"] | {"name": "work"}))
    tree = {"apiVersion": "gpuplan.dev/v1", "name": "stack", "platform": where}
    return json.dumps(tree | {"workloads": [work]})


@pytest.mark.parametrize("target", implemented())
def test_each_base_is_compiled(target: str, folder: Path) -> None:
    files, told = answer(document(platform(target)), folder)
    assert "stack" in files, told


@pytest.mark.parametrize("target", implemented())
@pytest.mark.parametrize("path", values("eks"))
def test_a_field_on_a_target_changes_the_stack_or_is_named(
    path: str, target: str, folder: Path
) -> None:
    before, _ = answer(document(platform(target)), folder)
    where = platform(target)
    if path.startswith("slurm.") and target != "slurm":
        where["slurm"] = dict(SLURM)
    if path.startswith("fabric."):
        where["fabric"] = {"kind": "infiniband", "bandwidth_per_gpu": "100 Gb/s"}
    if path.startswith("node.") and "node" not in where:
        where["node"] = {"gpus": 1}
    put(where, path, values(target)[path])
    after, told = answer(document(where), folder)
    assert before != after or named(path, told), told


def test_no_field_of_the_platform_is_left_out() -> None:
    tried = set(values("eks"))
    assert {path.partition(".")[0] for path in tried} == set(fields(Platform))
    for name, kind in (("cluster", ClusterSpec), ("slurm", SlurmSpec)):
        assert {f"{name}.{field}" for field in fields(kind)} <= tried


def test_every_target_with_a_backend_is_tried() -> None:
    assert set(BASES) == set(implemented())
    assert {t for t in TARGETS if TARGETS[t].backends} == set(BASES)


@pytest.mark.parametrize("target", [t for t in implemented() if TARGETS[t].queues_pods])
def test_a_queue_admits_the_pods_of_a_run_over_nodes(target: str, folder: Path) -> None:
    """On every target with pods: the run's label, and a queue of its tenant."""
    machines = {"eks": "p4d.24xlarge", "gke": "a3-highgpu-8g", "aks": "Standard_ND96asr_v4"}
    where = platform(target) | {"queue": "gpus"}
    where["fabric"] = {"kind": "ethernet", "bandwidth_per_gpu": "12 Gb/s"}
    if target in machines:
        where["nodes"] = [machines[target]]
    run = WORK["training"] | {"overrides": {"gpu_count": 16}}
    tree = json.loads(document(where))
    tree["workloads"] = [run | {"name": "work"}]
    files, told = answer(json.dumps(tree), folder)
    assert '"kueue.x-k8s.io/queue-name": "gpus"' in files, told
    assert 'spec={"clusterQueue": "gpus"}' in files
