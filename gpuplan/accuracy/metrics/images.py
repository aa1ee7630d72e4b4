"""Image points of MLPerf Inference, SDXL in low precision: the planner's pipeline on each GPU."""

from __future__ import annotations

import re

from gpuplan.accuracy.data import images as measured
from gpuplan.accuracy.points.known import SDXL
from gpuplan.accuracy.points.points import Case
from gpuplan.accuracy.reckon import Prior, Reckoned
from gpuplan.models.model import Diffusion
from gpuplan.plan.model import Estimate
from gpuplan.sizing.calibration.anchors import Anchors, Features, Field, Term
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.evidence.intervals import estimate, inverse
from gpuplan.sizing.hardware.devices import whole
from gpuplan.sizing.hardware.efficiency import peak
from gpuplan.sizing.hardware.offers import GpuOffer
from gpuplan.sizing.physics.images.correction import THROUGHPUT, unet_features
from gpuplan.sizing.physics.images.denoising import Images, Runtime
from gpuplan.sizing.physics.images.pipeline import denoising

_RULES = "rules of MLPerf Inference: stable-diffusion-xl"
_PIXELS = Quantity(1024.0 * 1024, "1", _RULES)
IMAGES = Images(pixels=_PIXELS, largest_pixels=_PIXELS, denoising_steps=Quantity(20.0, "1", _RULES))
NEWER = (10, 8)  # TensorRT's release with faster kernels for SDXL
PRIOR = Prior(
    quantity=THROUGHPUT,
    terms=(
        Term(amplitude=0.08, same=("architecture",)),
        Term(amplitude=0.16, same=("gpu",)),
        Term(amplitude=0.05, same=("gpu", "scenario")),
        Term(amplitude=0.03, same=("form", "scenario")),
        Term(amplitude=0.03, same=("gpu", "release")),
        Term(amplitude=0.07, same=("gpu", "engine")),
        Term(amplitude=0.15, same=("gpu", "power")),
        Term(amplitude=0.05, same=("own",)),
        Term(amplitude=0.03, same=("gpu", "scenario", "submitter")),
    ),
    noise=0.016,
    reaches=((("gpu", "scenario", "engine", "power"), True), (("gpu",), True), ((), False)),
    least=0.9,
)
PRIORS = {PRIOR.quantity: PRIOR}


def samples(case: Case) -> Reckoned | str:
    """Images per second of all GPUs: offline, or what the server scenario's latency allows."""
    scenario = "server" if "server" in case.metric else "offline"
    model = case.model
    if not isinstance(model, Diffusion) or model.identifier != SDXL:
        return "samples of another model than SDXL"
    precision = "fp8" if case.gpu.peak_fp8 else "int8"
    if peak(case.gpu, precision) is None:
        return f"no fp8 or int8 peak of {case.gpu.identifier} is known"
    if not re.search(r"fp8|int8|fp4", case.row["precision"]):
        return f"SDXL in {case.row['precision']} is not planned"
    place = features(case, scenario)
    device = whole(GpuOffer(gpu=case.gpu, gpus_per_node=1))
    runtime = Runtime(device=device, precision=precision, engine=str(place["engine"]))
    pipeline = denoising(model.denoiser, runtime, IMAGES, Anchors(), model.source)
    scale = case.number("n_gpus", 1) * _scenario(place)
    values = pipeline.at(1)

    def planned(field: Field) -> Estimate:
        near = pipeline.near(field, place)
        factors, basis = near.corrected.interval
        return estimate(scale / near.at(1)["batch_seconds"], inverse(factors), basis)

    return Reckoned(
        value=scale / values["formula_seconds"],
        quantity=PRIOR.quantity,
        features=place,
        best=case.number("n_gpus", 1) / values["least_seconds"],
        sense="rate",
        planned=planned,
    )


def _scenario(place: Features) -> float:
    """The rate relative to what a plan assumes: offline, the older release, full power."""
    part = measured.RELEASE if place["release"] == "newer" else 1.0
    part *= measured.POWER_SAVING if place["power"] == "saving" else 1.0
    return part * (measured.SERVER[str(place["form"])] if place["scenario"] == "server" else 1.0)


def features(case: Case, scenario: str) -> Features:
    row = case.row
    name = (row["engine"].split(maxsplit=1) or ["unnamed"])[0]
    engine = "tensorrt" if "tensorrt" in row["engine"].lower() else name
    release = re.search(r"TensorRT (\d+)\.(\d+)", row["engine"])
    number = (int(release[1]), int(release[2])) if release else (0, 0)
    submitter = re.search(r"(?:closed|open) (\S+)", row["notes"])
    return unet_features(
        case.gpu,
        scenario=scenario,
        engine=engine,
        newer=engine == "tensorrt" and number >= NEWER,
        saving="maxq" in row.get("locator", "").lower(),
        submitter=submitter[1] if submitter else "",
    )
