"""Stacks for one machine with Docker."""

from __future__ import annotations

from pathlib import Path

from gpuplan.cli.main import main

HEAD = """\
apiVersion: gpuplan.dev/v1
name: box
platform:
  target: docker
  gpus: [{gpu}]
  node: {{count: {count}, gpus: {gpus}, cpu_cores: {cores}, memory: 1 TiB}}
workloads:
"""
# Two replicas on H100s.
CHAT = """\
- name: chat
  task: inference
  model: meta-llama/Llama-3.1-8B-Instruct
  precision: bf16
  load: {requests_per_second: 25, input_tokens: 1000, output_tokens: 300}
  environment: {NOTE: 'a $HOME "quoted" # text'}
  secrets: {HF_TOKEN: {config: hfToken}, OTHER_KEY: {config: other}}
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
# Three containers, each with its part of the requests.
BATCH = """\
- name: night
  task: batch
  model: meta-llama/Llama-3.1-8B-Instruct
  precision: bf16
  load: {requests: 2500000, input_tokens: 800, output_tokens: 200}
  slo: {finish_within: 10 h}
"""
H100, PRODUCT = "h100-sxm-80gb", "NVIDIA H100 80GB HBM3"


def text(*workloads: str, gpu: str = H100, gpus: int = 8, cores: int = 64, count: int = 1) -> str:
    return HEAD.format(gpu=gpu, gpus=gpus, cores=cores, count=count) + "".join(workloads)


def stack(folder: Path, manifest: str) -> Path:
    """The stack that the manifest gives."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "box.yaml").write_text(manifest, encoding="utf-8")
    assert main(["compile", str(folder / "box.yaml"), "-o", str(folder / "stacks")]) == 0
    return folder / "stacks" / "box"
