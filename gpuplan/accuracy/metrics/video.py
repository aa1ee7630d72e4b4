"""Latency of an image or a video by a diffusion transformer: the planner's pipeline on one GPU, and
what it becomes on several that divide the tokens among them, which plans do not."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from gpuplan.accuracy.data.images import EXCHANGE_SHARE, RING_STEP_SECONDS
from gpuplan.accuracy.points.denoisers import SOURCE, find_denoiser
from gpuplan.accuracy.points.known import PRECISIONS
from gpuplan.accuracy.points.points import Case
from gpuplan.accuracy.reckon import Prior, Reckoned
from gpuplan.models.model import Denoiser
from gpuplan.plan.model import Estimate
from gpuplan.sizing.calibration.anchors import Anchors, Field, Term
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.intervals import estimate
from gpuplan.sizing.evidence.sheet import Scope, sheet
from gpuplan.sizing.hardware.devices import quantity, whole
from gpuplan.sizing.hardware.efficiency import unsupported
from gpuplan.sizing.hardware.offers import GpuOffer
from gpuplan.sizing.physics.images.correction import BY_TIME, LATENCY, denoiser_features
from gpuplan.sizing.physics.images.denoising import TRANSFORMER, Images, Runtime
from gpuplan.sizing.physics.images.pipeline import Pipeline, denoising

DIVIDED = (
    TRANSFORMER
    + sheet("""
    exchanged_bytes: B = 4 * bf16_bytes * tokens / gpus * width
        # a GPU's part of the queries, keys, values and outputs of a layer
    exchange_seconds: s = passes * layers * (exchanged_bytes * (gpus - 1) / gpus / exchange_rate
        + (ring - 1) * ring_step_seconds)
        # they go to all GPUs (Ulysses), or keys and values around the ring
    formula_seconds: s = start_seconds + batch
        * (denoising_steps * (step_seconds / gpus + exchange_seconds) + decode_seconds)
        # text encoders, decoder and copies run on one GPU
    least_seconds: s = batch * denoising_steps * (linear_flop + attention_flop) / (peak * gpus)
        # at the dense peak
""")
    + BY_TIME
)
PRIOR = Prior(
    quantity=LATENCY,
    terms=(
        Term(amplitude=0.12, same=("gpu",)),
        Term(amplitude=0.10, same=("model",)),
        Term(amplitude=0.10, same=("model", "gpu")),
        Term(amplitude=0.05, same=("model", "gpu"), scales=(("gpus", 1.5),)),
    ),
    noise=0.03,
    reaches=((("model", "gpu"), True), (("gpu",), False), ((), False)),
)
PRIORS = {PRIOR.quantity: PRIOR}


def latency(case: Case) -> Reckoned | Estimate | str:
    """Seconds of one image or video."""
    denoiser = find_denoiser(case.row["model"])
    if denoiser is None:
        return f"the dimensions of model '{case.row['model']}' are not known"
    size, steps = _size(case, denoiser), re.search(r"(\d+) ?steps?", case.row["output_len"])
    if isinstance(size, str):
        return size
    if steps is None:
        return "the number of denoising steps is not given"
    precision = PRECISIONS.get(case.row["precision"])
    if precision is None or unsupported(case.gpu, precision):
        return f"diffusion in {case.row['precision']} is not planned on {case.gpu.identifier}"
    pipeline = _pipeline(case, denoiser, precision, size, float(steps[1]))
    batch = max(int(case.number("batch", 1)), 1)
    features = denoiser_features(denoiser, case.gpu, math.log2(_gpus(case)))

    def planned(field: Field) -> Estimate:
        near = pipeline.near(field, features)
        return estimate(near.at(batch)["batch_seconds"], *near.corrected.interval)

    values, corrected = pipeline.at(batch), pipeline.corrected
    alone = _gpus(case) == 1
    if corrected.anchors is None and alone:
        return estimate(values["batch_seconds"], *corrected.interval)
    return Reckoned(
        value=values["formula_seconds"],
        quantity=PRIOR.quantity,
        features=features,
        best=values["least_seconds"],
        planned=planned if alone else None,
    )


def _pipeline(
    case: Case, denoiser: Denoiser, precision: str, size: tuple[int, int, int], steps: float
) -> Pipeline:
    width, height, frames = size
    pixels = _measured(width * height * frames)
    images = Images(
        pixels=pixels, largest_pixels=pixels, denoising_steps=_measured(steps), frames=frames
    )
    device = whole(GpuOffer(gpu=case.gpu, gpus_per_node=_gpus(case)))
    engine = "torch.compile" if "compile" in case.row["engine"] else case.row["engine"].lower()
    runtime = Runtime(device=device, precision=precision, engine=engine)
    pipeline = denoising(denoiser, runtime, images, Anchors(), SOURCE)
    if _gpus(case) == 1:
        return pipeline
    return replace(pipeline, sheet=DIVIDED, scope=pipeline.scope | _division(case))


def _division(case: Case) -> Scope:
    link, cited = quantity(case.gpu.link_bytes_per_s), "fitted by bench/fitting/diffusion.py"
    return {
        "gpus": _measured(_gpus(case)),
        "ring": _measured(_ring(case.row["notes"])),
        "exchange_rate": replace(link, value=link.value * EXCHANGE_SHARE),
        "ring_step_seconds": constant(RING_STEP_SECONDS, "s", cited),
    }


def _measured(value: float) -> Quantity:
    return Quantity(float(value), "1", "measurement")


def _gpus(case: Case) -> int:
    return max(int(case.number("n_gpus", 1)), 1)


def _size(case: Case, denoiser: Denoiser) -> tuple[int, int, int] | str:
    """Width, height and frames, or which of them is not given."""
    text = case.row["input_len"] or case.row["seq_len"]
    area = re.match(r"(\d+)[x×](\d+)", text)
    square = re.match(r"(\d+)px", text)
    if area is None and square is None:
        return "the resolution is not given"
    sides = area or square
    assert sides is not None
    width, height = int(sides[1]), int(sides[sides.lastindex or 1])
    frames = re.search(r"(\d+) ?f(?:rames)?\b", text) or re.search(
        r"(\d+)[ -]frames", case.row["notes"]
    )
    if denoiser.frame_stride and frames is None:
        return "the number of frames is not given"
    return width, height, int(frames[1]) if frames and denoiser.frame_stride else 1


def _ring(notes: str) -> int:
    """The degree of ring attention that notes tell."""
    degree = re.search(r"ring[-_ =]?(?:degree)?[-_ =]?(\d+)", notes.lower())
    return int(degree[1]) if degree else 1
