"""MIG of a GPU: profiles, where their instances go, and what they share."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from gpuplan.catalog.documents.base import Bytes, Count, Strict, unique
from gpuplan.plan.partitions import MIG_NAME

Whole = Annotated[int, Field(ge=0)]


class MigEngines(Strict):
    """Engines of an instance, as `nvidia-smi mig -lgip` counts them."""

    nvdec: Whole
    nvenc: Whole
    jpeg: Whole
    ofa: Whole


class MigProfileDocument(Strict):
    """`memory` is usable memory where it was captured, else the nominal size in the name."""

    name: Annotated[str, Field(pattern=MIG_NAME)]
    compute_slices: Count
    memory_slices: Count
    starts: Annotated[list[Whole], Field(min_length=1)]
    maximum: Count
    memory: Bytes
    sm_count: Count | None = None
    engines: MigEngines | None = None
    source: str | None = None


class MigMode(Strict):
    """Whether turning MIG on resets the GPU, and whether it is still on after a reboot. Instances
    never are."""

    resets: bool
    persists: bool
    source: str


class Mig(Strict):
    """`memory_slices` are the whole GPU's. `source`: where the geometry and the engines come from,
    and the memory of each profile without a source of its own."""

    memory_slices: Count
    mode: MigMode | None = None
    source: str
    profiles: list[MigProfileDocument]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        unique("MIG profile", (p.name for p in self.profiles))
        for p in self.profiles:
            if p.starts[-1] + p.memory_slices > self.memory_slices or p.maximum > len(p.starts):
                raise ValueError(f"{p.name} does not fit {self.memory_slices} memory slices")
        return self
