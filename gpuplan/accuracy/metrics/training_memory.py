"""Peak memory of training runs: the trainer's as the planner's `Run`, others' by protocols."""

from __future__ import annotations

import math

from gpuplan.accuracy.metrics.memory import ENDS, in_bytes
from gpuplan.accuracy.metrics.steps import run_of
from gpuplan.accuracy.points import memory_names as names
from gpuplan.accuracy.points import settings
from gpuplan.accuracy.points.points import Case
from gpuplan.accuracy.points.settings import Setting, method
from gpuplan.accuracy.protocols.body import BITS, body, untied
from gpuplan.accuracy.protocols.finetune import Finetune, finetuned
from gpuplan.accuracy.protocols.pretrain import Pretraining, pretrained
from gpuplan.accuracy.reckon import Prior, Reckoned
from gpuplan.models.identity import identity
from gpuplan.models.model import Transformer
from gpuplan.plan.model import Estimate
from gpuplan.sizing.calibration.anchors import Anchors, Features, Field, Term
from gpuplan.sizing.calibration.trained import MEMORY
from gpuplan.sizing.evidence.formula import constant
from gpuplan.sizing.evidence.intervals import estimate
from gpuplan.sizing.physics.training.division import Division, Recompute, Sharding
from gpuplan.sizing.physics.training.run import Run
from gpuplan.sizing.physics.training.speed import MIDDLE

LONGEST = 1304.0  # tokens of Alpaca's longest sample
# How much more they may differ by the method, of which a table has few, and what is shared.
SHARED = ((2.0, ("framework", "method")), (1.0, ("framework", "model")), (1.0, ("cell",)))


def _prior(quantity: str, *, amplitude: float, noise: float) -> Prior:
    return Prior(
        quantity=quantity,
        terms=(
            *(Term(amplitude=amplitude * n, same=same) for n, same in SHARED),
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


# ms-swift reads what the allocator reserved, torchtune's tables leave options out: both scatter.
PRIORS = {
    prior.quantity: prior
    for prior in (
        _prior(MEMORY, amplitude=0.02, noise=0.045),
        _prior("memory_finetune", amplitude=0.02, noise=0.045),
        _prior("memory_finetune_loose", amplitude=0.03, noise=0.08),
    )
}


def training(case: Case) -> Reckoned | str:
    """Peak as the framework's table reports it: of all GPUs, or of the first."""
    model, framework = case.model, names.framework(case.row["engine"])
    if not isinstance(model, Transformer):
        return "no language model"
    if framework is None:
        return f"the memory of '{case.row['engine']}' is not modelled"
    if framework == "trainer":
        return _planned(case, trainer(case))
    if framework == settings.TITAN:
        return _pretraining(case, model)
    run = finetune(case, framework)
    shape = untied(body(model)) if framework == "litgpt" else body(model)
    kind = "q" + run.method if run.form != "bf16" else run.method
    kind += " embeddings" if run.embeddings_trained else ""
    name = identity(model)
    features: Features = {
        "model": name,
        "gpu": case.gpu.identifier,
        "size": math.log2(model.parameters),
        "framework": framework,
        "method": kind,
        "cell": f"{framework} {kind} {run.gpus} {run.sharding} {run.recompute} {name}",
        "length": math.log2(run.length),
        "batch": math.log2(max(run.batch, 1.0)),
    }
    quantity = "memory_finetune_loose" if framework in ("swift", "torchtune") else "memory_finetune"
    value = finetuned(shape, run) / in_bytes(case)
    return Reckoned(value=value, quantity=quantity, features=features)


def _pretraining(case: Case, model: Transformer) -> Reckoned | str:
    """torchtitan's: all weights train."""
    if names.method(case.row["method"]) != "full":
        return "torchtitan trains all weights"
    tensor, context, pipeline = (max(1, int(case.number(c, 1))) for c in ("tp", "cp", "pp"))
    run = Pretraining(
        length=_length(case, packed=True),
        batch=case.number("batch", 1.0),
        gpus=int(case.number("n_gpus", 1.0)),
        recompute=case.row["recompute"] == "full",
        eager=settings.eager(case, settings.TITAN),
        tensor=tensor,
        context=context,
        pipeline=pipeline,
    )
    name = identity(model)
    features: Features = {
        "model": name,
        "gpu": case.gpu.identifier,
        "size": math.log2(model.parameters),
        "framework": settings.TITAN,
        "method": "full",
        "cell": f"{settings.TITAN} {run.gpus} {tensor} {context} {pipeline} {run.recompute} {name}",
        "length": math.log2(run.length),
        "batch": math.log2(max(run.batch, 1.0)),
    }
    value = pretrained(body(model), run) / in_bytes(case)
    return Reckoned(value=value, quantity="memory_finetune_loose", features=features)


def _planned(case: Case, run: Run) -> Reckoned:
    """Of all GPUs."""
    micro = max(1, int(case.number("batch", 1.0)))
    unit = in_bytes(case) / run.division.gpus

    def planned(field: Field) -> Estimate:
        corrected = run.anchored(Anchors({MEMORY: field}))
        return estimate(corrected.needs(micro)["gpu_memory"] / unit, *corrected.memory_interval)

    return Reckoned(
        value=run.modelled(micro)["gpu_memory"] / unit,
        quantity=MEMORY,
        features=run.memory_features,
        planned=planned,
    )


def trainer(case: Case) -> Run:
    """The run of a row of the trainer. Its full runs take DeepSpeed's ZeRO-3, adapters nothing
    where the table does not say so; quantized weights are GPTQ's."""
    assert isinstance(case.model, Transformer)
    gpus, how = int(case.number("n_gpus", 1.0)), method(case, "bf16")
    sharding: Sharding = "none"
    if gpus > 1 and (not how.adapter or names.sharding(case.row["sharding"]) == "zero3"):
        sharding = "zero3"
    micro = max(1, int(case.number("batch", 1.0)))
    recompute: Recompute = "full" if case.row["recompute"] == "full" else "none"
    run = run_of(
        case.model,
        case.gpu,
        Setting(
            framework="trainer",
            recipe=how.name,
            release=MIDDLE,
            micro=micro,
            length=int(_length(case, packed=True)),
            batch=float(micro * gpus),
            division=Division(gpus, sharding, recompute),
            method=how,
        ),
    )
    if not how.quantized:
        return run
    frozen = constant(BITS["gptq-int4"] / 8, "B", "a frozen weight, GPTQ")
    return Run(run.prepared.given({"frozen_bytes_each": frozen}), run.division)


def finetune(case: Case, framework: str) -> Finetune:
    """The run that a row describes."""
    how, tune = case.row["method"], framework == "torchtune"
    form = names.form(case.row["precision"])
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
        rank=names.rank(how, 8.0),
        targets=names.targets(how, framework),
        flash=framework != "swift" or not names.stores_scores(case),
        embeddings_trained=names.embeddings_trained(how),
        fp32_head=framework == "swift" and "bnb" in case.row["precision"],
        options=names.tune_options(case) if tune else frozenset(),
    )


def _length(case: Case, *, packed: bool) -> float:
    """Tokens of a sample; of Alpaca's longest one where none are given, or where samples are not
    packed."""
    stated = names.number(case, "seq_len", LONGEST) or LONGEST
    return stated if packed else min(stated, LONGEST)
