"""The processor of machines, and whether images are made for it."""

from __future__ import annotations

from gpuplan.catalog.load import Catalog
from gpuplan.plan.outside.order import Architecture
from gpuplan.vendors import FIRST


def architecture_of(gpu: str, catalog: Catalog) -> Architecture | None:
    """NVIDIA's superchips have Grace, an Arm CPU, beside the GPU; of other machines the GPU tells
    nothing."""
    found = catalog.gpu(gpu)
    return "arm64" if found and found.superchip and found.vendor == FIRST else None
