"""Every formula has the unit that it says, by the units of its inputs."""

from __future__ import annotations

import importlib
import pkgutil
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache

import pytest

import gpuplan.sizing
from gpuplan.plan.model import Evidence
from gpuplan.sizing.evidence.formula import CONSTANTS
from gpuplan.sizing.evidence.sheet import Sheet
from gpuplan.sizing.physics.training.time import Terms, time
from tests.support.dimensions import dimension, parse, same
from tests.support.sizing_cases import (
    CASES,
    CHAT_8B,
    CHAT_70B,
    FULL_8B,
    IMAGES,
    LORA_70B,
    site,
    sized,
)

KNOWN = {name: quantity.unit for name, quantity in CONSTANTS.items()}
# What the usual cases leave out: latent and linear attention, experts, parallel runs, one user.
EVERY = "{mean: 99 s, p50: 99 s, p95: 99 s, p99: 99 s}"
READER, TEXTS = "\n    model: BAAI/bge-reranker-v2-m3\n", "input_tokens: 200, texts: 9"
SPEECH = "\n    model: openai/whisper-large-v3\n    precision: fp16\n"
VISION = "\n    model: google/vit-large-patch16-224\n    precision: fp16\n"
VECTORS = VISION.replace("google/vit-large-patch16-224", "facebook/dinov2-large")
MORE = {
    "percentiles": f"{CHAT_8B}    slo: {{time_to_first_token: {EVERY}, "
    f"time_per_output_token: {EVERY}, request_latency: {EVERY}}}\n",
    "percentiles of images": IMAGES.replace("15 s", EVERY),
    "percentiles of sizes": IMAGES.replace("15 s", "{p95: 99 s}").replace(
        "mean: 1024x1024", "mean: 1024x1024, p95: 1536x1536"
    ),
    "pools": f"{CHAT_70B}    disaggregation: prefill_decode\n",
    "latent": CHAT_8B.replace("meta-llama/Llama-3.1-8B-Instruct", "deepseek-ai/DeepSeek-V3"),
    "linear": CHAT_8B.replace(
        "meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-Next-80B-A3B-Instruct"
    ),
    "encoder of images": CHAT_8B.replace(
        "meta-llama/Llama-3.1-8B-Instruct", "google/gemma-3-12b-it"
    ),
    "mixture": FULL_8B.replace("meta-llama/Llama-3.1-8B", "Qwen/Qwen3-30B-A3B"),
    "quantized": LORA_70B.replace("lora: 16}", "lora: {rank: 16, quantized: true}}"),
    "reader": f"{READER}    task: inference\n    load: {{requests_per_second: 9, {TEXTS}}}\n"
    "    slo: {request_latency: {p95: 99 s}}\n",
    "archive of texts": f"{READER}    task: batch\n    load: {{requests: 9000, {TEXTS}}}\n",
    "speech": f"{SPEECH}    task: inference\n    load: {{requests_per_second: 1, audio: 50 s}}\n"
    "    slo: {request_latency: 99 s}\n",
    "archive of speech": f"{SPEECH}    task: batch\n    load: {{requests: 2000, audio: 30 min}}\n"
    "    command: [run]\n",
    "classifier": f"{VISION}    task: inference\n"
    "    load: {requests_per_second: 9, images: 640x480}\n"
    "    slo: {request_latency: {p95: 9 s}}\n    command: [run]\n",
    "archive of images": f"{VECTORS}    task: batch\n"
    "    load: {requests: 9000, images: 640x480}\n    command: [run]\n",
    "videos": "    task: inference\n    model: Wan-AI/Wan2.1-T2V-1.3B-Diffusers\n"
    "    load: {requests_per_second: 0.02, videos: {mean: 832x480, frames: 81, steps: 50, "
    "memory: 6 GiB}}\n    command: [run]\n",
    "training of images": f"{VISION}    task: training\n"
    "    training: {epochs: 3, global_batch: 256}\n"
    "    dataset: {images: 100000, pixels: 500x375, size: 12 GB}\n    command: [run]\n",
}
# Inputs of lines that none of them takes.
RARE = {
    "accepted_tokens": "1",
    "at_random": "1",
    "burst_factor": "1",
    "full_work_seconds": "s",
    "in_step": "1",
    "line_steps": "1",
    "step_prompts": "1",
    "uncached_burst": "1",
    "bubble": "1",
    "burst": "1",
    "checkpoint_storage_bytes": "B",
    "checkpoint_volumes": "1",
    "dispatch_exposed": "1",
    "domain_gpus": "1",
    "draft_bytes": "B",
    "draft_cost": "1",
    "draft_tokens": "1",
    "exchanged_width": "1",
    "expert_parallel_size": "1",
    "fabric_rate": "B/s",
    "failure_detection": "s",
    "lost_share": "1",
    "node_failures": "1/s",
    "node_gpus": "1",
    "repair_time": "s",
    "replica_nodes": "1",
    "fabric_launch": "s",
    "gather_launch": "s",
    "gather_rate": "B/s",
    "gather_small": "B",
    "gathered_compute": "1",
    "gathered_launch": "s",
    "gathered_norm": "1",
    "gathered_read": "1",
    "gathered_small": "B",
    "gpus_per_node": "1",
    "gradients_exposed": "1",
    "hop_overhead": "s",
    "image_bytes": "B",
    "index_heads": "1",
    "index_launch": "s",
    "index_layers": "1",
    "index_read": "1",
    "index_width": "1",
    "inside_rate": "B/s",
    "interruption_seconds": "s",
    "last_stage": "1",
    "loaded_bytes": "B",
    "mamba_bytes": "B",
    "mamba_width": "1",
    "network_rate": "B/s",
    "node_seconds": "s",
    "nodes": "1",
    "prefix_hit_share": "1",
    "prompt_cache_bytes": "B",
    "read_bytes_per_s": "B/s",
    "readers": "1",
    "redone_seconds": "s",
    "remote_exposed": "1",
    "restart_seconds": "s",
    "storage_bytes_per_s": "B/s",
    "tensor_exposed": "1",
    "top_k": "1",
    "transfer_rate": "B/s",
    "usd_of_checkpoints": "USD",
    "usd_per_gb_month": "USD/GB/month",
    "virtual_stages": "1",
    "state_copies": "1",
    "warm_up": "s",
}


@cache
def evidence(name: str) -> tuple[Evidence, ...]:
    return tuple(sized((CASES | MORE)[name], site("h200-sxm-141gb", "l40s")).evidence)


def checked(text: str, unit: str, units: Mapping[str, str]) -> None:
    same(dimension(text, KNOWN | units), parse(unit), text)


@pytest.mark.parametrize("name", sorted(CASES | MORE))
def test_the_unit_of_each_number_is_that_of_its_formula(name: str) -> None:
    formulas = [e for e in evidence(name) if e.formula]
    assert len(formulas) > 5
    for entry in formulas:
        checked(entry.formula, entry.unit, {i.name: i.unit for i in entry.inputs})


def sheets() -> Iterator[Sheet]:
    """All that modules of sizing hold, and the steps of every kind of run."""
    for module in pkgutil.walk_packages(gpuplan.sizing.__path__, "gpuplan.sizing."):
        for item in vars(importlib.import_module(module.name)).values():
            yield from (s for s in _members(item) if isinstance(s, Sheet))
    for exchange in ("none", "gradients", "weights", "frozen", "adapters"):
        for moe in (False, True):
            terms = Terms(
                moe=moe,
                adapter=exchange in ("frozen", "adapters"),
                quantized=exchange == "adapters",
                exchange=exchange,
                across=True,
                mamba=True,
                tensor=True,
                context=True,
                pipeline=True,
                expert=moe,
            )
            yield time(terms)


def _members(item: object) -> Iterator[object]:
    if isinstance(item, dict):
        yield from item.values()
    elif isinstance(item, list | tuple):
        yield from item
    else:
        yield item


def test_lines_of_sheets_have_the_units_that_they_say_whatever_manifest_takes_them() -> None:
    units: dict[str, set[str]] = defaultdict(set)
    for name in CASES | MORE:
        for entry in evidence(name):
            for given in entry.inputs:
                units[given.name].add(given.unit)
    lines = {(name, f.expression, f.unit) for s in sheets() for name, f in s.lines}
    for name, _, unit in lines:
        units[name].add(unit)
    assert {n: u for n, u in units.items() if len(u) > 1} == {}
    known = {name: unit for name, (unit,) in units.items()}
    for _, text, unit in sorted(lines):
        checked(text, unit, known | RARE)
