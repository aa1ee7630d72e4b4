"""What a workload asks for, a record a kind: resolved, no YAML, no files. Every number has its
source, every default is named by its field."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar, Literal

from gpuplan.models.model import Diffusion, Model, Pooling, Speech, Transformer
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
from gpuplan.plan.times import TIMES
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
    accepted_misses: tuple[str, ...] = ()
    replicas: Given | None = None
    tensor_parallel_size: Given | None = None
    pipeline_parallel_size: Given | None = None
    max_num_seqs: Given | None = None
    max_num_batched_tokens: Given | None = None
    micro_batch: Given | None = None
    gpu_count: Given | None = None
    cpu_cores_per_gpu: Given | None = None
    host_memory_per_gpu: Given | None = None
    shared_memory: Given | None = None
    scratch: Given | None = None
    model_storage: Given | None = None
    dataset_storage: Given | None = None
    checkpoint_storage: Given | None = None
    home_storage: Given | None = None

    @property
    def stages(self) -> int:
        """Of a pipeline of layers: one, unless the manifest wants more."""
        return 1 if self.pipeline_parallel_size is None else int(self.pipeline_parallel_size)


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
class Objective:
    """Seconds that a statistic of a time does not exceed with the wanted confidence; None: not
    asked."""

    mean: Given | None = None
    p50: Given | None = None
    p95: Given | None = None
    p99: Given | None = None


@record
class Objectives:
    """Of each time of a request."""

    time_to_first_token: Objective = field(default_factory=Objective)
    time_per_output_token: Objective = field(default_factory=Objective)
    request_latency: Objective = field(default_factory=Objective)

    @property
    def limits(self) -> dict[str, Given]:
        """Those that are asked, by the names of their times."""
        asked = {name: getattr(getattr(self, time), s) for name, (time, s) in TIMES.items()}
        return {name: limit for name, limit in asked.items() if limit is not None}


@record
class TimeLimit:
    """Seconds within which a run must end: an objective, a deadline, or both; `accepted` is an
    objective that may be missed."""

    finish_within: Given | None = None
    deadline: Given | None = None
    accepted: Given | None = None

    @property
    def first(self) -> Given | None:
        """The earlier one."""
        limits = [g for g in (self.finish_within, self.deadline) if g is not None]
        return min(limits, key=lambda g: g.value, default=None)

    @property
    def shown(self) -> Given | None:
        """The earliest of all, also one that may be missed."""
        limits = [g for g in (self.first, self.accepted) if g is not None]
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
    cut: bool = False
    strangers: bool = False
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
    """A served language model. `accepted_tokens_per_second` may be missed."""

    model: Transformer
    lengths: Lengths
    growth: Growth
    max_model_len: Given
    gpu_memory_utilization: Given
    tokens_per_second: Given | None
    accepted_tokens_per_second: Given | None = None
    drafts: Drafts | None
    prefix_cache: Given | None
    speculative: Speculative | None


@record
class ServingDemand(LanguageDemand):
    """A service that keeps its latency at the peak; limits that are `accepted` to be missed decide
    nothing. `burst`: requests of the busiest second over its minute's mean; `idle`: s of a day."""

    kind: ClassVar[Kind] = "serving"

    arrivals: OpenLoop | ClosedLoop
    objectives: Objectives
    accepted: Objectives = field(default_factory=Objectives)
    burst: Given | None
    idle: Given | None


@record
class BatchDemand(LanguageDemand):
    """Requests that must be answered within a limit."""

    kind: ClassVar[Kind] = "batch"

    requests: Given
    limit: TimeLimit


@record
class PoolingDemand(ModelDemand):
    """Texts that are read once, each to a vector or a score: `texts` in a request."""

    model: Transformer
    pooling: Pooling
    texts: Given
    input_mean: Given
    input_p95: Given
    growth: Growth
    max_model_len: Given
    gpu_memory_utilization: Given


@record
class PoolingServiceDemand(PoolingDemand):
    """As `ServingDemand`, of texts that are read."""

    kind: ClassVar[Kind] = "pooling service"

    arrivals: OpenLoop
    objectives: Objectives
    accepted: Objectives = field(default_factory=Objectives)
    idle: Given | None


@record
class PoolingBatchDemand(PoolingDemand):
    kind: ClassVar[Kind] = "pooling batch"

    requests: Given
    limit: TimeLimit


@record
class SpeechDemand(ModelDemand):
    """Audio that is written down: seconds of a request, tokens of a window."""

    model: Speech
    audio: Given
    output_mean: Given
    growth: Growth
    gpu_memory_utilization: Given


@record
class SpeechServiceDemand(SpeechDemand):
    """As `ServingDemand`, of audio."""

    kind: ClassVar[Kind] = "speech service"

    arrivals: OpenLoop
    objectives: Objectives
    accepted: Objectives = field(default_factory=Objectives)
    idle: Given | None


@record
class SpeechBatchDemand(SpeechDemand):
    kind: ClassVar[Kind] = "speech batch"

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
    """As `ServingDemand`, of images."""

    kind: ClassVar[Kind] = "image service"

    arrivals: OpenLoop
    objectives: Objectives
    accepted: Objectives = field(default_factory=Objectives)
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
    """A run of `steps`, of `tokens`, or of `epochs` of the dataset: one of them is there. `others`
    are engines that may take it where the manifest names none; those of `unstarted` have no start
    for its model, and are taken where nothing else holds it."""

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
    interval_is_written: bool
    tokens_per_second: Given | None
    accepted_tokens_per_second: Given | None = None
    limit: TimeLimit
    others: tuple[Engine, ...] = ()
    unstarted: tuple[str, ...] = ()


@record
class NotebookDemand(Demand):
    """One environment a user, each with `gpu_memory` bytes."""

    kind: ClassVar[Kind] = "notebook"

    users: Given
    gpu_memory: Given


# That have a latency, that end, and whose load grows.
SERVICES = (ServingDemand, PoolingServiceDemand, SpeechServiceDemand, ImageServiceDemand)
LIMITED = (BatchDemand, PoolingBatchDemand, SpeechBatchDemand, ImageBatchDemand, TrainingDemand)
GROWING = (LanguageDemand, PoolingDemand, SpeechDemand, DiffusionDemand)


def asked(demand: Demand) -> dict[str, Given]:
    """The limits of a service's times, by their names."""
    return demand.objectives.limits if isinstance(demand, SERVICES) else {}


def accepted(demand: Demand) -> dict[str, Given]:
    """The limits that may be missed, by the names of their figures."""
    found: dict[str, Given | None] = {}
    if isinstance(demand, SERVICES):
        found |= demand.accepted.limits
    if isinstance(demand, LIMITED):
        found["time_to_finish"] = demand.limit.accepted
    if isinstance(demand, LanguageDemand):
        found["output_tokens_per_second"] = demand.accepted_tokens_per_second
    if isinstance(demand, TrainingDemand):
        found["tokens_per_second"] = demand.accepted_tokens_per_second
    return {name: limit for name, limit in found.items() if limit is not None}
