"""Image points of MLPerf Inference: SDXL, 20 steps with guidance, in low precision."""

from __future__ import annotations

import re

from gpuplan.accuracy.points.known import SDXL
from gpuplan.accuracy.points.points import Case
from gpuplan.accuracy.reckon import Prior, Reckoned
from gpuplan.models.model import Diffusion
from gpuplan.sizing.calibration.anchors import Features, Term
from gpuplan.sizing.data import images as fitted
from gpuplan.sizing.physics.images.speed import THROUGHPUT, unet_features, unet_part

STEPS = 20
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
)
PRIORS = {PRIOR.quantity: PRIOR}


def samples(case: Case) -> Reckoned | str:
    """Images per second of all GPUs: offline, or what the server scenario's latency allows."""
    scenario = "server" if "server" in case.metric else "offline"
    model, fact = case.model, case.gpu.peak_fp8 or case.gpu.peak_int8
    if not isinstance(model, Diffusion) or model.identifier != SDXL:
        return "samples of another model than SDXL"
    if fact is None:
        return f"no fp8 or int8 peak of {case.gpu.identifier} is known"
    if not re.search(r"fp8|int8|fp4", case.row["precision"]):
        return f"SDXL in {case.row['precision']} is not planned"
    flop = STEPS * model.passes_per_step * model.flop_per_step + model.flop_fixed
    best = case.number("n_gpus", 1) * fact.value / flop
    told = features(case, scenario)
    part = unet_part(case.gpu, fact.value)
    part *= fitted.UNET_RELEASE if told["release"] == "newer" else 1.0
    part *= fitted.POWER_SAVING if told["power"] == "saving" else 1.0
    part *= fitted.UNET_SERVER[str(told["form"])] if scenario == "server" else 1.0
    return Reckoned(
        value=best * part,
        quantity=PRIOR.quantity,
        features=told,
        best=best,
        sense="rate",
    )


def features(case: Case, scenario: str) -> Features:
    row = case.row
    name = (row["engine"].split(maxsplit=1) or ["unnamed"])[0]
    engine = "tensorrt" if "tensorrt" in row["engine"].lower() else name
    release = re.search(r"TensorRT (\d+)\.(\d+)", row["engine"])
    number = (int(release[1]), int(release[2])) if release else (0, 0)
    told = re.search(r"(?:closed|open) (\S+)", row["notes"])
    return unet_features(
        case.gpu,
        scenario=scenario,
        engine=engine,
        newer=engine == "tensorrt" and number >= NEWER,
        saving="maxq" in row.get("locator", "").lower(),
        submitter=told[1] if told else "",
    )
