"""What placement and sizing make of the fields that an import writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuplan.cli.main import main
from gpuplan.inventory.cores import cores
from gpuplan.inventory.v1 import Inventory, NumaNodeSpec
from gpuplan.placement.machines.hypervisors import lower

GPU = {
    "type": "h100-pcie-80gb",
    "address": "0000:1b:00.0",
    "numa_node": 0,
    "iommu_group": 1,
}


def inventory(*nodes: dict[str, Any], **host: Any) -> Inventory:
    return Inventory.model_validate(
        {
            "apiVersion": "gpuplan.dev/inventory/v1",
            "name": "test",
            "hosts": [
                {
                    "names": ["h"],
                    "cpu_vendor": "amd",
                    "physical_address_bits": 48,
                    "numa_nodes": list(nodes),
                    "gpus": [GPU],
                    "hypervisor": {"disk_path": "/dev/vg0", "bridge": "br0"},
                    **host,
                }
            ],
        }
    )


def test_listed_siblings_are_the_cores() -> None:
    node = NumaNodeSpec.model_validate(
        {"cpus": "0-7", "siblings": ["0,3", "1-2", "4-5", "6-7"], "memory": "64 GiB"}
    )
    assert [core.cpus for core in cores(node, 2)] == [(0, 3), (1, 2), (4, 5), (6, 7)]


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ({"cpus": "0-31"}, "'memory'"),
        ({"cpus": "0-31", "memory": "512 GiB", "node": 8}, "NUMA node 0"),
    ],
)
def test_what_guests_need_of_a_node_and_it_has_not_is_said(node: dict[str, Any], said: str) -> None:
    lowered = lower(inventory(node), "inventory.yaml", {GPU["type"]})
    assert not lowered.hypervisors
    assert any(said in d.message for d in lowered.diagnostics)


def test_nobody_asks_for_facts_of_a_host_whose_gpus_no_workload_takes() -> None:
    lowered = lower(inventory({"cpus": "0-31"}), "inventory.yaml", {"another"})
    assert not lowered.hypervisors
    assert not lowered.diagnostics


def test_a_host_without_gpus_hosts_nothing_and_needs_nothing() -> None:
    lowered = lower(inventory(gpus=[], hypervisor=None), "inventory.yaml", {GPU["type"]})
    assert not lowered.hypervisors
    assert not lowered.diagnostics


def test_a_cluster_with_nodes_without_gpus_is_sized_on_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "inventory.yaml").write_text(
        """apiVersion: gpuplan.dev/inventory/v1
name: cluster
hosts:
- {names: [cpu-01], cpu_cores: 64, memory: 256 GiB, gpus: []}
- {names: [gpu-01], cpu_cores: 64, memory: 768 GiB, gpus: [{type: l40s, count: 4}]}
""",
        encoding="utf-8",
    )
    (tmp_path / "chat.yaml").write_text(
        """apiVersion: gpuplan.dev/v1
name: chat
platform: {target: kubernetes, inventory: inventory.yaml}
workloads:
  - name: assistant
    task: inference
    model: meta-llama/Llama-3.1-8B-Instruct
    load:
      requests_per_second: {mean: 1, peak: 2}
      input_tokens: {mean: 1000}
      output_tokens: {mean: 300}
""",
        encoding="utf-8",
    )
    arguments = ["compile", str(tmp_path / "chat.yaml"), "-o", str(tmp_path / "stacks")]
    assert main(arguments) == 0, capsys.readouterr().err
    plan = (tmp_path / "stacks" / "chat" / "plan.yaml").read_text(encoding="utf-8")
    assert "gpu-01" in plan
    assert "cpu-01" not in plan


HYPERVISOR = {
    "disk_path": "/dev/vg0",
    "bridge": "br0",
    "image": {"path": "/srv/image.qcow2", "sha256": "a" * 64, "system": "debian-13"},
}
NODE = {"cpus": "0-31", "memory": "512 GiB"}


@pytest.mark.parametrize(
    ("join", "said"),
    [
        ({"kind": "kubeadm", "version": "1.36.2"}, "kubeadm needs ca_cert_hashes"),
        (
            {"kind": "kubeadm", "sha256": "a" * 64},
            "kubeadm needs version and ca_cert_hashes, and has no sha256",
        ),
        ({"kind": "k3s", "version": "v1.34.2+k3s1"}, "k3s needs sha256"),
        ({"kind": "slurm", "version": "24.11.5"}, "slurm has no version"),
    ],
)
def test_a_cluster_to_join_is_stated_whole(join: dict[str, Any], said: str) -> None:
    hypervisor = {**HYPERVISOR, "join": {"server": "cluster-1:6443", **join}}
    with pytest.raises(ValueError, match=said):
        inventory(NODE, hypervisor=hypervisor)


def test_a_guest_joins_with_what_it_installs_of_an_image() -> None:
    join = {"kind": "slurm", "server": "slurm-01:6817"}
    hosts = inventory(NODE, hypervisor={**HYPERVISOR, "join": join})
    lowered = lower(hosts, "inventory.yaml", {GPU["type"]})
    joined = lowered.hypervisors[0].host.join
    assert joined is not None
    assert (joined.kind, joined.server) == ("slurm", "slurm-01:6817")
    bare = {k: v for k, v in HYPERVISOR.items() if k != "image"}
    with pytest.raises(ValueError, match="'join' needs an 'image'"):
        inventory(NODE, hypervisor={**bare, "join": join})
