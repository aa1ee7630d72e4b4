"""How measured points correct the speed of a pipeline, and what sets one apart among them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from gpuplan.catalog.model import Gpu
from gpuplan.models.model import Denoiser, Unet
from gpuplan.plan.model import Basis
from gpuplan.sizing.calibration.anchors import Anchors, Features, Field
from gpuplan.sizing.calibration.corrections import record_correction
from gpuplan.sizing.data import images as measured
from gpuplan.sizing.evidence.formula import Ledger, Quantity, constant
from gpuplan.sizing.evidence.intervals import Factors, inverse
from gpuplan.sizing.evidence.sheet import sheet
from gpuplan.sizing.physics.images.denoising import Runtime, is_low

LATENCY = "denoising_latency"
THROUGHPUT = "image_throughput"
BY_TIME = sheet("""
    batch_seconds: s = max(least_seconds, formula_seconds * time_correction)
        # a batch, as the measured times near it correct it
""")
BY_RATE = sheet("""
    batch_seconds: s = max(least_seconds, formula_seconds / rate_correction)
        # a batch, as the measured rates near it correct it
""")


@dataclass(frozen=True)
class Correction:
    """What the points of `anchors` say of a "time" or "rate" at `features`; nothing, where no kind
    of pipeline like it was measured. A `partition` was measured nowhere: it is as fast as its part
    of the GPU, less surely."""

    name: str
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
            return measured.UNMEASURED, "extrapolated"
        near = self.anchors.correction(self.features)
        factors = (near.low, near.high)
        basis: Basis = "calibrated" if near.known else "extrapolated"
        return factors if self.name == "time" else inverse(factors), basis

    @property
    def input(self) -> dict[str, float]:
        return {f"{self.name}_correction": self.factor}

    def record(self, ledger: Ledger) -> dict[str, Quantity]:
        """The same as evidence."""
        name = f"{self.name}_correction"
        if self.anchors is None:
            return {name: constant(1.0, "1", "no pipeline of its kind and precision was measured")}
        return {name: record_correction(ledger, self.name, self.anchors, self.features)}


def correction(denoiser: Denoiser | Unet, runtime: Runtime, anchors: Anchors) -> Correction:
    """By the points of transformers in 16 bits and of UNets in 8 bits; others have none."""
    gpu, low = runtime.device.gpu, is_low(runtime.precision)
    partition = runtime.device.partition is not None
    if isinstance(denoiser, Denoiser):
        near = None if low else anchors(LATENCY)
        return Correction("time", denoiser_features(denoiser, gpu), near, partition)
    near = anchors(THROUGHPUT) if low else None
    return Correction("rate", unet_features(gpu, engine=runtime.engine), near, partition)


def denoiser_features(denoiser: Denoiser, gpu: Gpu, gpus: float = 0.0) -> Features:
    """`gpus`: the binary logarithm of their number."""
    return {"model": denoiser.network, "gpu": gpu.identifier, "gpus": gpus}


def unet_features(
    gpu: Gpu,
    *,
    engine: str,
    scenario: str = "offline",
    newer: bool = False,
    saving: bool = False,
    submitter: str = "",
) -> Features:
    """`newer`: TensorRT 10.8 or later; `saving`: tuned for work per watt."""
    return {
        "model": "stable-diffusion-xl",
        "gpu": gpu.identifier,
        "architecture": gpu.architecture,
        "form": form(gpu),
        "scenario": scenario,
        "engine": engine,
        "own": "" if engine == "tensorrt" else engine,
        "release": "newer" if newer else "older",
        "power": "saving" if saving else "full",
        "submitter": submitter,
    }


def form(gpu: Gpu) -> str:
    return "pcie" if gpu.is_card else "sxm"
