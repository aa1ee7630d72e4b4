"""What a workload asks for, a record a kind: resolved, no YAML, no files. Every number has its
source, every default is named by its field."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar, Literal

from gpuplan.models.model import Diffusion, Model, Transformer
from gpuplan.plan.isolation import Isolation
from gpuplan.plan.model import (
    Engine,
    EnvironmentVariable,
    ModelRef,
    SecretRef,
    Speculative,
    Task,
    record,
)
from gpuplan.sizing.ask.fields import Kind
from gpuplan.sizing.ask.given import Given
from gpuplan.sizing.calibration.anchors import Anchors
from gpuplan.sizing.physics.training.division import Recompute, Sharding
from gpuplan.source import Origin

Method = Literal["full", "lora", "qlora", "pretraining"]


@record
class Overrides:
    """Values that replace derived ones; None: derived. Bytes, and numbers without a unit."""

    gpu: str | None = None
    partition: str | None = None
    kv_cache_dtype: Literal["auto", "fp8"] | None = None
    replicas: Given | None = None
    tensor_parallel_size: Given | None = None
    max_num_seqs: Given | None = None
    micro_batch: Given | None = None
    gpu_count: Given | None = None
    cpu_cores_per_gpu: Given | None = None
    memory_per_gpu: Given | None = None
    shared_memory: Given | None = None
    model_storage: Given | None = None
    checkpoint_storage: Given | None = None
    home_storage: Given | None = None


@record
class OpenLoop:
    """Requests per second that arrive whatever becomes of them: over the busy hours, and the peak
    that must be served."""

    mean: Given
    peak: Given


@record
class ClosedLoop:
    """Users who ask again `think_time` seconds after their answer is there."""

    users: Given
    think_time: Given


@record
class Lengths:
    """Tokens of a request: means, and 95th percentiles."""

    input_mean: Given
    input_p95: Given
    output_mean: Given
    output_p95: Given


@record
class Objectives:
    """Seconds that are not exceeded with the wanted confidence; None: not asked."""

    time_to_first_token: Given | None = None
    time_per_output_token: Given | None = None
    request_latency: Given | None = None


@record
class TimeLimit:
    """Seconds within which a run must end: an objective, a deadline, or both."""

    finish_within: Given | None = None
    deadline: Given | None = None

    @property
    def first(self) -> Given | None:
        """The earlier one."""
        limits = [g for g in (self.finish_within, self.deadline) if g is not None]
        return min(limits, key=lambda g: g.value, default=None)


@record
class Growth:
    """The load is `factor` times as large at the end of `horizon` seconds."""

    factor: Given
    horizon: Given | None = None


@record
class Drafts:
    """Speculative decoding as it was measured: tokens that a step accepts and drafts, the time of
    drafting over that of a step, bytes of the draft model on each GPU."""

    accepted_tokens: Given
    draft_tokens: Given
    draft_cost: Given
    draft_memory: Given | None = None


@record
class Demand:
    """What all kinds have in common."""

    kind: ClassVar[Kind]

    name: str
    task: Task
    tenant: str
    description: str | None
    model_ref: ModelRef | None
    engine: Engine
    command: tuple[str, ...]
    environment: tuple[EnvironmentVariable, ...]
    secrets: tuple[SecretRef, ...]
    isolation: Isolation
    priority: Literal["low", "normal", "high", "critical"]
    preemptible: bool
    overrides: Overrides
    renamed_from: tuple[str, ...]
    origin: Origin
    anchors: Anchors = field(default_factory=Anchors)


@record
class ModelDemand(Demand):
    """A workload with a model. `weight_bytes` are of one weight in the `precision`, `confidence` is
    the probability with which objectives must be met."""

    model: Model
    precision: str
    weight_bytes: Given
    confidence: Given


@record
class LanguageDemand(ModelDemand):
    """A served language model."""

    model: Transformer
    lengths: Lengths
    growth: Growth
    max_model_len: Given
    gpu_memory_utilization: Given
    tokens_per_second: Given | None
    drafts: Drafts | None
    prefix_cache: Given | None
    speculative: Speculative | None


@record
class ServingDemand(LanguageDemand):
    """A service that keeps its latency at the peak. `burst`: requests of the busiest second of a
    minute over the minute's mean; `idle`: seconds of each day without requests."""

    kind: ClassVar[Kind] = "serving"

    arrivals: OpenLoop | ClosedLoop
    objectives: Objectives
    burst: Given | None
    idle: Given | None


@record
class BatchDemand(LanguageDemand):
    """Requests that must be answered within a limit."""

    kind: ClassVar[Kind] = "batch"

    requests: Given
    limit: TimeLimit


@record
class DiffusionDemand(ModelDemand):
    """Generated images: pixels of the mean and of a large one, and denoising steps. `size` is the
    largest in width and height."""

    model: Diffusion
    pixels_mean: Given
    pixels_p95: Given
    denoising_steps: Given
    size: tuple[int, int]
    growth: Growth


@record
class ImageServiceDemand(DiffusionDemand):
    kind: ClassVar[Kind] = "image service"

    arrivals: OpenLoop
    request_latency: Given | None
    idle: Given | None


@record
class ImageBatchDemand(DiffusionDemand):
    kind: ClassVar[Kind] = "image batch"

    requests: Given
    limit: TimeLimit


@record
class Dataset:
    """What a run reads: bytes, tokens of one epoch, bytes per second that its loader must get."""

    name: str | None = None
    size: Given | None = None
    tokens: Given | None = None
    rate: Given | None = None


@record
class TrainingDemand(ModelDemand):
    """A run of `steps`, of `tokens`, or of `epochs` of the dataset: one of them is there."""

    kind: ClassVar[Kind] = "training"

    model: Transformer
    method: Method
    optimizer: str
    recompute: Recompute | None
    sharding: Sharding | None
    sequence_length: Given
    global_batch: Given
    tokens: Given | None
    epochs: Given | None
    steps: Given | None
    lora_rank: Given | None
    dataset: Dataset
    checkpoint_interval: Given
    tokens_per_second: Given | None
    limit: TimeLimit


@record
class NotebookDemand(Demand):
    """One environment a user, each with `gpu_memory` bytes."""

    kind: ClassVar[Kind] = "notebook"

    users: Given
    gpu_memory: Given
