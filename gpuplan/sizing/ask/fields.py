"""The fields of a manifest's workload: where each stands, its unit, and which kinds of workload use
it. A field that a kind does not use is refused by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

from gpuplan.frozen import record
from gpuplan.plan.times import TIMES, field_of

Kind = Literal[
    "serving",
    "batch",
    "pooling service",
    "pooling batch",
    "speech service",
    "speech batch",
    "image service",
    "image batch",
    "video service",
    "video batch",
    "vision service",
    "vision batch",
    "vision training",
    "training",
    "notebook",
]

EVERY: tuple[Kind, ...] = get_args(Kind)
SERVICES: tuple[Kind, ...] = (
    "serving",
    "pooling service",
    "speech service",
    "image service",
    "video service",
    "vision service",
)
BATCHES: tuple[Kind, ...] = (
    "batch",
    "pooling batch",
    "speech batch",
    "image batch",
    "video batch",
    "vision batch",
)
TOKENS: tuple[Kind, ...] = ("serving", "batch")
POOLING: tuple[Kind, ...] = ("pooling service", "pooling batch")
READ: tuple[Kind, ...] = (*TOKENS, *POOLING)
SPEECH: tuple[Kind, ...] = ("speech service", "speech batch")
IMAGES: tuple[Kind, ...] = ("image service", "image batch")
VIDEOS: tuple[Kind, ...] = ("video service", "video batch")
VISION: tuple[Kind, ...] = ("vision service", "vision batch")
TRAINING: tuple[Kind, ...] = ("training",)
LOOKING: tuple[Kind, ...] = ("vision training",)
RUNS: tuple[Kind, ...] = (*TRAINING, *LOOKING)
NOTEBOOK: tuple[Kind, ...] = ("notebook",)
SERVING: tuple[Kind, ...] = ("serving",)
SERVED: tuple[Kind, ...] = (*READ, *SPEECH, *IMAGES, *VIDEOS, *VISION)
MODELS: tuple[Kind, ...] = (*SERVED, *RUNS)


@record
class ManifestField:
    """`path` is below the workload, with dots; `unit` of its number, "" where it has none."""

    path: str
    unit: str
    kinds: tuple[Kind, ...]

    @property
    def parts(self) -> list[str]:
        return self.path.split(".")


FIELDS: dict[str, ManifestField] = {}


def _number(path: str, unit: str, kinds: Iterable[Kind]) -> ManifestField:
    FIELDS[path] = ManifestField(path=path, unit=unit, kinds=tuple(k for k in EVERY if k in kinds))
    return FIELDS[path]


def _text(kinds: Iterable[Kind], *paths: str) -> None:
    for path in paths:
        _number(path, "", kinds)


_text(EVERY, "name", "description", "task", "engine", "command")
_text(EVERY, "environment", "public_variables", "secrets")
_text(MODELS, "model")
PRECISION = _number("precision", "B", MODELS)
MEAN_RATE = _number("load.requests_per_second.mean", "1/s", SERVICES)
PEAK_RATE = _number("load.requests_per_second.peak", "1/s", SERVICES)
_text(POOLING, "pooling")
TEXTS = _number("load.texts", "1", POOLING)
INPUT_MEAN = _number("load.input_tokens.mean", "1", READ)
INPUT_P95 = _number("load.input_tokens.p95", "1", READ)
AUDIO = _number("load.audio", "s", SPEECH)
OUTPUT_MEAN = _number("load.output_tokens.mean", "1", (*TOKENS, *SPEECH))
OUTPUT_P95 = _number("load.output_tokens.p95", "1", TOKENS)
IMAGE_MEAN = _number("load.images.mean", "1", (*IMAGES, *VISION))
IMAGE_P95 = _number("load.images.p95", "1", IMAGES)
IMAGE_COUNT = _number("load.images.count", "1", VISION)
IMAGE_STEPS = _number("load.images.steps", "1", IMAGES)
VIDEO_MEAN = _number("load.videos.mean", "1", VIDEOS)
VIDEO_P95 = _number("load.videos.p95", "1", VIDEOS)
VIDEO_FRAMES = _number("load.videos.frames", "1", VIDEOS)
VIDEO_STEPS = _number("load.videos.steps", "1", VIDEOS)
VIDEO_MEMORY = _number("load.videos.memory", "B", VIDEOS)
REQUESTS = _number("load.requests", "1", BATCHES)
IDLE = _number("load.idle", "s", SERVICES)
USERS = _number("load.concurrency.users", "1", SERVING)
THINK_TIME = _number("load.concurrency.think_time", "s", SERVING)
BURST = _number("load.burst", "1", SERVING)
PREFIX_CACHE = _number("load.prefix_cache", "1", TOKENS)
ACCEPTED_TOKENS = _number("speculative.accepted_tokens", "1", TOKENS)
DRAFT_TOKENS = _number("speculative.draft_tokens", "1", TOKENS)
DRAFT_COST = _number("speculative.draft_cost", "1", TOKENS)
DRAFT_MEMORY = _number("speculative.draft_memory", "B", TOKENS)
_text(TOKENS, "speculative.method", "speculative.model", "speculative.revision")
_text(SERVING, "disaggregation")
OBJECTIVES = {
    name: _number(field_of(name), "s", SERVICES if time == "request_latency" else SERVING)
    for name, (time, _) in TIMES.items()
}
TOKENS_PER_SECOND = _number("slo.tokens_per_second", "1/s", (*TOKENS, *TRAINING))
FINISH_WITHIN = _number("slo.finish_within", "s", (*BATCHES, *RUNS))
CONFIDENCE = _number("slo.confidence", "1", MODELS)
SEQUENCE_LENGTH = _number("training.sequence_length", "1", TRAINING)
GLOBAL_BATCH = _number("training.global_batch", "1", RUNS)
TRAINING_TOKENS = _number("training.tokens", "1", TRAINING)
EPOCHS = _number("training.epochs", "1", RUNS)
STEPS = _number("training.steps", "1", RUNS)
SPARE_NODES = _number("training.spare_nodes", "1", TRAINING)
LORA_RANK = _number("training.lora.rank", "1", TRAINING)
_text(TRAINING, "training.optimizer", "training.lora.quantized", "training.recompute")
_text(TRAINING, "training.sharding")
_text(RUNS, "dataset.name")
DATASET_IMAGES = _number("dataset.images", "1", LOOKING)
DATASET_PIXELS = _number("dataset.pixels", "1", LOOKING)
DATASET_SIZE = _number("dataset.size", "B", RUNS)
DATASET_TOKENS = _number("dataset.tokens", "1", TRAINING)
DATASET_RATE = _number("dataset.rate", "B/s", TRAINING)
CHECKPOINT_INTERVAL = _number("checkpoint.interval", "s", RUNS)
NOTEBOOK_USERS = _number("notebook.users", "1", NOTEBOOK)
NOTEBOOK_MEMORY = _number("notebook.gpu_memory", "B", NOTEBOOK)
GROWTH_FACTOR = _number("growth.factor", "1", SERVED)
GROWTH_HORIZON = _number("growth.horizon", "s", SERVED)
_text(EVERY, "tenancy.team", "tenancy.isolation", "priority", "preemptible", "renamed_from")
_text(EVERY, "after")
_text((*BATCHES, *RUNS), "schedule")
DEADLINE = _number("deadline", "s", (*BATCHES, *RUNS))
_text(EVERY, "overrides.gpu")
_text((*SERVED, *NOTEBOOK), "overrides.partition", "tenancy.cut")
_text(TOKENS, "overrides.kv_cache_dtype")
_number("overrides.accepted_misses", "", MODELS)
REPLICAS = _number("overrides.replicas", "1", SERVED)
TENSOR_PARALLEL_SIZE = _number("overrides.tensor_parallel_size", "1", TOKENS)
PIPELINE_PARALLEL_SIZE = _number("overrides.pipeline_parallel_size", "1", TOKENS)
MAX_MODEL_LEN = _number("overrides.max_model_len", "1", READ)
MAX_NUM_SEQS = _number("overrides.max_num_seqs", "1", (*TOKENS, *SPEECH, "image batch", *VISION))
MAX_NUM_BATCHED_TOKENS = _number("overrides.max_num_batched_tokens", "1", READ)
GPU_MEMORY_UTILIZATION = _number("overrides.gpu_memory_utilization", "1", (*READ, *SPEECH, *VISION))
MICRO_BATCH = _number("overrides.micro_batch", "1", RUNS)
GPU_COUNT = _number("overrides.gpu_count", "1", RUNS)
CPU_CORES_PER_GPU = _number("overrides.cpu_cores_per_gpu", "1", EVERY)
HOST_MEMORY_PER_GPU = _number("overrides.host_memory_per_gpu", "B", EVERY)
SHARED_MEMORY = _number("overrides.shared_memory", "B", EVERY)
SCRATCH = _number("overrides.scratch", "B", EVERY)
MODEL_STORAGE = _number("overrides.model_storage", "B", MODELS)
DATASET_STORAGE = _number("overrides.dataset_storage", "B", RUNS)
CHECKPOINT_STORAGE = _number("overrides.checkpoint_storage", "B", RUNS)
HOME_STORAGE = _number("overrides.home_storage", "B", NOTEBOOK)
