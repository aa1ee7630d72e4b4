"""What a workload asks for: resolved records, no YAML, no files."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from gpuplan.manifest.v1 import Overrides
from gpuplan.models.model import Model
from gpuplan.plan.model import (
    Engine,
    EnvironmentVariable,
    ModelRef,
    SecretRef,
    Speculative,
    Task,
    record,
)
from gpuplan.sizing.calibration.anchors import Anchors
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.source import Origin

Kind = Literal["serving", "batch", "image service", "image batch", "training", "notebook"]
Isolation = Literal["shared", "gpu", "node", "vm"]
Method = Literal["full", "lora", "qlora", "pretraining"]


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
