"""Image points: SDXL as MLPerf Inference runs it offline, 20 steps in low precision."""

from __future__ import annotations

from gpuplan.accuracy.known import SDXL
from gpuplan.accuracy.points import Case
from gpuplan.models.model import Diffusion
from gpuplan.plan.model import Basis, Estimate
from gpuplan.sizing.data import images as fitted
from gpuplan.sizing.intervals import estimate, inverse

STEPS = 20


def offline(case: Case) -> Estimate | str:
    """Images per second of all GPUs."""
    model, low = case.model, case.gpu.peak_fp8
    if not isinstance(model, Diffusion) or model.identifier != SDXL:
        return "samples of another model than SDXL"
    if low is None:
        return f"the fp8 peak of {case.gpu.identifier} is not known"
    flop = STEPS * model.passes_per_step * model.flop_per_step + model.flop_fixed
    part = fitted.UNET_LOW.get(case.gpu.identifier, fitted.UNET_LOW_OTHER)
    rate = case.number("n_gpus", 1) * low.value * part / flop
    known = case.gpu.identifier in fitted.CALIBRATED_GPUS
    basis: Basis = "calibrated" if known else "extrapolated"
    return estimate(rate, inverse(fitted.INTERVALS[basis]), basis)
