"""How measured points correct the speed of a pipeline, and what sets one apart among them."""

from __future__ import annotations

from gpuplan.catalog.model import Gpu
from gpuplan.models.model import Denoiser, Unet
from gpuplan.sizing.calibration.anchors import Anchors, Features
from gpuplan.sizing.calibration.corrections import SteadyCorrection
from gpuplan.sizing.data.images import UNMEASURED
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


def correction(denoiser: Denoiser | Unet, runtime: Runtime, anchors: Anchors) -> SteadyCorrection:
    """By the points of transformers in 16 bits and of UNets in 8 bits; others have none."""
    gpu, low = runtime.device.gpu, is_low(runtime.precision)
    partition = runtime.device.partition is not None
    if isinstance(denoiser, Denoiser):
        near = None if low else anchors(LATENCY)
        return SteadyCorrection(
            "time", denoiser_features(denoiser, gpu), near, UNMEASURED, partition
        )
    near = anchors(THROUGHPUT) if low else None
    place = unet_features(gpu, engine=runtime.engine)
    return SteadyCorrection("rate", place, near, UNMEASURED, partition)


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
