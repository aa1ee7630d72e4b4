"""Stacks for Slurm clusters."""

from __future__ import annotations

from pathlib import Path

from gpuplan.cli.main import main

HEAD = """\
apiVersion: gpuplan.dev/v1
name: cluster
platform:
  target: slurm
  inventory: inventory.yaml
  fabric: {kind: infiniband, bandwidth_per_gpu: 400 Gb/s}
  slurm: {controller: ctl-1, storage: /lustre/gpuplan, containers: pyxis}
workloads:
"""
INVENTORY = """\
apiVersion: gpuplan.dev/inventory/v1
name: cluster
hosts:
"""
# Two nodes of eight, whose kernel counts the threads of a core one after the other.
H100 = """\
- names: [gpu-1, gpu-2]
  node_type: hgx-h100
  sockets: 2
  numa_nodes:
  - {cpus: "0-111", siblings: adjacent, memory: 1 TiB}
  - {cpus: "112-223", siblings: adjacent, memory: 1 TiB}
  gpus:
  - {type: h100-sxm-80gb, count: 4, numa_node: 0}
  - {type: h100-sxm-80gb, count: 4, numa_node: 1}
"""
CHAT = """\
- name: chat
  task: inference
  model: meta-llama/Llama-3.1-8B-Instruct
  precision: bf16
  load: {requests_per_second: 25, input_tokens: 1000, output_tokens: 300}
"""
NOTEBOOKS = """\
- name: lab
  task: notebook
  notebook: {users: 3, gpu_memory: 10 GiB}
"""
TUNE = """\
- name: tune
  task: finetuning
  model: meta-llama/Llama-3.1-8B
  precision: bf16
  training: {sequence_length: 2048, global_batch: 16, epochs: 1, lora: {rank: 16}}
  dataset: {name: example-org/answers, tokens: 1e7, size: 40 MB}
"""


def write(folder: Path, manifest: str, inventory: str) -> Path:
    """The manifest's path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "inventory.yaml").write_text(inventory, encoding="utf-8")
    (folder / "cluster.yaml").write_text(manifest, encoding="utf-8")
    return folder / "cluster.yaml"


def stack(
    folder: Path, *workloads: str, hosts: str = H100, head: str = HEAD, more: str = ""
) -> Path:
    """The stack of some workloads on the hosts of an inventory, which `more` ends."""
    path = write(folder, head + "".join(workloads), INVENTORY + hosts + more)
    assert main(["compile", str(path), "-o", str(folder / "stacks")]) == 0
    return folder / "stacks" / "cluster"
