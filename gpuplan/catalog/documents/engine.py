"""A program that serves or trains."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gpuplan.catalog.documents.base import File

Task = Literal["inference", "batch", "training", "finetuning", "image", "notebook"]


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
