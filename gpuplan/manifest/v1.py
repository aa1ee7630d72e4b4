"""The manifest, version 1: what a person writes.

Few fields are required. A field that is not written is None here, unless its default is a plain
fact of the format; derived values are made by the sizing engine, which names each default it used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from gpuplan.manifest.base import (
    ClassName,
    Count,
    Document,
    GpusOfNode,
    Name,
    Positive,
    Shorthand,
    Text,
)
from gpuplan.manifest.quantities import Bytes, BytesPerSecond, Seconds, UsdPerHour
from gpuplan.manifest.traffic import Load, Slo, Speculative
from gpuplan.targets import TARGETS, implemented

if TYPE_CHECKING:
    TargetName = str
else:
    TargetName = Literal[tuple(TARGETS)]
Precision = Literal["bf16", "fp16", "fp8", "int8", "int4", "nvfp4", "mxfp4"]


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
    speculative: Speculative | None = None
    disaggregation: Literal["prefill_decode"] | None = Field(
        None, description="Prefill and decode in pools of their own. No backend writes them yet."
    )
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
        "asked to where several pods need one.",
    )
    bandwidth: BytesPerSecond | None = Field(None, description="Read bandwidth of one node.")


class Platform(Document):
    """Where it may run."""

    target: TargetName = Field(
        description=f"{' or '.join(implemented())}; for the others no backend is implemented yet."
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
    calibration: Text | None = Field(
        None,
        description="Folder of anchors that `gpuplan accuracy --calibrate` wrote, relative to the "
        "manifest.",
    )
    prices: dict[str, UsdPerHour] = Field({}, description="Price of one GPU, by GPU type.")
    versions: dict[str, Text] = Field({}, description="Component versions that replace the pins.")


class Manifest(Document):
    """One stack: a platform and the workloads on it."""

    api_version: Literal["gpuplan.dev/v1"] = Field(alias="apiVersion")
    name: Name
    description: str | None = None
    platform: Platform
    workloads: Annotated[list[Workload], Field(min_length=1)]
