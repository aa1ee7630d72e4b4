"""What the sizing engine is asked and what it answers: resolved records, no YAML, no files."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from gpuplan.catalog.model import Gpu
from gpuplan.diagnostics import Diagnostic
from gpuplan.manifest.v1 import Overrides
from gpuplan.models.model import Model
from gpuplan.plan.model import (
    Engine,
    EnvironmentVariable,
    Evidence,
    Fabric,
    ModelRef,
    SecretRef,
    Speculative,
    Task,
    Workload,
    record,
)
from gpuplan.sizing.anchors import Anchors
from gpuplan.sizing.formula import Quantity
from gpuplan.source import Origin

Kind = Literal["serving", "batch", "image service", "image batch", "training", "notebook"]
Isolation = Literal["shared", "gpu", "node", "vm"]
Method = Literal["full", "lora", "qlora", "pretraining"]


@record
class GpuOffer:
    """One GPU type that may be used, with the nodes it comes in. `node_count` is None where nodes
    may be bought without limit; other None are unknown. Cores are physical. `node_names` are of
    the machines of an inventory, `cards_bytes_per_s` is what a machine's network cards carry."""

    gpu: Gpu
    node_type: str | None = None
    gpus_per_node: int
    node_count: int | None = None
    node_names: tuple[str, ...] = ()
    cpu_cores_per_node: int | None = None
    threads_per_core: int | None = None
    memory_bytes_per_node: int | None = None
    cards_bytes_per_s: float | None = None
    numa_nodes: int | None = None
    usd_per_gpu_hour: Quantity | None = None
    origin: Origin | None = None


@record
class Site:
    """What the platform offers."""

    target: str
    gpus: tuple[GpuOffer, ...]
    fabric: Fabric | None = None
    storage_bytes_per_s: Quantity | None = None
    storage_class: str | None = None
    storage_shared: bool | None = None


@record
class Demand:
    """One workload with its defaults made visible. `given` holds every number of the manifest that
    the kind uses, and every default, by the manifest field's name below the workload. `replaced`
    holds the defaults that overrides replaced."""

    name: str
    kind: Kind
    task: Task
    tenant: str
    description: str | None
    model: Model | None
    model_ref: ModelRef | None
    precision: str
    engine: Engine
    command: tuple[str, ...]
    environment: tuple[EnvironmentVariable, ...]
    secrets: tuple[SecretRef, ...]
    given: dict[str, Quantity]
    replaced: dict[str, Quantity]
    method: Method | None
    optimizer: str | None
    recompute: Literal["none", "selective", "full"] | None
    sharding: Literal["none", "zero1", "zero2", "zero3"] | None
    speculative: Speculative | None
    dataset: str | None
    image_size: tuple[int, int] | None
    isolation: Isolation
    priority: Literal["low", "normal", "high", "critical"]
    preemptible: bool
    overrides: Overrides
    renamed_from: tuple[str, ...]
    origin: Origin
    anchors: Anchors = field(default_factory=Anchors)

    def value(self, field: str) -> float | None:
        """The number of a field, or None where neither manifest nor default gives one."""
        quantity = self.given.get(field)
        return None if quantity is None else quantity.value


@record
class Sized:
    """A sized workload, where its numbers come from, and what a person should know beside it."""

    workload: Workload
    evidence: tuple[Evidence, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
