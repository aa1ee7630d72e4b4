"""A manifest's workload → `Demand`: every number with its source, every default named by its field.

All problems of a workload are found at once. `Demand.given` records `manifest: FIELD` for what was
written and `default: FIELD (reason)` for what was not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.catalog.model import EnginePin
from gpuplan.diagnostics import Diagnostic
from gpuplan.errors import Rejected
from gpuplan.manifest.v1 import Manifest, Overrides, Secret, Workload
from gpuplan.models.model import Diffusion, Model, Transformer
from gpuplan.plan.model import Engine, EnvironmentVariable, ModelRef, SecretRef, Speculative
from gpuplan.sizing.ask.contradictions import contradictions
from gpuplan.sizing.ask.defaults import defaults, precision_of
from gpuplan.sizing.ask.demand import Demand, Isolation, Kind, Method
from gpuplan.sizing.ask.fields import field_problems, lookup, written
from gpuplan.sizing.ask.messages import missing_field, unknown_override, wrong_engine
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.source import Origin

UNITS = {
    "load.requests_per_second.mean": "1/s",
    "load.requests_per_second.peak": "1/s",
    "load.idle": "s",
    "load.concurrency.think_time": "s",
    "speculative.draft_memory": "B",
    "slo.time_to_first_token": "s",
    "slo.time_per_output_token": "s",
    "slo.request_latency": "s",
    "slo.tokens_per_second": "1/s",
    "slo.finish_within": "s",
    "checkpoint.interval": "s",
    "dataset.size": "B",
    "dataset.rate": "B/s",
    "deadline": "s",
    "growth.horizon": "s",
    "notebook.gpu_memory": "B",
    "overrides.memory_per_gpu": "B",
    "overrides.shared_memory": "B",
    "overrides.model_storage": "B",
    "overrides.checkpoint_storage": "B",
    "overrides.home_storage": "B",
}


def demand(
    manifest: Manifest, index: int, model: Model | None, engine: EnginePin, document: str
) -> Demand:
    """Workload `index` of `manifest`, resolved. Raises `Rejected` with every problem it has."""
    workload = manifest.workloads[index]
    at = Origin(document, ("workloads", index))
    kind = kind_of(workload, model)
    problems = [*_model_problems(workload, model, at), *field_problems(workload, kind, at)]
    problems += _engine_problems(workload, kind, model, engine, at)
    given = _written_numbers(workload)
    problems += contradictions(workload, kind, model, given, at)
    problems += _override_problems(workload, manifest.platform.gpus, at)
    if problems:
        raise Rejected(problems)
    usual = defaults(kind, model, given, workload)
    replaced = {f: q for f, q in usual.items() if f in given and f.startswith("overrides.")}
    given = usual | given
    training = workload.training
    return Demand(
        name=workload.name,
        kind=kind,
        task=workload.task,
        tenant=(workload.tenancy and workload.tenancy.team) or manifest.name,
        description=workload.description,
        model=model,
        model_ref=_model_ref(workload, model),
        precision=precision_of(kind, model, workload),
        engine=_engine(engine),
        command=tuple(workload.command or ()),
        environment=tuple(
            EnvironmentVariable(name=n, value=v) for n, v in sorted(workload.environment.items())
        ),
        secrets=tuple(_secret(n, s) for n, s in sorted(workload.secrets.items())),
        given=given,
        replaced=replaced,
        method=_method(workload) if kind == "training" else None,
        optimizer=(training and training.optimizer) or ("adamw" if kind == "training" else None),
        recompute=training.recompute if training else None,
        sharding=training.sharding if training else None,
        speculative=_speculative(workload),
        dataset=workload.dataset.name if workload.dataset else None,
        image_size=_image_size(workload),
        isolation=_isolation(workload, kind),
        priority=workload.priority or "normal",
        preemptible=bool(workload.preemptible),
        overrides=workload.overrides or Overrides(),
        renamed_from=tuple(workload.renamed_from),
        origin=at,
    )


def kind_of(workload: Workload, model: Model | None) -> Kind:
    """What is sized; where the model is unknown, the load tells images from tokens."""
    if workload.task == "notebook":
        return "notebook"
    if workload.task in ("training", "finetuning"):
        return "training"
    images = isinstance(model, Diffusion) or (
        model is None and workload.load is not None and workload.load.images is not None
    )
    if workload.task == "batch":
        return "image batch" if images else "batch"
    return "image service" if images else "serving"


def _model_problems(workload: Workload, model: Model | None, at: Origin) -> Iterator[Diagnostic]:
    if model is None and workload.task != "notebook":
        yield missing_field("model", workload.task, at, "`gpuplan catalog list models` shows all")


def _engine_problems(
    workload: Workload, kind: Kind, model: Model | None, engine: EnginePin, at: Origin
) -> Iterator[Diagnostic]:
    if kind == "training" and isinstance(model, Diffusion):
        return  # no engine is right: `contradictions` says so
    wanted = "image" if kind in ("image service", "image batch") else workload.task
    if wanted not in engine.tasks:
        origin = at.child("engine") if workload.engine else at.child("task")
        yield wrong_engine(engine.name, wanted, engine.tasks, origin)


def _override_problems(
    workload: Workload, gpus: Sequence[str] | None, at: Origin
) -> Iterator[Diagnostic]:
    """A GPU type that an override asks for and the platform leaves out."""
    gpu = workload.overrides.gpu if workload.overrides else None
    if gpu is not None and gpus is not None and gpu not in gpus:
        origin = at.child("overrides", "gpu")
        yield unknown_override("overrides.gpu", gpu, tuple(gpus), origin)


def _written_numbers(workload: Workload) -> dict[str, Quantity]:
    """Every number that stands in the workload, by field. A size in pixels is their product."""
    numbers: dict[str, Quantity] = {}
    for field in written(workload):
        value = lookup(workload, field)
        if isinstance(value, tuple):
            value = value[0] * value[1]
        if isinstance(value, int | float) and not isinstance(value, bool):
            source = f"manifest: workloads.{workload.name}.{field}"
            numbers[field] = Quantity(float(value), UNITS.get(field, "1"), source)
    return numbers


def _model_ref(workload: Workload, model: Model | None) -> ModelRef | None:
    if model is None:
        return None
    active = model.active_parameters if isinstance(model, Transformer) else model.parameters
    return ModelRef(
        identifier=model.identifier,
        revision=(workload.model and workload.model.revision) or model.revision,
        architecture=model.architecture,
        parameters=model.parameters,
        active_parameters=active,
        source=model.source,
        checkpoint_precision=model.checkpoint_precision if isinstance(model, Transformer) else None,
    )


def _engine(pin: EnginePin) -> Engine:
    return Engine(
        name=pin.name, version=pin.version, image=pin.image, digest=pin.digest, source=pin.source
    )


def _secret(name: str, secret: Secret) -> SecretRef:
    if secret.config is not None:
        return SecretRef(environment=name, store="config", name=secret.config, key=name)
    assert secret.secret is not None
    return SecretRef(environment=name, store="secret", name=secret.secret, key=secret.key or name)


def _speculative(workload: Workload) -> Speculative | None:
    """What the engine is told; None where the manifest does not name the method."""
    drafts = workload.speculative
    if drafts is None or drafts.method is None:
        return None
    return Speculative(method=drafts.method, model=drafts.model, tokens=drafts.draft_tokens)


def _method(workload: Workload) -> Method:
    lora = workload.training.lora if workload.training else None
    if lora:
        return "qlora" if lora.quantized else "lora"
    return "full" if workload.task == "finetuning" else "pretraining"


def _image_size(workload: Workload) -> tuple[int, int] | None:
    """The largest image that is asked for."""
    images = workload.load.images if workload.load else None
    return None if images is None else images.p95 or images.mean


def _isolation(workload: Workload, kind: Kind) -> Isolation:
    """Whole GPUs, but for notebooks, which share them unless told otherwise."""
    if workload.tenancy and workload.tenancy.isolation:
        return workload.tenancy.isolation
    return "shared" if kind == "notebook" else "gpu"
