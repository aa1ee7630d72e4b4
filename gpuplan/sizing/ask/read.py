"""A manifest's workload → its `Demand`: every number with its source, every default named by its
field. All problems of a workload are found at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gpuplan.catalog.model import EnginePin
from gpuplan.diagnostics import Diagnostic
from gpuplan.errors import Rejected
from gpuplan.manifest.parts import Secret
from gpuplan.manifest.v1 import Manifest, Workload
from gpuplan.models.model import Diffusion, Model, Transformer, Vision
from gpuplan.plan.isolation import Isolation
from gpuplan.plan.model import Engine, EnvironmentVariable, ModelRef, SecretRef, Speculative
from gpuplan.sizing.ask import fields as f
from gpuplan.sizing.ask import requests
from gpuplan.sizing.ask.contradictions import contradictions
from gpuplan.sizing.ask.defaults import Defaults, precision_of
from gpuplan.sizing.ask.demand import (
    BatchDemand,
    Demand,
    NotebookDemand,
    ServingDemand,
    TrainingDemand,
    TrainingMethod,
)
from gpuplan.sizing.ask.fields import Kind
from gpuplan.sizing.ask.kinds import kind_of, reading_task
from gpuplan.sizing.ask.messages import missing_field, unknown_override, wrong_engine
from gpuplan.sizing.ask.numbers import (
    Numbers,
    accepted_limits,
    objectives,
    open_loop,
    time_limit,
)
from gpuplan.sizing.ask.parts import ClosedLoop, Dataset, Drafts, Growth, Lengths, Overrides
from gpuplan.sizing.ask.usage import field_problems, written_numbers
from gpuplan.source import Origin
from gpuplan.targets import TARGETS

_MADE: tuple[tuple[tuple[Kind, ...], Callable[..., Demand]], ...] = (
    (f.IMAGES, requests.images),
    (f.VIDEOS, requests.videos),
    (f.SPEECH, requests.speech),
    (f.VISION, requests.vision),
    (f.POOLING, requests.pooling),
)


def demand(
    manifest: Manifest, index: int, model: Model | None, engine: EnginePin, document: str
) -> Demand:
    """Workload `index` of `manifest`, resolved. Raises `Rejected` with every problem it has."""
    workload = manifest.workloads[index]
    at = Origin(document, ("workloads", index))
    kind = kind_of(workload, model)
    problems = [*_model_problems(workload, model, at), *field_problems(workload, kind, at)]
    problems += _engine_problems(workload, kind, model, engine, at)
    written = written_numbers(workload)
    problems += contradictions(workload, kind, model, written, at)
    problems += _override_problems(workload, manifest.platform.gpus, at)
    if problems:
        raise Rejected(problems)
    numbers = Numbers(written, Defaults(workload, kind, model, written))
    common: dict[str, Any] = {
        "name": workload.name,
        "task": workload.task,
        "tenant": _team(manifest, workload),
        "description": workload.description,
        "model_ref": _model_ref(workload, model),
        "engine": pinned(engine),
        "builds": engine.builds,
        "command": tuple(workload.command or ()),
        "environment": tuple(
            EnvironmentVariable(name=n, value=v) for n, v in sorted(workload.environment.items())
        ),
        "secrets": tuple(_secret(n, s) for n, s in sorted(workload.secrets.items())),
        "isolation": _isolation(workload, kind),
        "cut": bool(workload.tenancy and workload.tenancy.cut),
        "strangers": _strangers(manifest, workload),
        "priority": workload.priority or "normal",
        "preemptible": bool(workload.preemptible),
        "after": tuple(workload.after),
        "schedule": _schedule(manifest, workload),
        "overrides": _overrides(workload, numbers),
        "renamed_from": tuple(workload.renamed_from),
        "origin": at,
    }
    if kind == "notebook":
        users, memory = numbers(f.NOTEBOOK_USERS), numbers(f.NOTEBOOK_MEMORY)
        return NotebookDemand(users=users, gpu_memory=memory, **common)
    common |= {
        "model": model,
        "precision": precision_of(kind, model, workload),
        "weight_bytes": numbers(f.PRECISION),
        "confidence": numbers(f.CONFIDENCE),
    }
    if kind in f.RUNS:
        run = requests.looking if kind in f.LOOKING else _training
        return run(workload, numbers, common)
    common["growth"] = Growth(
        factor=numbers(f.GROWTH_FACTOR), horizon=numbers.optional(f.GROWTH_HORIZON)
    )
    for kinds, made in _MADE:
        if kind in kinds:
            return made(workload, kind, numbers, common)
    return _language(workload, kind, numbers, common)


def _language(
    workload: Workload, kind: Kind, numbers: Numbers, common: dict[str, Any]
) -> ServingDemand | BatchDemand:
    common |= {
        "lengths": Lengths(
            input_mean=numbers(f.INPUT_MEAN),
            input_p95=numbers(f.INPUT_P95),
            output_mean=numbers(f.OUTPUT_MEAN),
            output_p95=numbers(f.OUTPUT_P95),
        ),
        "max_model_len": numbers(f.MAX_MODEL_LEN),
        "gpu_memory_utilization": numbers(f.GPU_MEMORY_UTILIZATION),
        **_token_rate(workload, numbers),
        "drafts": _drafts(numbers) if workload.speculative else None,
        "prefix_cache": numbers.optional(f.PREFIX_CACHE),
        "speculative": _speculative(workload),
    }
    if kind == "batch":
        return BatchDemand(
            requests=numbers(f.REQUESTS), limit=time_limit(workload, numbers), **common
        )
    closed = workload.load is not None and workload.load.concurrency is not None
    kept, may = objectives(workload, numbers)
    return ServingDemand(
        arrivals=ClosedLoop(users=numbers(f.USERS), think_time=numbers(f.THINK_TIME))
        if closed
        else open_loop(numbers),
        objectives=kept,
        accepted=may,
        burst=numbers.optional(f.BURST),
        idle=numbers.optional(f.IDLE),
        disaggregated=workload.disaggregation is not None,
        **common,
    )


def _training(workload: Workload, numbers: Numbers, common: dict[str, Any]) -> TrainingDemand:
    run, dataset = workload.training, workload.dataset
    assert run is not None
    return TrainingDemand(
        method=_method(workload),
        optimizer=run.optimizer or "adamw",
        recompute=run.recompute,
        sharding=run.sharding,
        sequence_length=numbers(f.SEQUENCE_LENGTH),
        global_batch=numbers(f.GLOBAL_BATCH),
        tokens=numbers.optional(f.TRAINING_TOKENS),
        epochs=numbers.optional(f.EPOCHS),
        steps=numbers.optional(f.STEPS),
        lora_rank=numbers.optional(f.LORA_RANK),
        dataset=Dataset(
            name=dataset.name if dataset else None,
            size=numbers.optional(f.DATASET_SIZE),
            tokens=numbers.optional(f.DATASET_TOKENS),
            rate=numbers.optional(f.DATASET_RATE),
        ),
        checkpoint_interval=numbers(f.CHECKPOINT_INTERVAL),
        interval_is_written=workload.checkpoint is not None,
        spare_nodes=numbers.optional(f.SPARE_NODES),
        **_token_rate(workload, numbers),
        limit=time_limit(workload, numbers),
        **common,
    )


def _token_rate(workload: Workload, numbers: Numbers) -> dict[str, Any]:
    rate = numbers.optional(f.TOKENS_PER_SECOND)
    if "tokens_per_second" in accepted_limits(workload):
        return {"tokens_per_second": None, "accepted_tokens_per_second": rate}
    return {"tokens_per_second": rate}


def _drafts(numbers: Numbers) -> Drafts:
    return Drafts(
        accepted_tokens=numbers(f.ACCEPTED_TOKENS),
        draft_tokens=numbers(f.DRAFT_TOKENS),
        draft_cost=numbers(f.DRAFT_COST),
        draft_memory=numbers.optional(f.DRAFT_MEMORY),
    )


def _schedule(manifest: Manifest, workload: Workload) -> str | None:
    """None where the target starts runs once, which is said."""
    ignored = TARGETS[manifest.platform.target].ignored_of_workloads
    return None if any(i.field == "schedule" for i in ignored) else workload.schedule


def _overrides(workload: Workload, numbers: Numbers) -> Overrides:
    texts = workload.overrides
    return Overrides(
        gpu=texts.gpu if texts else None,
        partition=texts.partition if texts else None,
        kv_cache_dtype=texts.kv_cache_dtype if texts else None,
        accepted_misses=accepted_limits(workload),
        replicas=numbers.optional(f.REPLICAS),
        tensor_parallel_size=numbers.optional(f.TENSOR_PARALLEL_SIZE),
        pipeline_parallel_size=numbers.optional(f.PIPELINE_PARALLEL_SIZE),
        max_num_seqs=numbers.optional(f.MAX_NUM_SEQS),
        max_num_batched_tokens=numbers.optional(f.MAX_NUM_BATCHED_TOKENS),
        micro_batch=numbers.optional(f.MICRO_BATCH),
        gpu_count=numbers.optional(f.GPU_COUNT),
        cpu_cores_per_gpu=numbers.optional(f.CPU_CORES_PER_GPU),
        host_memory_per_gpu=numbers.optional(f.HOST_MEMORY_PER_GPU),
        shared_memory=numbers.optional(f.SHARED_MEMORY),
        scratch=numbers.optional(f.SCRATCH),
        model_storage=numbers.optional(f.MODEL_STORAGE),
        dataset_storage=numbers.optional(f.DATASET_STORAGE),
        checkpoint_storage=numbers.optional(f.CHECKPOINT_STORAGE),
        home_storage=numbers.optional(f.HOME_STORAGE),
    )


def _model_problems(workload: Workload, model: Model | None, at: Origin) -> Iterator[Diagnostic]:
    if model is None and workload.task != "notebook":
        yield missing_field("model", workload.task, at, "`gpuplan catalog list models` shows all")


def _engine_problems(
    workload: Workload, kind: Kind, model: Model | None, engine: EnginePin, at: Origin
) -> Iterator[Diagnostic]:
    if kind == "training" and isinstance(model, Diffusion):
        return  # no engine is right: `contradictions` says so
    kinds = {"image": f.IMAGES, "video": f.VIDEOS, "pooling": f.POOLING, "speech": f.SPEECH}
    wanted = next((name for name, those in kinds.items() if kind in those), workload.task)
    if isinstance(model, Vision) and kind in (*f.VISION, *f.LOOKING):
        wanted = reading_task(model, workload.task)
        if engine.name == "vllm":
            from gpuplan.sizing.ask.vision import unread_by_vllm

            yield from unread_by_vllm(workload, model, at)
            return
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


def _model_ref(workload: Workload, model: Model | None) -> ModelRef | None:
    if model is None:
        return None
    language = model if isinstance(model, Transformer) else None
    return ModelRef(
        identifier=model.identifier,
        revision=(workload.model and workload.model.revision) or model.revision,
        architecture=model.architecture,
        parameters=model.parameters,
        active_parameters=language.active_parameters if language else model.parameters,
        source=model.source,
        checkpoint_precision=language.checkpoint_precision if language else None,
        quant_method=language.quant_method if language else None,
    )


def pinned(pin: EnginePin) -> Engine:
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
    return Speculative(
        method=drafts.method,
        model=drafts.model,
        revision=drafts.revision,
        tokens=drafts.draft_tokens,
    )


def _method(workload: Workload) -> TrainingMethod:
    lora = workload.training.lora if workload.training else None
    if lora:
        return "qlora" if lora.quantized else "lora"
    return "full" if workload.task == "finetuning" else "pretraining"


def _strangers(manifest: Manifest, workload: Workload) -> bool:
    """Whether another team's workloads may come to be on its GPUs."""
    own = _team(manifest, workload)
    others = [w for w in manifest.workloads if _team(manifest, w) != own]
    return any(_isolation(w, w.task) in ("shared", "vm") for w in others)


def _team(manifest: Manifest, workload: Workload) -> str:
    return (workload.tenancy and workload.tenancy.team) or manifest.name


def _isolation(workload: Workload, kind: str) -> Isolation:
    """Whole GPUs, but for notebooks, which share them unless told otherwise."""
    if workload.tenancy and workload.tenancy.isolation:
        return workload.tenancy.isolation
    return "shared" if kind == "notebook" else "gpu"
