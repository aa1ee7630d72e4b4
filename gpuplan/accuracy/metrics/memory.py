"""Memory points: peaks of generation in libraries, of image pipelines."""

from __future__ import annotations

import math

from gpuplan.accuracy.data.memory import DIFFUSION
from gpuplan.accuracy.points import memory_names as names
from gpuplan.accuracy.points.points import Case
from gpuplan.accuracy.protocols.body import body, diffusion_bytes, untied
from gpuplan.accuracy.protocols.generate import Generation, generated
from gpuplan.accuracy.reckon import Prior, Reckoned
from gpuplan.models.identity import identity
from gpuplan.models.model import Diffusion, Transformer
from gpuplan.sizing.calibration.anchors import Term

SHORT = 50.0  # tokens of litgpt's prompt and of its answer
PROMPT_OFFSET = 256.0
ENDS = (0.08, 1.0)  # what does not fit fails: none of the public points lies above its interval
GENERATE = (
    ("engine",),
    ("engine", "form"),
    ("engine", "model"),
    ("cell",),
)


def _generate(quantity: str, *, amplitude: float, near: float, noise: float) -> Prior:
    return Prior(
        quantity=quantity,
        terms=(
            *(Term(amplitude=amplitude, same=same) for same in GENERATE),
            Term(amplitude=near, same=("cell",), scales=(("prompt", 2.0), ("batch", 2.0))),
        ),
        noise=noise,
        ends=ENDS,
        least=1.0,
        reaches=((("cell",), True), (("engine", "form"), True), (("engine",), True), ((), False)),
    )


# Several GPUs, quantized caches and readings of 2023 scatter more.
PRIORS = {
    prior.quantity: prior
    for prior in (
        _generate("memory_generate", amplitude=0.004, near=0.006, noise=0.006),
        _generate("memory_generate_loose", amplitude=0.015, near=0.03, noise=0.035),
    )
}


def generation(case: Case) -> Reckoned | str:
    """Peak of all GPUs, in the row's unit."""
    model = case.model
    if isinstance(model, Diffusion):
        return _pipeline(case, model)
    if not isinstance(model, Transformer):
        return "no language model and no image pipeline"
    library = names.library(case.row["engine"])
    if library is None:
        return f"the memory of '{case.row['engine']}' is not modelled"
    short = library == "litgpt"
    run = Generation(
        engine=library,
        form=names.form(case.row["precision"]),
        prompt=names.number(case, "input_len", SHORT if short else 0.0),
        output=names.number(case, "output_len", SHORT if short else 0.0),
        batch=case.number("batch", 1.0),
        gpus=int(case.number("n_gpus", 1.0)),
        cache_bytes=1.06 if "int8kv" in case.row["method"] else 2.0,
    )
    shape = untied(body(model)) if short else body(model)
    value = generated(shape, run) / in_bytes(case)
    loose = run.gpus > 1 or "2023" in library or short
    return Reckoned(
        value=value,
        quantity="memory_generate_loose" if loose else "memory_generate",
        features=_places(case, model)
        | {
            "engine": library,
            "form": run.form,
            "cell": f"{library} {run.form} {identity(model)} {run.cache_bytes}",
            "prompt": math.log2(run.prompt + PROMPT_OFFSET),
            "batch": math.log2(run.batch),
        },
    )


def in_bytes(case: Case) -> int:
    """The row's unit."""
    return 2**30 if names.gibibytes(case) else 10**9


def _places(case: Case, model: Transformer | Diffusion) -> dict[str, str | float]:
    return {
        "model": identity(model),
        "gpu": case.gpu.identifier,
        "size": math.log2(model.parameters),
    }


def _pipeline(case: Case, model: Diffusion) -> Reckoned | str:
    """Every module of a diffusion pipeline resident, or the largest one alone."""
    form = names.form(case.row["precision"])
    offload = "low-vram" in case.row["method"] or "offload" in case.row["method"]
    own = DIFFUSION["half" if case.row["precision"] == "fp16" else "other"]
    value = diffusion_bytes(model, form, offload=offload) + own
    features: dict[str, str | float] = _places(case, model) | {
        "engine": case.row["engine"],
        "form": form,
        "cell": f"{case.row['engine']} {form} {identity(model)}",
        "prompt": 0.0,
        "batch": 0.0,
    }
    return Reckoned(
        value=value / in_bytes(case), quantity="memory_generate_loose", features=features
    )
