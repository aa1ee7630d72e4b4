"""How measured points correct the speed of reading texts, and what sets one apart among them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from gpuplan.catalog.model import Gpu
from gpuplan.models.identity import identity
from gpuplan.models.model import Transformer
from gpuplan.plan.model import Basis
from gpuplan.sizing.calibration.anchors import Features, Field
from gpuplan.sizing.calibration.corrections import record_correction
from gpuplan.sizing.calibration.gaussian import log2
from gpuplan.sizing.data.pooling import UNMEASURED
from gpuplan.sizing.evidence.formula import Ledger, Quantity, constant
from gpuplan.sizing.evidence.intervals import Factors, inverse

QUANTITY = "reading_rate"
NAME = "rate_correction"


@dataclass(frozen=True)
class Correction:
    """What the points of `anchors` say of the rate at `features`. A `partition` was measured
    nowhere: it is as fast as its part of the GPU, less surely."""

    features: Features
    anchors: Field | None
    partition: bool = False

    @cached_property
    def factor(self) -> float:
        return self.anchors.factor(self.features) if self.anchors else 1.0

    @cached_property
    def interval(self) -> tuple[Factors, Basis]:
        """Of the corrected time: its ends as factors."""
        if self.anchors is None or self.partition:
            return UNMEASURED, "extrapolated"
        near = self.anchors.correction(self.features)
        return inverse((near.low, near.high)), "calibrated" if near.known else "extrapolated"

    def record(self, ledger: Ledger) -> dict[str, Quantity]:
        if self.anchors is None:
            return {NAME: constant(1.0, "1", "assumption: no such model was measured")}
        return {NAME: record_correction(ledger, "rate", self.anchors, self.features)}


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
