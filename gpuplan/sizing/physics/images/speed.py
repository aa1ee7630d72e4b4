"""How measured points correct the speed of a pipeline: what sets one apart among them."""

from __future__ import annotations

from gpuplan.catalog.model import Gpu
from gpuplan.models.images.denoisers import find_denoiser
from gpuplan.models.model import Diffusion, DiffusionModule
from gpuplan.plan.model import Basis, Shortfall
from gpuplan.plan.records import record
from gpuplan.sizing.calibration.anchors import Anchors, Features
from gpuplan.sizing.data import images as measured
from gpuplan.sizing.evidence.intervals import Factors, inverse
from gpuplan.sizing.hardware.measured import fitted, lacking
from gpuplan.sizing.physics.images.denoising import share

LATENCY = "denoising_latency"
THROUGHPUT = "image_throughput"


@record
class Correction:
    """`factor` on the formulas' seconds, and the 90 % interval around the product."""

    factor: float
    factors: Factors
    basis: Basis


def correction(model: Diffusion, kind: str, gpu: Gpu, *, low: bool) -> Correction:
    """From the bundled points of transformers in bf16 and of UNets in fp8 or int8; others have none
    near them."""
    if kind == "transformer" and not low:
        known = find_denoiser(model.identifier)
        name = known.identifier if known else model.identifier
        near = Anchors()(LATENCY).correction(denoiser_features(name, gpu, 0.0))
        factor, factors = near.factor, (near.low, near.high)
    elif kind == "unet" and low:
        near = Anchors()(THROUGHPUT).correction(unet_features(gpu))
        factor, factors = 1 / near.factor, inverse((near.low, near.high))
    else:
        return Correction(
            factor=1.0, factors=measured.INTERVALS["extrapolated"], basis="extrapolated"
        )
    basis: Basis = "calibrated" if near.known else "extrapolated"
    return Correction(factor=factor, factors=factors, basis=basis)


def denoisers(model: Diffusion) -> list[DiffusionModule]:
    """The modules that run at each step."""
    return [m for m in model.modules if m.kind in ("transformer", "unet")]


def is_low(precision: str) -> bool:
    """Whether a pipeline computes in 8 bits or fewer."""
    return precision not in ("bf16", "fp16")


def unmeasured(model: Diffusion, gpu: Gpu, precision: str) -> tuple[Shortfall, ...]:
    """The gate that a GPU fails for which no measured pipelines of the kind stand. What UNets reach
    in 16 bits was measured on none: it is one number."""
    if denoisers(model)[0].kind == "transformer":
        table = measured.DENOISER_MATMUL
    elif is_low(precision):
        table = measured.UNET_LOW
    else:
        return ()
    return () if fitted(gpu, "images", table) else lacking("images")


def unet_part(gpu: Gpu, peak: float) -> float:
    """Part of the low-precision `peak` that SDXL reaches on a GPU; small cards are held by their
    power before it. Raises `NotMeasured`."""
    part = share(measured.UNET_LOW, gpu)
    a_joule = measured.UNET_PER_JOULE.get(gpu.architecture)
    if gpu.identifier in measured.UNET_LOW or a_joule is None:
        return part
    return min(part, a_joule * gpu.watts.value * measured.SDXL_FLOP / peak)


def denoiser_features(model: str, gpu: Gpu, gpus: float) -> Features:
    """`gpus`: the binary logarithm of their number."""
    return {"model": model, "gpu": gpu.identifier, "gpus": gpus}


def unet_features(
    gpu: Gpu,
    *,
    scenario: str = "offline",
    engine: str = "tensorrt",
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
