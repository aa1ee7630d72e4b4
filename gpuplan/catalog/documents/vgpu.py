"""vGPU types of a GPU: how many of one size fit it, and where those of several sizes go."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gpuplan.catalog.documents.base import Bytes, Count, FactDocument, Strict, unique
from gpuplan.catalog.documents.mig import Whole


class VgpuTypeDocument(Strict):
    """`memory` is the nominal size in the name; `mig_profile` makes it MIG-backed. `maximum` fit a
    GPU with this size alone; beside other sizes `mixed_maximum` do, each at one of `placements`,
    where a source has them."""

    name: str
    memory: Bytes
    maximum: Count
    mig_profile: str | None = None
    mixed_maximum: Count | None = None
    placement_size: Count | None = None
    placements: Annotated[list[Whole], Field(min_length=1)] | None = None
    source: str | None = None

    @model_validator(mode="after")
    def _placed(self) -> Self:
        if self.mig_profile and (self.mixed_maximum or self.placements):
            raise ValueError(f"{self.name}: a MIG-backed type goes where its instance goes")
        if (self.placements is None) != (self.placement_size is None):
            raise ValueError(f"{self.name}: placements have a size")
        if self.placements and len(self.placements) != self.mixed_maximum:
            raise ValueError(f"{self.name}: mixed_maximum is the number of placements")
        return self


class MixedSize(Strict):
    """Whether one GPU holds time-sliced vGPUs of several sizes. `region` is the size of its
    placements, in their unit."""

    supported: bool
    region: Count | None = None
    source: str


class HostInterface(Strict):
    """What a host gives to a machine: mediated devices of the GPU, or virtual functions."""

    kind: Literal["mediated-device", "virtual-function"]
    source: str


class Vgpu(Strict):
    """`graphics` are types of the Q series, `types` those of the C series. `mmio` is the address
    space that a machine with the GPU needs."""

    source: str
    mixed_size: MixedSize | None = None
    interface: HostInterface
    mmio: FactDocument[Bytes] | None = None
    types: list[VgpuTypeDocument]
    graphics: list[VgpuTypeDocument] = []

    @model_validator(mode="after")
    def _sound(self) -> Self:
        every = [*self.types, *self.graphics]
        unique("vGPU type", (t.name for t in every))
        region = self.mixed_size.region if self.mixed_size else None
        for t in every:
            if t.mixed_maximum and not (self.mixed_size and self.mixed_size.supported):
                raise ValueError(f"{t.name}: the GPU takes vGPUs of one size only")
            if t.placements and t.placement_size:
                self._within(t.name, t.placements, t.placement_size, region)
        return self

    @staticmethod
    def _within(name: str, starts: list[int], size: int, region: int | None) -> None:
        if region is None or starts[-1] + size > region:
            raise ValueError(f"{name} does not fit a region of {region}")
        if any(b - a < size for a, b in pairwise(starts)):
            raise ValueError(f"{name}: placements overlap")

    def cited(self) -> list[str]:
        """The keys of the sources that are named here."""
        keys = [t.source or self.source for t in [*self.types, *self.graphics]]
        keys += [x.source for x in (self.mixed_size, self.interface, self.mmio) if x]
        return keys
