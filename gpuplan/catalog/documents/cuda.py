"""What a CUDA release asks of the driver."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from gpuplan.catalog.documents.base import File
from gpuplan.catalog.documents.component import Driver


class CudaFile(File):
    """The oldest branch of the driver that programs of a CUDA major release run with."""

    kind: Literal["cuda"]
    driver: Driver
    source: str

    def cited(self) -> Iterable[str]:
        return (self.source,)
