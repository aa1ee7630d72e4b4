"""Whole servers that providers rent by the month."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gpuplan.catalog.documents.base import Count, File, Identifier, Strict, unique
from gpuplan.catalog.documents.ranges import Moment
from gpuplan.catalog.documents.storage import Number


class ServerDocument(Strict):
    """A server with `gpus` GPUs of a type for `usd`, which is of all `months` that it is rented for
    at least; `setup` is paid once. `place` is where it stands, as its provider calls it."""

    gpu: Identifier
    gpus: Count
    usd: Number
    months: Count
    setup: Number | None = None
    place: str | None = None
    about: str
    when: Moment
    source: str


class ServersFile(File):
    """The servers of one provider."""

    kind: Literal["servers"]
    provider: Identifier
    servers: Annotated[list[ServerDocument], Field(min_length=1)]

    def cited(self) -> Iterable[str]:
        return (x.source for x in self.servers)

    @model_validator(mode="after")
    def _once(self) -> Self:
        rows = (f"{x.gpus} × {x.gpu} for {x.months} months in {x.place}" for x in self.servers)
        unique("server", rows)
        return self
