"""What a workload asks for, a record a kind: resolved, no YAML, no files. Every number has its
source, every default is named by its field."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, ClassVar, Literal

from gpuplan.catalog.model import BuildPin
from gpuplan.models.model import Diffusion, Model, Pooling, Speech, Transformer, Vision
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
from gpuplan.sizing.ask.parts import (
    ClosedLoop,
    Dataset,
    Drafts,
    Growth,
    Lengths,
    Objectives,
    OpenLoop,
    Overrides,
    TimeLimit,
)
from gpuplan.sizing.calibration.anchors import Anchors
from gpuplan.source import Origin

if TYPE_CHECKING:
    from gpuplan.sizing.physics.training.division import Recompute, Sharding

TrainingMethod = Literal["full", "lora", "qlora", "pretraining"]


@record
class Demand:
    """What all kinds have in common. `passed_over` are the GPUs on which no place was found."""

    kind: ClassVar[Kind]

    name: str
    task: Task
    tenant: str
    description: str | None
    model_ref: ModelRef | None
    engine: Engine
    builds: tuple[BuildPin, ...] = ()
    command: tuple[str, ...]
    environment: tuple[EnvironmentVariable, ...]
    secrets: tuple[SecretRef, ...]
    isolation: Isolation
    cut: bool = False
    strangers: bool = False
    priority: Literal["low", "normal", "high", "critical"]
    preemptible: bool
    after: tuple[str, ...] = ()
    schedule: str | None = None
    overrides: Overrides
    renamed_from: tuple[str, ...]
    origin: Origin
    passed_over: tuple[str, ...] = ()
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
    nothing. `burst`: requests of the busiest second over its minute's mean; `idle`: s of a day.
    `disaggregated`: prompts and answers have replicas of their own."""

    kind: ClassVar[Kind] = "serving"

    arrivals: OpenLoop | ClosedLoop
    objectives: Objectives
    accepted: Objectives = field(default_factory=Objectives)
    burst: Given | None
    idle: Given | None
    disaggregated: bool = False


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
    largest in width and height. Of videos pixels are those of all `frames`, and `video_memory` is
    what one takes above the weights."""

    model: Diffusion
    pixels_mean: Given
    pixels_p95: Given
    denoising_steps: Given
    size: tuple[int, int]
    frames: Given | None = None
    video_memory: Given | None = None
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
class VideoServiceDemand(ImageServiceDemand):
    kind: ClassVar[Kind] = "video service"


@record
class VideoBatchDemand(ImageBatchDemand):
    kind: ClassVar[Kind] = "video batch"


@record
class VisionDemand(ModelDemand):
    """Images that are read once, each to a class or a vector: `images` of a request, `pixels_mean`
    of one as it arrives."""

    model: Vision
    images: Given
    pixels_mean: Given
    growth: Growth
    gpu_memory_utilization: Given


@record
class VisionServiceDemand(VisionDemand):
    """As `ServingDemand`, of images that are read."""

    kind: ClassVar[Kind] = "vision service"

    arrivals: OpenLoop
    objectives: Objectives
    accepted: Objectives = field(default_factory=Objectives)
    idle: Given | None


@record
class VisionBatchDemand(VisionDemand):
    kind: ClassVar[Kind] = "vision batch"

    requests: Given
    limit: TimeLimit


@record
class VisionRunDemand(ModelDemand):
    """A run of `steps`, or of `epochs` of `dataset_images`, each of `pixels_mean` as it is stored:
    one of the two is there."""

    kind: ClassVar[Kind] = "vision training"

    model: Vision
    pixels_mean: Given
    dataset_images: Given
    global_batch: Given
    epochs: Given | None
    steps: Given | None
    dataset: Dataset
    checkpoint_interval: Given
    limit: TimeLimit


@record
class TrainingDemand(ModelDemand):
    """A run of `steps`, of `tokens`, or of `epochs` of the dataset: one of them is there. `others`
    are engines that may take it where the manifest names none; those of `unstarted` have no start
    for its model, and are taken where nothing else holds it."""

    kind: ClassVar[Kind] = "training"

    model: Transformer
    method: TrainingMethod
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
    spare_nodes: Given | None = None
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
SERVICES = (
    ServingDemand,
    PoolingServiceDemand,
    SpeechServiceDemand,
    ImageServiceDemand,
    VisionServiceDemand,
)
LIMITED = (
    BatchDemand,
    PoolingBatchDemand,
    SpeechBatchDemand,
    ImageBatchDemand,
    VisionBatchDemand,
    VisionRunDemand,
    TrainingDemand,
)
GROWING = (LanguageDemand, PoolingDemand, SpeechDemand, DiffusionDemand, VisionDemand)


def asked(demand: Demand) -> dict[str, Given]:
    """The limits of a service's times, by their names."""
    return demand.objectives.limits if isinstance(demand, SERVICES) else {}


def accepted(demand: Demand) -> dict[str, Given]:
    """The limits that may be missed, by the names of their figures."""
    limits: dict[str, Given | None] = {}
    if isinstance(demand, SERVICES):
        limits |= demand.accepted.limits
    if isinstance(demand, LIMITED):
        limits["time_to_finish"] = demand.limit.accepted
    if isinstance(demand, LanguageDemand):
        limits["output_tokens_per_second"] = demand.accepted_tokens_per_second
    if isinstance(demand, TrainingDemand):
        limits["tokens_per_second"] = demand.accepted_tokens_per_second
    return {name: limit for name, limit in limits.items() if limit is not None}


def idle_time(demand: Demand) -> Given | None:
    """Seconds of each day without requests, where a service states them."""
    return demand.idle if isinstance(demand, SERVICES) else None
