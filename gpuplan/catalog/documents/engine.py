"""Programs that run in containers: those that serve or train, and what stands beside them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gpuplan.catalog.documents.base import File, Identifier, Strict
from gpuplan.catalog.documents.component import Sha256

Task = Literal[
    "inference",
    "batch",
    "training",
    "finetuning",
    "image",
    "notebook",
    "pooling",
    "speech",
    "image-embedding",
    "vision",
    "vision-training",
]


class CudaOfEngine(Strict):
    """The CUDA release that its image is built on, by a name of the folder `cuda`."""

    version: Identifier
    source: str


class ProcessorsOfImage(Strict):
    """The processors that an image is built for, as its registry's manifest names them."""

    values: Annotated[list[Literal["amd64", "arm64"]], Field(min_length=1)]
    source: str


class _Program(File):
    """A program by exact image; `digest` only where a source states it. Without `processors` no
    source says what the image is built for, and amd64 is taken."""

    version: str
    image: Annotated[str, Field(pattern=r"^[\w./-]+:[\w.-]*[0-9][\w.-]*$")]
    digest: Sha256 | None = None
    processors: ProcessorsOfImage | None = None
    source: str

    def cited(self) -> Iterable[str]:
        yield self.source
        if self.processors:
            yield self.processors.source


class ImageFile(_Program):
    """A program that no workload names: a target needs it beside them."""

    kind: Literal["image"]


class EngineFile(_Program):
    """A program that serves or trains. `default_for`: tasks it is chosen for when none is asked
    for. Without `cuda` no source says what driver it needs."""

    kind: Literal["engine"]
    tasks: Annotated[list[Task], Field(min_length=1)]
    default_for: list[Task] = []
    cuda: CudaOfEngine | None = None

    def cited(self) -> Iterable[str]:
        yield from super().cited()
        if self.cuda:
            yield self.cuda.source

    @model_validator(mode="after")
    def _able(self) -> Self:
        if set(self.default_for) - set(self.tasks):
            raise ValueError("default_for names a task that is not in tasks")
        return self


class Variable(Strict):
    """A variable that the image's program is to be started with, and why."""

    name: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")]
    value: str
    reason: Annotated[str, Field(min_length=1)]
    source: str


class BuildFile(_Program):
    """The image of an `engine` for another vendor's GPUs, of the version that the engine's own file
    has. `tasks` are those of the engine that are known to run there, `architectures` the GPUs."""

    kind: Literal["build"]
    engine: Identifier
    vendor: Literal["amd", "intel"]
    architectures: Annotated[list[str], Field(min_length=1)]
    tasks: Annotated[list[Task], Field(min_length=1)]
    environment: list[Variable] = []

    def cited(self) -> Iterable[str]:
        yield from super().cited()
        yield from (variable.source for variable in self.environment)
