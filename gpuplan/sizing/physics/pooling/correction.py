"""What sets the speed of reading texts apart among measured points."""

from __future__ import annotations

from gpuplan.catalog.model import Gpu
from gpuplan.models.identity import identity
from gpuplan.models.model import Transformer
from gpuplan.sizing.calibration.anchors import Features
from gpuplan.sizing.calibration.gaussian import log2

QUANTITY = "reading_rate"


def features(model: Transformer, gpu: Gpu, engine: str, precision: str, length: float) -> Features:
    """`length`: mean tokens of a text. Everything that is planned runs at full power."""
    width = "16 bits" if precision in ("bf16", "fp16") else precision
    return {
        "model": identity(model),
        "gpu": gpu.identifier,
        "engine": engine,
        "width": width,
        "form": "card" if gpu.is_card else "board",
        "run": f"{gpu.identifier} {engine} {width}",
        "power": "full",
        "input": log2(length),
    }
