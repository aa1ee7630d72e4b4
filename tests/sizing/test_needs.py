"""What a plan asks of storage, PCIe and network cards, and what slow cards do to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuplan.pipeline import compile_files

INVENTORY = """\
apiVersion: gpuplan.dev/inventory/v1
name: rack
hosts:
- names: [gpu-01, gpu-02]
  cpu_cores: 96
  memory: 2 TiB
  gpus: [{type: h100-sxm-80gb, count: 8}]
"""
PLATFORM = """\
apiVersion: gpuplan.dev/v1
name: needs
platform:
  target: kubernetes
  inventory: rack.yaml
  fabric: {kind: infiniband, bandwidth_per_gpu: 50 GB/s, resource: rdma/hca}
  storage: {bandwidth: 10 GB/s, shared: true}
workloads:
"""
TRAINING = """\
- name: run
  task: finetuning
  model: meta-llama/Llama-3.1-8B
  dataset: {name: corpus, tokens: 1e9}
  training: {epochs: 1, sequence_length: 8192, global_batch: 64}
  checkpoint: {interval: 1 h}
  overrides: {gpu_count: 16}
"""
SERVING = """\
- name: chat
  task: inference
  model: meta-llama/Llama-3.1-8B-Instruct
  load: {requests_per_second: 1, input_tokens: 500, output_tokens: 100}
"""


def evidence(
    tmp_path: Path, workload: str, cards: str = "", platform: str = PLATFORM
) -> dict[str, float]:
    """Every number of the plan, by quantity and by quantity and input."""
    (tmp_path / "rack.yaml").write_text(INVENTORY + cards, encoding="utf-8")
    path = tmp_path / "m.yaml"
    path.write_text(platform + workload, encoding="utf-8")
    result = compile_files([path])
    assert [p.message for p in result.problems if p.severity.value == "error"] == []
    found: dict[str, float] = {}
    for entry in result.stacks[0].plan.evidence:
        name = entry.quantity.partition(".")[2]
        found[name] = entry.value
        found |= {f"{name}:{i.name}": i.value for i in entry.inputs}
    return found


def cards(rate: str, count: int = 1) -> str:
    return "  nics:\n" + f"  - {{type: connectx-7, bandwidth: {rate}}}\n" * count


def test_slow_network_cards_bound_the_fabric_that_a_run_spans(tmp_path: Path) -> None:
    free = evidence(tmp_path, TRAINING)
    assert free["link_rate:fabric_rate"] == 50e9
    wide = evidence(tmp_path, TRAINING, cards("400 Gb/s", count=8))
    assert wide["link_rate:fabric_rate"] == 50e9
    slow = evidence(tmp_path, TRAINING, cards("100 Gb/s"))
    assert slow["link_rate:fabric_rate"] == pytest.approx(12.5e9 / 8)
    assert slow["step_seconds"] > 1.05 * wide["step_seconds"]


def test_a_ring_over_nodes_moves_no_more_than_the_cards_of_a_node_carry(tmp_path: Path) -> None:
    slow, fast = (evidence(tmp_path, TRAINING, cards(f"{n} Gb/s", count=8)) for n in (100, 400))
    assert slow["link_rate"] == 8 * 100e9 / 8
    assert fast["link_rate"] == 8 * 400e9 / 8


def test_cards_of_which_one_tells_no_bandwidth_bound_nothing(tmp_path: Path) -> None:
    some = cards("100 Gb/s") + "  - {type: connectx-7}\n"
    assert evidence(tmp_path, TRAINING, some)["link_rate:fabric_rate"] == 50e9


def test_a_first_start_reads_image_and_weights_over_the_slower_of_storage_and_cards(
    tmp_path: Path,
) -> None:
    fast = evidence(tmp_path, SERVING)
    seconds = "needs.cold_start_seconds"
    moved = fast["needs.start_bytes"]
    assert moved > fast["checkpoint_bytes"] > 16e9
    to_gpu = fast["needs.host_to_gpu_seconds"]
    assert to_gpu == pytest.approx(fast["weights_bytes"] / 64e9)
    assert fast[seconds] == pytest.approx(moved / 10e9 + to_gpu)
    slow = evidence(tmp_path, SERVING, cards("10 Gb/s"))
    assert slow[seconds] == pytest.approx(moved / 1.25e9 + to_gpu)
    untold = PLATFORM.replace("bandwidth: 10 GB/s, ", "")
    unknown = evidence(tmp_path, SERVING, platform=untold)
    assert unknown["needs.start_bytes"] == moved
    assert seconds not in unknown


def test_a_run_says_what_it_reads_writes_and_sends(tmp_path: Path) -> None:
    found = evidence(tmp_path, TRAINING)
    data = found["needs.data_bytes_per_s"]
    assert data == pytest.approx(21 * found["tokens_per_second"])
    assert found["balance.dataset"] == pytest.approx(data / 20e9)
    written = found["checkpoint_bytes"]
    assert found["needs.checkpoint_bytes_per_s"] == pytest.approx(written / 36)
    assert found["exchange_bytes"] >= 4 * 8.03e9 * 15 / 16
    assert found["needs.network_bytes_per_s"] < found["link_rate"]
    inside = evidence(tmp_path, TRAINING.replace("gpu_count: 16", "gpu_count: 8"))
    assert "exchange_bytes" in inside
    assert "needs.network_bytes_per_s" not in inside
