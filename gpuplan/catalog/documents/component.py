"""A chart that is installed beside the workloads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from gpuplan.catalog.documents.base import File, Identifier


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
