"""Workloads that wait for each other."""

from __future__ import annotations

PREPARE = """\
- name: prepare
  task: batch
  model: meta-llama/Llama-3.1-8B-Instruct
  load: {requests: 1000, input_tokens: 1000, output_tokens: 300}
  overrides: {gpu: l40s}
  tenancy: {team: products}
"""
TRAIN = """\
- name: train
  task: finetuning
  model: meta-llama/Llama-3.1-8B
  precision: bf16
  training: {sequence_length: 2048, global_batch: 16, epochs: 1, lora: {rank: 16}}
  dataset: {name: example-org/answers, tokens: 1e7, size: 40 MB}
  overrides: {gpu: l40s}
  tenancy: {team: products}
"""
EVALUATE = PREPARE.replace("prepare", "evaluate")
CHAIN = (
    PREPARE + '  schedule: "30 2 * * 1-5"\n' + TRAIN + "  after: [prepare]\n" + EVALUATE
    + "  after: [train, prepare]\n"
)  # fmt: skip
