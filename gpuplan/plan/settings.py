"""What a workload's engine is set to: settings that the sizing derived or the manifest declares."""

from __future__ import annotations

from typing import Literal

from gpuplan.frozen import record


@record
class Speculative:
    """How the engine drafts `tokens` for each step; `model` is None where the served model drafts
    itself, or its prompt does."""

    method: Literal["mtp", "eagle", "eagle3", "draft_model", "ngram"]
    model: str | None
    revision: str | None = None
    tokens: int


@record
class Serving:
    """Settings of an inference engine that the sizing derived, or that the manifest declares.
    `pooling`: what a text becomes where none is written, of `texts` a request; None: it writes.
    `audio`: what it writes down; `images` of a request are read, and none is written.
    `moe_runner_backend`: kernels of experts, where the engine must be told of some."""

    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    gpu_memory_utilization: float
    kv_cache_dtype: str
    port: int
    speculative: Speculative | None = None
    pooling: Literal["embed", "score"] | None = None
    texts: int | None = None
    audio: Literal[True] | None = None
    images: int | None = None
    moe_runner_backend: str | None = None


@record
class Disaggregation:
    """Of a workload's replicas, so many take prompts, and so many write answers. The cache of a
    mean prompt has `prompt_cache_bytes` on each GPU, which sends it over the fabric."""

    prefill_replicas: int
    decode_replicas: int
    prompt_cache_bytes: float
    transfer_bytes_per_s: float


@record
class Training:
    """Settings of a training run that the sizing derived. `virtual_pipeline_stages` are the
    interleaved ones of each stage; None: one. `ends_are_layers`, where they are: the embedding
    and the output layer take the place of a layer each in the first and the last stage.
    `spare_nodes` are bought beside those of the run."""

    method: Literal["full", "lora", "qlora", "pretraining"]
    sequence_length: int
    global_batch: int
    micro_batch: int
    gradient_accumulation_steps: int
    steps: int
    optimizer: str
    recompute: Literal["none", "selective", "full"]
    sharding: Literal["none", "zero1", "zero2", "zero3", "hsdp"]
    virtual_pipeline_stages: int | None = None
    ends_are_layers: Literal[True] | None = None
    lora_rank: int | None = None
    checkpoint_interval_seconds: float | None = None
    dataset: str | None = None
    spare_nodes: int | None = None


@record
class ImageGeneration:
    """Settings of an image service; of `frames` where it makes videos."""

    width: int
    height: int
    steps: int
    max_num_seqs: int
    frames: int | None = None
    port: int


@record
class Notebook:
    """One interactive environment per user."""

    users: int
    gpu_memory_bytes: int
