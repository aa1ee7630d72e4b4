"""The manifest, version 1: what a person writes.

Few fields are required. A field that is not written is None here, unless its default is a plain
fact of the format; derived values are made by the sizing engine, which names each default it used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_before_validator_function

from gpuplan.manifest.quantities import Bytes, BytesPerSecond, Seconds, SecondsOrZero, UsdPerHour

API_VERSION = "gpuplan.dev/v1"

Target = Literal[
    "kubernetes",
    "libvirt",
    "eks",
    "gke",
    "aks",
    "proxmox",
    "vsphere",
    "kubevirt",
    "slurm",
    "docker",
]
Precision = Literal["bf16", "fp16", "fp8", "int8", "int4", "nvfp4", "mxfp4"]


class Document(BaseModel):
    """Unknown fields are errors; scalars are not coerced."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


Name = Annotated[
    str,
    Field(
        pattern=r"^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$",
        description="Lower-case letters, digits and '-', at most 40 characters, a letter first.",
    ),
]
Positive = Annotated[float, Field(gt=0, le=1e18, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=10**9)]
GpusOfNode = Annotated[int, Field(ge=1, le=1024)]
Text = Annotated[str, Field(pattern=r"\S", description="A text that is not empty.")]
ClassName = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$",
        max_length=253,
        description="A name as Kubernetes has it: lower-case letters, digits, '-' and '.'.",
    ),
]


@dataclass(frozen=True, slots=True)
class Shorthand:
    """Accept a bare number or text where a mapping with `field` is meant; the schema says so."""

    field: str
    kind: Literal["number", "string"]

    def expand(self, value: object) -> object:
        kinds = (str,) if self.kind == "string" else (int, float)
        bare = isinstance(value, kinds) and not isinstance(value, bool)
        return {self.field: value} if bare else value

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return no_info_before_validator_function(self.expand, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [handler(schema), {"type": self.kind}]}


class Distribution(Document):
    """A mean and a 95th percentile, in tokens. Without `p95` the lengths are taken as constant."""

    mean: Positive
    p95: Positive | None = None


class Rate(Document):
    """Requests per second: the mean over the busy hours and the peak that must be served."""

    mean: Positive
    peak: Positive | None = None


_SIZE = re.compile(r"([1-9][0-9]{0,4})\s*[x×]\s*([1-9][0-9]{0,4})")


def _parse_size(value: object) -> object:
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if not match:
        raise ValueError("an image size is written WIDTHxHEIGHT, for example '1024x1024'")
    return int(match[1]), int(match[2])


ImageSize = Annotated[
    tuple[int, int],
    BeforeValidator(_parse_size),
    WithJsonSchema({"type": "string", "pattern": _SIZE.pattern, "examples": ["1024x1024"]}),
]


class Images(Document):
    """Image sizes of an image service, and its denoising steps."""

    mean: ImageSize
    p95: ImageSize | None = None
    steps: Count


class Load(Document):
    """What arrives. `idle` is the part of each day without requests."""

    requests_per_second: Annotated[Rate, Shorthand("mean", "number")] | None = None
    input_tokens: Annotated[Distribution, Shorthand("mean", "number")] | None = None
    output_tokens: Annotated[Distribution, Shorthand("mean", "number")] | None = None
    images: Annotated[Images, Shorthand("mean", "string")] | None = None
    requests: Count | None = Field(None, description="All requests of a batch workload.")
    idle: SecondsOrZero | None = None


class Slo(Document):
    """Objectives. `confidence` is the probability with which a latency objective must be met
    according to the prediction's interval."""

    time_to_first_token: Seconds | None = Field(None, description="95th percentile.")
    time_per_output_token: Seconds | None = Field(None, description="Mean.")
    request_latency: Seconds | None = Field(None, description="Whole request, mean.")
    tokens_per_second: Positive | None = Field(None, description="Output or training tokens.")
    finish_within: Seconds | None = None
    confidence: Annotated[float, Field(ge=0.5, le=0.99)] | None = None


class Lora(Document):
    rank: Count
    quantized: bool = Field(default=False, description="QLoRA: the frozen weights in nf4.")


class Training(Document):
    """A training or fine-tuning run. One of `tokens`, `epochs` and `steps` says how long it is."""

    sequence_length: Count | None = None
    global_batch: Count | None = Field(None, description="Sequences per optimizer step.")
    tokens: Positive | None = None
    epochs: Positive | None = None
    steps: Count | None = None
    optimizer: Literal["adamw", "adamw-8bit", "adamw-bf16"] | None = None
    lora: Annotated[Lora, Shorthand("rank", "number")] | None = None
    recompute: Literal["none", "selective", "full"] | None = None
    sharding: Literal["none", "zero1", "zero2", "zero3"] | None = None


class Dataset(Document):
    name: Text | None = Field(None, description="A dataset identifier or path the engine can read.")
    size: Bytes | None = None
    tokens: Positive | None = None
    rate: BytesPerSecond | None = Field(None, description="Bytes per second the loader must get.")


class Checkpoint(Document):
    interval: Seconds


class Growth(Document):
    """Load is multiplied by `factor` by the end of `horizon`."""

    factor: Annotated[float, Field(ge=1, le=100)]
    horizon: Seconds | None = None


class Tenancy(Document):
    """Who owns the workload and what it may share with others."""

    team: Name | None = None
    isolation: Literal["shared", "gpu", "node", "vm"] | None = None


class Secret(Document):
    """A reference: `config` names a secret of the stack's configuration, `secret` an object that
    exists already in the namespace, with its `key`. The value never stands in a manifest."""

    config: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,62}$")] | None = None
    secret: Name | None = None
    key: Annotated[str, Field(pattern=r"^[-._a-zA-Z0-9]{1,253}$")] | None = None


class Engine(Document):
    """The serving or training program. `version` and `image` replace the bundled pins."""

    name: Text
    version: Text | None = None
    image: Text | None = None


class ModelDimensions(Document):
    """A model by name, by the path of a Hugging Face `config.json`, or by its dimensions (fields
    of such a file, under `config`)."""

    name: Text | None = None
    path: Text | None = Field(None, description="Path of a config.json, relative to the manifest.")
    config: dict[str, Any] | None = None
    revision: Text | None = Field(None, description="Commit of the weights.")


@dataclass(frozen=True, slots=True)
class ModelShorthand(Shorthand):
    """A bare text is a path when it looks like one, else a bundled name."""

    def expand(self, value: object) -> object:
        if isinstance(value, str) and (value.endswith(".json") or value.startswith((".", "/"))):
            return {"path": value}
        return Shorthand.expand(self, value)


class NotebookSpec(Document):
    """One interactive environment per user, each with its own GPU share."""

    users: Count
    gpu_memory: Bytes


class Overrides(Document):
    """Values that replace derived ones. Each is reported as overridden, with what it replaced."""

    gpu: Text | None = None
    partition: Text | None = Field(None, description="A MIG profile or a vGPU type.")
    replicas: Count | None = None
    tensor_parallel_size: Count | None = None
    max_model_len: Count | None = None
    max_num_seqs: Count | None = None
    gpu_memory_utilization: Annotated[float, Field(gt=0, lt=1)] | None = None
    kv_cache_dtype: Literal["auto", "fp8"] | None = None
    micro_batch: Count | None = None
    gpu_count: Count | None = Field(None, description="GPUs of a training run.")
    cpu_cores_per_gpu: Count | None = None
    memory_per_gpu: Bytes | None = Field(None, description="Host memory.")
    shared_memory: Bytes | None = None
    model_storage: Bytes | None = None
    checkpoint_storage: Bytes | None = None
    home_storage: Bytes | None = None


class Workload(Document):
    name: Name
    description: str | None = None
    task: Literal["inference", "training", "finetuning", "batch", "notebook"]
    model: Annotated[ModelDimensions, ModelShorthand("name", "string")] | None = None
    precision: Precision | None = None
    engine: Annotated[Engine, Shorthand("name", "string")] | None = None
    command: list[str] | None = Field(None, description="Replaces the engine's own command.")
    environment: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], str] = {}
    secrets: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], Secret] = {}
    load: Load | None = None
    slo: Slo | None = None
    training: Training | None = None
    dataset: Dataset | None = None
    checkpoint: Checkpoint | None = None
    notebook: NotebookSpec | None = None
    growth: Annotated[Growth, Shorthand("factor", "number")] | None = None
    tenancy: Tenancy | None = None
    priority: Literal["low", "normal", "high", "critical"] | None = None
    preemptible: bool | None = None
    deadline: Seconds | None = None
    overrides: Overrides | None = None
    renamed_from: list[Name] = []


class NodeShape(Document):
    """One node, where no inventory describes it. Cores are physical."""

    gpus: GpusOfNode
    cpu_cores: Count | None = None
    memory: Bytes | None = None
    count: Count | None = Field(None, description="Nodes there are.")


class FabricSpec(Document):
    kind: Literal["infiniband", "roce", "ethernet"]
    bandwidth_per_gpu: BytesPerSecond
    resource: Annotated[str, Field(pattern=r"^[a-z0-9.-]+/[A-Za-z0-9._-]+$")] | None = Field(
        None, description="The name under which the cluster's device plugin offers a RDMA device."
    )


class StorageSpec(Document):
    """Where volumes come from. `class` is the storage class; without it the cluster's default."""

    storage_class: ClassName | None = Field(None, alias="class")
    shared: bool | None = Field(
        None,
        description="Whether volumes can be mounted by several nodes at once. Without it they are "
        "asked to where several pods need one, and keep that when replicas change only if written.",
    )
    bandwidth: BytesPerSecond | None = Field(None, description="Read bandwidth of one node.")


class Platform(Document):
    """Where it may run."""

    target: Target = Field(
        description="kubernetes or libvirt; for the others no backend is implemented yet."
    )
    region: Text | None = None
    inventory: Text | None = Field(
        None, description="Path of an inventory, relative to the manifest."
    )
    gpus: Annotated[list[str], Field(min_length=1)] | None = Field(
        None, description="GPU types that may be used (see `gpuplan catalog list gpus`)."
    )
    node: NodeShape | None = None
    fabric: FabricSpec | None = None
    storage: StorageSpec | None = None
    budget: UsdPerHour | None = None
    prices: dict[str, UsdPerHour] = Field({}, description="Price of one GPU, by GPU type.")
    versions: dict[str, Text] = Field({}, description="Component versions that replace the pins.")


class Manifest(Document):
    """One stack: a platform and the workloads on it."""

    api_version: Literal["gpuplan.dev/v1"] = Field(alias="apiVersion")
    name: Name
    description: str | None = None
    platform: Platform
    workloads: Annotated[list[Workload], Field(min_length=1)]
