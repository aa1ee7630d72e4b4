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
    lowered = lower(inventory(node), "inventory.yaml")
    assert not lowered.hypervisors
    assert any(said in d.message for d in lowered.diagnostics)


def test_a_host_without_gpus_hosts_nothing_and_needs_nothing() -> None:
    lowered = lower(inventory(gpus=[], hypervisor=None), "inventory.yaml")
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
