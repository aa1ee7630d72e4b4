"""The catalogue's files as documents: one GPU, node, price list, component or engine each.

Every fact names its source; every source has a place (`url`, or repository, commit and path) and a
`date` of its own, or the day it was `read` when it has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    RootModel,
    WithJsonSchema,
    model_validator,
)

from gpuplan import units

T = TypeVar("T")


class Strict(BaseModel):
    """Unknown fields are errors; scalars are not coerced."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


def _quantity(parse: Callable[[str], Any], example: str) -> tuple[Any, ...]:
    """Annotations of a quantity that is written as a text with its unit."""

    def read(value: object) -> object:
        if not isinstance(value, str):
            raise ValueError(f"write a number and a unit, for example '{example}'")
        return parse(value)

    return BeforeValidator(read), WithJsonSchema({"type": "string", "examples": [example]})


Bytes = Annotated[int, *_quantity(units.parse_bytes, "80 GiB")]
Rate = Annotated[float, *_quantity(units.parse_rate, "3350 GB/s")]
Flops = Annotated[float, *_quantity(units.parse_flops, "989 TFLOP/s")]
Watts = Annotated[float, *_quantity(units.parse_watts, "700 W")]
Usd = Annotated[Decimal, *_quantity(units.parse_usd_per_hour, "$55.04/hour")]
Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$", max_length=60)]
Day = Annotated[str, Field(pattern=r"^20[0-9]{2}-[01][0-9]-[0-3][0-9]$")]
Count = Annotated[int, Field(ge=1)]
Task = Literal["inference", "batch", "training", "finetuning", "image", "notebook"]


class SourceDocument(Strict):
    """`url`, or `repository` with `commit` and `path`; `date`, or the day it was `read`."""

    title: str
    url: Annotated[str, Field(pattern=r"^https://")] | None = None
    repository: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")] | None = None
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{7,40}$")] | None = None
    path: str | None = None
    date: Day | None = None
    read: Day | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        in_repository = (self.repository, self.commit, self.path)
        if (self.url is None) == any(p is None for p in in_repository):
            raise ValueError("a source has a url, or a repository with commit and path")
        if (self.date is None) == (self.read is None):
            raise ValueError("a source has a date of its own, or the day it was read")
        return self


class Fact(Strict, Generic[T]):
    value: T
    source: str


class File(Strict):
    """What every file has. Each source that is named is there, and each that is there is named."""

    id: Identifier
    sources: dict[str, SourceDocument]
    notes: list[str] = []

    def cited(self) -> Iterable[str]:
        """The keys of the sources that the file's facts name."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _sources_match(self) -> Self:
        cited, given = set(self.cited()), set(self.sources)
        if cited - given:
            raise ValueError(f"no such source: {', '.join(sorted(cited - given))}")
        if given - cited:
            raise ValueError(f"a source that nothing names: {', '.join(sorted(given - cited))}")
        return self


class MigProfileDocument(Strict):
    """`memory` is usable memory where it was captured, else the nominal size in the name."""

    name: Annotated[str, Field(pattern=r"^[1-9]g\.[0-9]+gb([+-][a-z.]+)?$")]
    compute_slices: Count
    memory_slices: Count
    starts: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]
    maximum: Count
    memory: Bytes
    source: str | None = None


class Mig(Strict):
    """`memory_slices` are the whole GPU's. `source`: where the geometry comes from, and the memory
    of each profile without a source of its own."""

    memory_slices: Count
    source: str
    profiles: list[MigProfileDocument]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _unique("MIG profile", (p.name for p in self.profiles))
        for p in self.profiles:
            if p.starts[-1] + p.memory_slices > self.memory_slices or p.maximum > len(p.starts):
                raise ValueError(f"{p.name} does not fit {self.memory_slices} memory slices")
        return self


class VgpuTypeDocument(Strict):
    """`memory` is the nominal size in the name; `mig_profile` makes it MIG-backed."""

    name: str
    memory: Bytes
    maximum: Count
    mig_profile: str | None = None
    source: str | None = None


class Vgpu(Strict):
    source: str
    types: list[VgpuTypeDocument]


class GpuFile(File):
    """One GPU. Peaks are dense; `nvlink` and `pcie` are one direction; `memory` is what the device
    reports, where a capture exists."""

    kind: Literal["gpu"]
    name: str
    vendor: Literal["nvidia", "amd", "intel"]
    architecture: str
    compute_capability: Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]$")] | None = None
    form_factor: str
    product: Fact[Annotated[str, Field(pattern=r"^[\w.-]{1,63}$")]] | None = None
    memory: Fact[Bytes]
    memory_bandwidth: Fact[Rate]
    peak_bf16: Fact[Flops]
    peak_fp8: Fact[Flops] | None = None
    peak_int8: Fact[Flops] | None = None
    peak_fp4: Fact[Flops] | None = None
    nvlink: Fact[Rate] | None = None
    pcie: Fact[Rate]
    power: Fact[Watts]
    bar: Fact[Bytes] | None = None
    sm_count: Fact[Count] | None = None
    mig: Mig | None = None
    vgpu: Vgpu | None = None

    def cited(self) -> Iterable[str]:
        for field in type(self).model_fields:
            value = getattr(self, field)
            if isinstance(value, Fact):
                yield value.source
        if self.mig:
            yield self.mig.source
            yield from (p.source for p in self.mig.profiles if p.source)
        if self.vgpu:
            yield from (t.source or self.vgpu.source for t in self.vgpu.types)

    @model_validator(mode="after")
    def _plausible(self) -> Self:
        bf16, memory = self.peak_bf16.value, self.memory.value
        if self.peak_fp8 and self.peak_fp8.value > 2.1 * bf16:
            raise ValueError("peak_fp8 is more than twice peak_bf16: is it with sparsity?")
        # GeForce cards accumulate BF16 in FP32 at half rate, FP4 at full rate.
        most = 8.5 if "GeForce" in self.name else 6.5
        if self.peak_fp4 and self.peak_fp4.value > most * bf16:
            raise ValueError(f"peak_fp4 is more than {most:g} x peak_bf16: is it with sparsity?")
        for p in self.mig.profiles if self.mig else []:
            if p.memory * p.maximum > memory:
                raise ValueError(f"{p.maximum} x {p.name} is more than the GPU's memory")
        self._check_vgpu()
        return self

    def _check_vgpu(self) -> None:
        types = self.vgpu.types if self.vgpu else []
        profiles = {p.name: p for p in self.mig.profiles} if self.mig else {}
        _unique("vGPU type", (t.name for t in types))
        for t in types:
            if t.mig_profile and t.mig_profile not in profiles:
                raise ValueError(f"{t.name}: no MIG profile '{t.mig_profile}'")
            # Types are named in whole gigabytes, rounded; a hundredth covers the rounding.
            if t.memory * t.maximum > self.memory.value * 1.01:
                raise ValueError(f"{t.maximum} x {t.name} is more than the GPU's memory")


class NodeFile(File):
    """A reference node. Cores are physical."""

    kind: Literal["node"]
    gpu: Identifier
    gpus: Count
    sockets: Count
    cpu_cores: Count
    memory: Bytes
    numa_nodes: Count
    source: str

    def cited(self) -> Iterable[str]:
        return (self.source,)


class Listing(Strict):
    """An on-demand price of a machine with `gpus` whole GPUs of one type."""

    provider: str | None = None
    instance: str | None = None
    gpu: Identifier
    gpus: Count
    price: Usd
    region: str | None = None
    vcpus: Count | None = None
    memory: Bytes | None = None
    source: str


class PriceFile(File):
    """Prices of one source. Placeholders (0, 700) are not prices."""

    kind: Literal["prices"]
    provider: str | None = None
    listings: Annotated[list[Listing], Field(min_length=1)]

    def cited(self) -> Iterable[str]:
        return (x.source for x in self.listings)

    @model_validator(mode="after")
    def _real(self) -> Self:
        for x in self.listings:
            if not (x.provider or self.provider):
                raise ValueError("a listing needs a provider")
            if not 0 < x.price < 700:
                raise ValueError(f"{x.instance or x.gpu}: {x.price} is not an hourly price")
        return self


class ComponentFile(File):
    """A chart by exact version; `digest` only where a source states it."""

    kind: Literal["component"]
    version: str
    app_version: str | None = None
    repository: str
    chart: str
    digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")] | None = None
    namespace: Identifier
    kubernetes_minimum: Annotated[str, Field(pattern=r"^1\.[0-9]+$")] | None = None
    driver: str | None = None
    source: str

    def cited(self) -> Iterable[str]:
        return (self.source,)


class EngineFile(File):
    """A program by exact image. `default_for`: tasks it is chosen for when none is asked for."""

    kind: Literal["engine"]
    version: str
    image: Annotated[str, Field(pattern=r"^[\w./-]+:[\w.-]*[0-9][\w.-]*$")]
    digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")] | None = None
    tasks: Annotated[list[Task], Field(min_length=1)]
    default_for: list[Task] = []
    source: str

    def cited(self) -> Iterable[str]:
        return (self.source,)

    @model_validator(mode="after")
    def _able(self) -> Self:
        if set(self.default_for) - set(self.tasks):
            raise ValueError("default_for names a task that is not in tasks")
        return self


AnyFile = GpuFile | NodeFile | PriceFile | ComponentFile | EngineFile


class CatalogFile(RootModel[Annotated[AnyFile, Field(discriminator="kind")]]):
    """One file of the catalogue; `kind` says which."""


def _unique(what: str, names: Iterable[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"{what} twice: {', '.join(twice)}")
