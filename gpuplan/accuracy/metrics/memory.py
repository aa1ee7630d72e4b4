"""Memory points: peaks of generation and training, room for the cache, weights on a GPU."""

from __future__ import annotations

import math
import re

from gpuplan.accuracy.points import memory_names as names
from gpuplan.accuracy.points.points import Case
from gpuplan.accuracy.protocols.generate import Generation, generated
from gpuplan.accuracy.reckon import Prior, Reckoned
from gpuplan.models.identity import identity
from gpuplan.models.model import Diffusion, Transformer
from gpuplan.plan.model import Estimate
from gpuplan.sizing.calibration.anchors import Features, Term
from gpuplan.sizing.data.memory import DIFFUSION, POOL, POOL_FACTORS, WEIGHTS_FACTORS
from gpuplan.sizing.evidence.intervals import estimate
from gpuplan.sizing.memory.body import body, diffusion_bytes, stored_bytes, untied
from gpuplan.sizing.memory.finetune import Finetune, finetuned

SHORT = 50.0  # tokens of litgpt's prompt and of its answer
LONGEST = 1304.0  # tokens of Alpaca's longest sample
PROMPT_OFFSET = 256.0
ENDS = (0.08, 1.0)  # what does not fit fails: none of the public points lies above its interval
GENERATE = (
    ("engine",),
    ("engine", "form"),
    ("engine", "model"),
    ("cell",),
)
# How much more they may differ by the method, of which a table has few, and what is shared.
FINETUNE = ((2.0, ("framework", "method")), (1.0, ("framework", "model")), (1.0, ("cell",)))


def _generate(quantity: str, *, amplitude: float, near: float, noise: float) -> Prior:
    return Prior(
        quantity=quantity,
        terms=(
            *(Term(amplitude=amplitude, same=same) for same in GENERATE),
            Term(amplitude=near, same=("cell",), scales=(("prompt", 2.0), ("batch", 2.0))),
        ),
        noise=noise,
        ends=ENDS,
        reaches=((("cell",), True), (("engine", "form"), True), (("engine",), True), ((), False)),
    )


def _finetune(quantity: str, *, amplitude: float, noise: float) -> Prior:
    return Prior(
        quantity=quantity,
        terms=(
            *(Term(amplitude=amplitude * n, same=same) for n, same in FINETUNE),
            Term(amplitude=amplitude, same=("cell",), scales=(("length", 1.5), ("batch", 1.5))),
        ),
        noise=noise,
        ends=ENDS,
        reaches=(
            (("cell",), True),
            (("framework", "method"), True),
            (("framework",), True),
            ((), False),
        ),
    )


# Several GPUs, quantized caches and readings of 2023 scatter more; so do ms-swift, which reads what
# the allocator reserved, and torchtune, whose tables leave options out.
PRIORS = {
    prior.quantity: prior
    for prior in (
        _generate("memory_generate", amplitude=0.004, near=0.006, noise=0.006),
        _generate("memory_generate_loose", amplitude=0.015, near=0.03, noise=0.035),
        _finetune("memory_finetune", amplitude=0.02, noise=0.045),
        _finetune("memory_finetune_loose", amplitude=0.03, noise=0.08),
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


def training(case: Case) -> Reckoned | str:
    """Peak as the framework's table reports it: of all GPUs, or of the first."""
    model, framework = case.model, names.framework(case.row["engine"])
    if not isinstance(model, Transformer):
        return "no language model"
    if framework is None:
        return f"the memory of '{case.row['engine']}' is not modelled"
    run = finetune(case, framework)
    shape = untied(body(model)) if framework == "litgpt" else body(model)
    value = finetuned(shape, run) / in_bytes(case)
    kind = "q" + run.method if run.form != "bf16" else run.method
    kind += " embeddings" if run.embeddings_trained else ""
    features: Features = _places(case, model) | {
        "framework": framework,
        "method": kind,
        "cell": f"{framework} {kind} {run.gpus} {run.sharding} {run.recompute} {identity(model)}",
        "length": math.log2(run.length),
        "batch": math.log2(max(run.batch, 1.0)),
    }
    quantity = "memory_finetune_loose" if framework in ("swift", "torchtune") else "memory_finetune"
    return Reckoned(value=value, quantity=quantity, features=features)


def finetune(case: Case, framework: str) -> Finetune:
    """The run that a row describes."""
    how, tune = case.row["method"], framework == "torchtune"
    form = names.form(case.row["precision"])
    if framework == "trainer":
        form = "gptq-int4" if "q-lora" in how.lower() else "bf16"
    if tune and form == "nf4":
        form = "nf4-dq"  # torchtune's NF4 tensors have quantized scales
    return Finetune(
        framework=framework,
        method=names.method(how),
        form=form,
        length=_length(case, packed=not (tune and "baseline" in how.lower())),
        batch=case.number("batch", 1.0),
        gpus=int(case.number("n_gpus", 1.0)),
        sharding=names.sharding(case.row["sharding"]),
        recompute=names.tune_recomputes(case) if tune else case.row["recompute"] == "full",
        capacity_bytes=case.gpu.memory_bytes.value,
        rank=names.rank(how, 64.0 if framework == "trainer" else 8.0),
        targets=names.targets(how, framework),
        flash=framework != "swift" or not names.stores_scores(case),
        embeddings_trained=names.embeddings_trained(how),
        fp32_head=framework == "swift" and "bnb" in case.row["precision"],
        options=names.tune_options(case) if tune else frozenset(),
    )


def _length(case: Case, *, packed: bool) -> float:
    """Tokens of a sample; of Alpaca's longest one where none are given, or where samples are not
    packed."""
    told = names.number(case, "seq_len", LONGEST) or LONGEST
    return told if packed else min(told, LONGEST)


def cache_tokens(case: Case) -> Estimate | str:
    """Tokens that an engine's pool holds beside the weights."""
    if not isinstance(case.model, Transformer):
        return "no language model"
    engine = case.row["engine"].lower()
    own = next((POOL[name] for name in POOL if name in engine), None)
    if own is None:
        return f"the pool of '{case.row['engine']}' is not modelled"
    told = re.search(r"(?:fraction|utilization)[ =]*(0?\.\d+)", engine)
    part = float(told[1]) if told else own["part"]
    shape, ranks = body(case.model), case.number("tp", 1.0) * case.number("pp", 1.0)
    weights = stored_bytes(shape, names.form(case.row["precision"])) / ranks
    pool = part * case.gpu.memory_bytes.value - weights - own["beside"]
    if pool <= 0:
        return "the weights leave no room for a cache"
    each = 1.0 if "kv fp8" in case.row["notes"].lower() else 2.0
    shards = 1.0 if case.model.latent else min(case.number("tp", 1.0), case.model.kv_heads)
    token = shape.cached * each / shards / case.number("pp", 1.0)
    return estimate(pool / token, POOL_FACTORS, "extrapolated")


def weights(case: Case) -> Estimate | str:
    """Weights on one GPU, or on all where the unit does not say "per GPU"."""
    if not isinstance(case.model, Transformer):
        return "no language model"
    shape, form = body(case.model), names.form(case.row["precision"])
    found = stored_bytes(shape, form)
    if form == "fp8" and re.search(r"attention.*bf16", case.row["notes"]):
        found += shape.layers * (2 * shape.hidden * (shape.query + shape.key))
    ranks = case.number("tp", 1.0) * case.number("pp", 1.0)
    part = ranks if "per GPU" in case.row["unit"] else 1.0
    return estimate(found / part / in_bytes(case), WEIGHTS_FACTORS, "calibrated")
