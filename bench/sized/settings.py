"""Settings whose answers are recorded: manifests of every kind, changed in one place at a time.

A workload is written from its `task` on; a change is a field by its path, None takes it away.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from ruamel.yaml import YAML

from gpuplan.plan.model import Engine
from gpuplan.sizing.ask.demand import Demand
from tests.support import sizing_cases as cases

Change = Mapping[str, Any]
BRIDGE = Engine(name="megatron-bridge", version="0", image="i", digest=None, source="test")
TEXTS = {
    "chat": cases.CHAT_70B,
    "chat 8B": cases.CHAT_8B,
    "latent": cases.DEEPSEEK,
    "batch": cases.BATCH,
    "run": cases.FULL_8B,
    "adapter": cases.LORA_70B,
    "images": cases.IMAGES,
    "batch of images": cases.IMAGE_BATCH,
    "notebooks": cases.NOTEBOOKS,
    "reader": cases.READER,
    "speech": cases.SPEECH,
    "tagger": cases.TAGGER,
    "learning": """
    task: finetuning
    model: google/vit-large-patch16-224
    command: [train]
    training: {epochs: 30, global_batch: 1024}
    dataset: {name: uploads, images: 1300000, pixels: 500x375, size: 150 GB}
    overrides: {gpu_count: 8}
""",
    "pretraining": """
    task: training
    model: meta-llama/Llama-3.1-8B
    precision: bf16
    training: {global_batch: 1024, sequence_length: 8192, tokens: 2e11}
    slo: {finish_within: 30 d}
""",
    "videos": """
    task: inference
    model: Wan-AI/Wan2.1-T2V-1.3B-Diffusers
    load: {requests_per_second: 0.02,
           videos: {mean: 832x480, frames: 81, steps: 50, memory: 6 GiB}}
    slo: {request_latency: 10 min}
""",
}


@dataclass(frozen=True)
class Base:
    """What is changed; by the `kind` of its changes."""

    text: str
    kind: str
    where: str = "usual"
    engine: str | None = None
    change: Change = field(default_factory=dict)
    divided: bool = False


def _model(name: str, precision: str | None = None) -> Change:
    return {"model": name, "precision": precision}


SD_1, SD_3 = "stable-diffusion-v1-5/stable-diffusion-v1-5", "stabilityai/stable-diffusion-3.5-large"
ARCHIVE: Change = {
    "task": "batch",
    "load.requests_per_second": None,
    "load.requests": 2000000,
    "slo": {"finish_within": "24 h"},
}
BASES = {
    "chat": Base("chat", "service"),
    "chat 8B": Base("chat 8B", "service", "small"),
    "mixture": Base("chat 8B", "service", "owned", change=_model("openai/gpt-oss-120b")),
    "latent": Base("latent", "few", "blackwell", "sglang"),
    "latent over nodes": Base("latent", "few", "one", change={"precision": None}),
    "linear": Base("chat 8B", "few", "one", change=_model("Qwen/Qwen3-Next-80B-A3B-Instruct")),
    "windowed": Base("chat 8B", "few", "small", change=_model("google/gemma-3-12b-it")),
    "tensorrt": Base("chat", "few", "one", "tensorrt-llm"),
    "amd": Base("chat", "few", "amd"),
    "pools": Base("chat", "pools", "one", change={"disaggregation": "prefill_decode"}),
    "batch": Base("batch", "batch", "usual"),
    "batch of 8B": Base("batch", "few batches", "small", change=_model("Qwen/Qwen3-8B")),
    "run": Base("run", "run", "one"),
    "run on Ampere": Base("run", "few runs", "ampere"),
    "run of a mixture": Base(
        "pretraining", "divided", "many", change=_model("mistralai/Mixtral-8x7B-v0.1"), divided=True
    ),
    "divided run": Base("pretraining", "few runs", "many", divided=True),
    "adapter": Base("adapter", "few runs", "usual"),
    "images": Base("images", "images", "usual"),
    "videos": Base("videos", "videos", "one"),
    "batch of images": Base("batch of images", "batch", "one"),
    "reader": Base("reader", "reader", "small"),
    "reader of TEI": Base("reader", "few readers", "owned", "tei"),
    "speech": Base("speech", "reader", "small"),
    "tagger": Base("tagger", "reader", "owned"),
    "learning": Base("learning", "learning", "one"),
    "notebooks": Base("notebooks", "notebooks", "usual"),
    "notebooks of guests": Base("notebooks", "few notebooks", "guests"),
    "batch of texts": Base("reader", "archive", "one", change=ARCHIVE),
    "batch of audio": Base("speech", "archive", "one", change=ARCHIVE),
    "batch of pictures": Base("tagger", "archive", "one", change=ARCHIVE),
    "batch on a machine": Base(
        "batch of images", "archive", "machines", change={"precision": "bf16"}
    ),
    "scores": Base("reader", "few readers", "small", change=_model("BAAI/bge-reranker-v2-m3")),
    "reading decoder": Base(
        "reader",
        "few readers",
        "small",
        change=_model("Qwen/Qwen3-0.6B") | {"pooling": "embed"},
    ),
    "small reader": Base(
        "reader",
        "few readers",
        "guests",
        change=_model("sentence-transformers/all-MiniLM-L6-v2")
        | {"load.input_tokens": {"mean": 60, "p95": 200}},
    ),
    "turbo speech": Base(
        "speech", "few readers", "guests", change=_model("openai/whisper-large-v3-turbo")
    ),
    "network": Base("tagger", "few readers", "machines", change=_model("timm/resnet50.a1_in1k")),
    "learning a network": Base(
        "learning", "few networks", "ampere", change=_model("timm/resnet50.a1_in1k")
    ),
    "older images": Base("images", "few images", "machines", change=_model(SD_1)),
    "large images": Base("images", "few images", "usual", change=_model(SD_3)),
    "distilled images": Base(
        "images", "few images", "guests", change=_model("black-forest-labs/FLUX.1-schnell")
    ),
    "large videos": Base(
        "videos",
        "videos",
        "one",
        change=_model("Wan-AI/Wan2.1-T2V-14B-Diffusers") | {"slo.request_latency": "60 min"},
    ),
    "chat of guests": Base("chat 8B", "few", "guests", change=_model("microsoft/phi-4")),
    "chat on a machine": Base("chat 8B", "few", "machines", change=_model("google/gemma-2-9b-it")),
    "hybrid": Base(
        "chat 8B", "few", "one", change=_model("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16")
    ),
    "sparse attention": Base(
        "latent", "few", "blackwell", change=_model("deepseek-ai/DeepSeek-V3.2", "fp8")
    ),
    "mixture on AMD": Base("latent", "few", "amd", change=_model("zai-org/GLM-4.5-Air", "fp8")),
    "mixture of SGLang": Base(
        "latent", "few", "blackwell", "sglang", change=_model("Qwen/Qwen3-235B-A22B", "fp8")
    ),
    "chunked": Base(
        "chat 8B", "few", "one", change=_model("meta-llama/Llama-4-Scout-17B-16E-Instruct")
    ),
    "newest latent": Base(
        "latent", "few", "blackwell", change=_model("deepseek-ai/DeepSeek-V4-Flash", "fp8")
    ),
    "linear of Kimi": Base(
        "chat 8B", "few", "one", change=_model("moonshotai/Kimi-Linear-48B-A3B-Instruct")
    ),
    "text and window": Base("chat 8B", "few", "one", change=_model("openai/gpt-oss-20b")),
    "run of a dense model": Base("run", "few runs", "blackwell", change=_model("Qwen/Qwen3-14B")),
    "adapter on Ampere": Base("adapter", "few runs", "ampere", change=_model("Qwen/Qwen3-32B")),
}
_RATE, _TOKENS = "load.requests_per_second", "load.output_tokens"
ANY: dict[str, Change] = {
    "itself": {},
    "may be stopped": {"preemptible": True},
    "without a margin": {"slo.confidence": 0.5},
    "surely": {"slo.confidence": 0.99},
    "more cores": {"overrides.cpu_cores_per_gpu": 30},
    "less host memory": {"overrides.host_memory_per_gpu": "9 GB"},
    "on H100": {"overrides.gpu": "h100-sxm-80gb"},
    "scratch": {"overrides.scratch": "200 GiB", "overrides.shared_memory": "1 GiB"},
}
ANSWERED: dict[str, Change] = {
    "grown": {"growth": 3},
    "growing": {"growth": {"factor": 1.5, "horizon": "180 d"}},
    "alone": {"tenancy": {"team": "a", "isolation": "node"}},
    "shared": {"tenancy": {"team": "a", "isolation": "shared"}},
    "bursts": {"load.burst": 5},
    "idle": {"load.idle": "12 h"},
    "busy": {_RATE: {"mean": 40, "peak": 300}},
    "seldom": {_RATE: 0.001},
    "quickly": {"slo.request_latency": {"mean": "900 ms"}},
    "hopeless": {"slo.request_latency": {"p99": "2 ms"}},
    "misses": {
        "slo.request_latency": {"p95": "9 ms"},
        "overrides.accepted_misses": ["request_latency.p95"],
    },
    "one replica": {"overrides.replicas": 1},
    "nine replicas": {"overrides.replicas": 9},
    "users": {_RATE: None, "load.concurrency": {"users": 300, "think_time": "20 s"}},
}
_TEXT: dict[str, Change] = {
    "tokens a second": {"slo.tokens_per_second": 20000},
    "percentiles": {
        "slo.time_to_first_token": {"mean": "800 ms", "p50": "600 ms", "p99": "3 s"},
        "slo.time_per_output_token": {"p95": "70 ms"},
    },
    "first tokens": {"slo.time_to_first_token": "150 ms"},
    "tokens": {"slo.time_per_output_token": "12 ms"},
    "long answers": {_TOKENS: {"mean": 3000, "p95": 9000}},
    "long prompts": {"load.input_tokens": {"mean": 30000, "p95": 90000}},
    "cached prompts": {"load.prefix_cache": 0.8},
    "drafts": {
        "speculative": {
            "accepted_tokens": 2.4,
            "draft_tokens": 3,
            "draft_cost": 0.05,
            "draft_memory": "3 GiB",
        }
    },
    "small cache": {"overrides.kv_cache_dtype": "fp8"},
    "few sequences": {"overrides.max_num_seqs": 3},
    "small steps": {"overrides.max_num_batched_tokens": 1024},
    "short": {"overrides.max_model_len": 6000, "overrides.gpu_memory_utilization": 0.8},
    "in two": {"overrides.tensor_parallel_size": 2},
    "in three": {"overrides.tensor_parallel_size": 3},
    "stages": {"overrides.pipeline_parallel_size": 2},
    "int4": {"precision": "int4"},
    "fp8": {"precision": "fp8"},
}
_LOAD: dict[str, Change] = {
    "in an hour": {"slo.finish_within": "1 h"},
    "in a month": {"slo.finish_within": "30 d"},
    "at any time": {"slo.finish_within": None},
    "each night": {"schedule": "30 2 * * *", "deadline": "4 h"},
    "few requests": {"load.requests": 10},
    "many requests": {"load.requests": 900000000},
    "one replica": {"overrides.replicas": 1},
    "five replicas": {"overrides.replicas": 5},
}
_RUN: dict[str, Change] = {
    "sooner": {"slo.finish_within": "10 h"},
    "at any time": {"slo.finish_within": None},
    "far too soon": {"slo.finish_within": "1 min"},
    "on two": {"overrides.gpu_count": 2},
    "over nodes": {"overrides.gpu_count": 16},
    "with spares": {"overrides.gpu_count": 32, "training.spare_nodes": 1},
    "long sequences": {"training.sequence_length": 32768},
    "small batch": {"training.global_batch": 6},
    "recomputed": {"training.recompute": "full"},
    "not recomputed": {"training.recompute": "none"},
    "zero2": {"training.sharding": "zero2"},
    "not sharded": {"training.sharding": "none"},
    "groups": {"training.sharding": "hsdp", "overrides.gpu_count": 16},
    "8 bits": {"training.optimizer": "adamw-8bit"},
    "QLoRA": {"training.lora": {"rank": 64, "quantized": True}},
    "adapters": {"training.lora": 8},
    "steps": {"training.tokens": None, "training.epochs": None, "training.steps": 700},
    "micro-batch": {"overrides.micro_batch": 4},
    "saved often": {"checkpoint.interval": "5 min"},
    "reads": {"dataset": {"name": "d", "size": "9 TB", "tokens": 1e9, "rate": "900 MB/s"}},
    "small volume": {"overrides.checkpoint_storage": "200 GB"},
    "fp8": {"precision": "fp8"},
    "tokens a second": {"slo.tokens_per_second": 90000},
}


def _some(changes: Mapping[str, Change], *names: str) -> dict[str, Change]:
    return {"itself": {}, **{name: changes[name] for name in names}}


_SERVICE = ANY | ANSWERED | _TEXT
CHANGES: dict[str, dict[str, Change]] = {
    "service": _SERVICE,
    "few": _some(
        _SERVICE,
        *("busy", "percentiles", "tokens", "long prompts", "drafts", "in two", "stages", "fp8"),
        *("surely", "hopeless"),
    ),
    "pools": _some(
        _SERVICE,
        *("surely", "busy", "seldom", "bursts", "percentiles", "first tokens", "tokens", "grown"),
        *("long prompts", "cached prompts", "nine replicas", "hopeless", "in two", "quickly"),
    ),
    "batch": ANY | _LOAD,
    "few batches": _some(_TEXT | _LOAD, "long prompts", "in a month", "five replicas", "int4"),
    "run": ANY | _RUN,
    "few runs": _some(
        ANY | _RUN,
        *("sooner", "over nodes", "long sequences", "small batch", "recomputed", "zero2", "fp8"),
        *("adapters", "micro-batch", "surely", "with spares", "not sharded", "far too soon"),
    ),
    "divided": _some(
        ANY | _RUN, "over nodes", "long sequences", "small batch", "recomputed", "with spares"
    ),
    "videos": _some(ANY | ANSWERED, "surely", "busy", "seldom", "quickly", "hopeless", "grown"),
    "images": ANY
    | ANSWERED
    | {
        "few steps": {"load.images.steps": 4},
        "sizes": {"load.images.p95": "2048x2048", "slo.request_latency": {"p95": "90 s"}},
    },
    "reader": ANY
    | ANSWERED
    | {
        "many texts": {"load.texts": 40},
        "long": {"load.audio": "9 min", "slo.request_latency": "5 min"},
        "large": {"load.images": {"mean": "1024x768", "count": 3}},
    },
    "archive": _some(ANY | _LOAD, *_LOAD, "may be stopped", "surely", "more cores")
    | {
        "partition": {"overrides.partition": "2g.20gb"},
        "many texts": {"load.texts": 40},
        "long": {"load.audio": "9 min"},
        "large": {"load.images": {"mean": "1024x768", "count": 3}},
        "few at once": {"overrides.max_num_seqs": 2},
    },
    "few images": _some(
        ANY | ANSWERED, "surely", "busy", "quickly", "hopeless", "shared", "more cores"
    )
    | {"fp8": {"precision": "fp8"}, "few steps": {"load.images.steps": 4}},
    "few networks": _some(ANY | _RUN, "surely", "more cores", "less host memory", "over nodes")
    | {
        "on one": {"overrides.gpu_count": 1},
        "large images": {"dataset.pixels": "3000x2000"},
        "any number": {"overrides.gpu_count": None, "slo.finish_within": "20 h"},
    },
    "few notebooks": _some(ANY, "more cores", "less host memory", "scratch")
    | {"large": {"notebook.gpu_memory": "70 GiB"}, "vGPU": {"overrides.gpu": "l40s"}},
    "few readers": _some(ANSWERED, "busy", "quickly", "hopeless", "shared"),
    "learning": ANY
    | {
        "sooner": {"slo.finish_within": "5 h"},
        "over nodes": {"overrides.gpu_count": 16},
        "on one": {"overrides.gpu_count": 1},
        "small batch": {"training.global_batch": 16},
        "large images": {"dataset.pixels": "3000x2000"},
        "micro-batch": {"overrides.micro_batch": 8},
        "any number": {"overrides.gpu_count": None, "slo.finish_within": "20 h"},
    },
    "notebooks": ANY
    | {
        "many": {"notebook.users": 97},
        "large": {"notebook.gpu_memory": "70 GiB"},
        "too large": {"notebook.gpu_memory": "900 GiB"},
        "alone": {"tenancy": {"team": "a", "isolation": "node"}},
        "partition": {"overrides.partition": "2g.20gb"},
        "homes": {"overrides.home_storage": "200 GB"},
    },
}


def settings() -> Iterator[tuple[str, Base, Change]]:
    """All: the name, what is changed, and the change; of each base itself first."""
    for name, base in BASES.items():
        for of, change in CHANGES[base.kind].items():
            yield f"{name}, {of}", base, change


def asked(base: Base, change: Change) -> Demand:
    """What a manifest asks for. Raises `Rejected`."""
    tree = YAML(typ="safe").load(TEXTS[base.text])
    for path, value in (base.change | change).items():
        _write(tree, path.split("."), deepcopy(value))
    text = "\n".join(f"    {name}: {json.dumps(value)}" for name, value in tree.items())
    demand = cases.wanted(text, base.engine)
    return replace(demand, others=(BRIDGE,)) if base.divided else demand


def _write(tree: dict[str, Any], path: list[str], value: object) -> None:
    """None takes a field away, and what is written short on the way is replaced."""
    first, *rest = path
    if rest:
        if not isinstance(tree.get(first), dict):
            tree[first] = {}
        _write(tree[first], rest, value)
        if not tree[first]:
            del tree[first]
    elif value is None:
        tree.pop(first, None)
    else:
        tree[first] = value
