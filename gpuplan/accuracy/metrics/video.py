"""Latency of an image or a video by a diffusion transformer, on GPUs with sequence parallelism."""

from __future__ import annotations

import math
import re

from gpuplan.accuracy.points.points import Case
from gpuplan.accuracy.reckon import Prior, Reckoned
from gpuplan.models.images.denoisers import Denoiser, find_denoiser
from gpuplan.sizing.calibration.anchors import Term
from gpuplan.sizing.physics.images.denoising import DENOISING, denoising_scope
from gpuplan.sizing.physics.images.speed import LATENCY, denoiser_features

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
PLANNED = ("bf16", "fp16")


def latency(case: Case) -> Reckoned | str:
    """Seconds of one image or video."""
    denoiser = find_denoiser(case.row["model"])
    if denoiser is None:
        return f"the dimensions of model '{case.row['model']}' are not known"
    size, steps = _size(case, denoiser), re.search(r"(\d+) ?steps?", case.row["output_len"])
    if isinstance(size, str):
        return size
    if steps is None:
        return "the number of denoising steps is not given"
    if case.row["precision"] not in PLANNED:
        return f"diffusion transformers in {case.row['precision']} are not planned"
    gpus = max(int(case.number("n_gpus", 1)), 1)
    scope = denoising_scope(denoiser, case.gpu, size, gpus)
    scope |= {"denoising_steps": float(steps[1]), "ring": float(_ring(case.row["notes"]))}
    if "compile" in case.row["engine"]:
        scope["elementwise_bytes"] = 0.0
    found = DENOISING(scope)
    return Reckoned(
        value=found["denoise_seconds"] * max(case.number("batch", 1), 1.0),
        quantity=PRIOR.quantity,
        features=denoiser_features(denoiser.identifier, case.gpu, math.log2(gpus)),
        best=found["least_seconds"],
    )


def _size(case: Case, denoiser: Denoiser) -> tuple[int, int, int] | str:
    """Width, height and frames, or which of them is not given."""
    text = case.row["input_len"] or case.row["seq_len"]
    area = re.match(r"(\d+)[x×](\d+)", text)
    square = re.match(r"(\d+)px", text)
    if area is None and square is None:
        return "the resolution is not given"
    told = area or square
    assert told is not None
    width, height = int(told[1]), int(told[told.lastindex or 1])
    frames = re.search(r"(\d+) ?f(?:rames)?\b", text) or re.search(
        r"(\d+)[ -]frames", case.row["notes"]
    )
    if denoiser.frame_stride and frames is None:
        return "the number of frames is not given"
    return width, height, int(frames[1]) if frames and denoiser.frame_stride else 1


def _ring(notes: str) -> int:
    """The degree of ring attention that notes tell."""
    told = re.search(r"ring[-_ =]?(?:degree)?[-_ =]?(\d+)", notes.lower())
    return int(told[1]) if told else 1
