"""How the engine of a workload starts, and what of the plan it cannot do."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.diagnostics import Diagnostic
from gpuplan.engines import axolotl, megatron, problems, triton
from gpuplan.engines.container import NOTEBOOK_PORT, folder
from gpuplan.engines.launch import Launch
from gpuplan.engines.servers import (
    SERVERS,
    batch,
    having,
    makes_videos,
    serve,
    unsupported_parallelism,
)
from gpuplan.plan.model import Training, Workload

MEGATRON = megatron.NAME
TORCH = "pytorch"
RUNS = ("batch", "finetuning", "training")  # tasks that end
NOTEBOOKS = {"jupyter": ("start-notebook.py", "--ServerApp.ip=0.0.0.0")}


def start(workload: Workload, first: str) -> Launch | Diagnostic:
    """How the workload's container starts, or why that is not known. `first` is the host name of
    the first process of a run, which the others meet at."""
    if workload.task == "batch":
        if _perceives(workload) and not workload.command:
            return problems.batch_without_command(workload)
        launch = batch(workload, *batch_folders(workload))
        return launch or problems.batch_without_command(workload)
    if workload.task in RUNS:
        return _train(workload, first) or _untrained(workload)
    if workload.task == "notebook":
        return _notebook(workload) or problems.unknown_engine(workload, tuple(NOTEBOOKS))
    if _films(workload) and not makes_videos(workload):
        return problems.no_videos(workload)
    return serve(workload) or problems.unknown_engine(workload, tuple(SERVERS))


def _films(workload: Workload) -> bool:
    """Whether the engine is to be told how it makes videos."""
    made = workload.image_generation
    return made is not None and made.frames is not None and not workload.command


def _perceives(workload: Workload) -> bool:
    """Whether it hears or sees: no engine takes images from a file of requests, and the one that
    takes audio (vLLM, run_batch.py) begins all of a file at once and holds it whole."""
    serving = workload.serving
    return serving is not None and (serving.audio is not None or serving.images is not None)


def shortcomings(workload: Workload) -> Iterator[Diagnostic]:
    """What the plan wants of the engine and its settings do not express, or what it waits for."""
    if workload.command:
        return
    if workload.task == "inference":
        yield from _served(workload)
    if _deaf(workload):
        yield problems.no_audio(workload)
    if _films(workload) and makes_videos(workload):
        yield problems.unlimited_videos(workload)
        if workload.replicas > 1:
            yield problems.videos_apart(workload)
    yield from _missing(workload)
    if workload.task == "batch":
        yield problems.batch_files(workload, *batch_folders(workload))


def _served(workload: Workload) -> Iterator[Diagnostic]:
    if workload.engine.name == triton.NAME:
        yield problems.network_file(workload, triton.network_path(workload))
    for kind in unsupported_parallelism(workload):
        yield problems.unsupported_parallelism(workload, kind, having(workload, kind))


def _deaf(workload: Workload) -> bool:
    """Whether audio is for an image that has no libraries for it."""
    hears = workload.serving is not None and workload.serving.audio is not None
    return hears and workload.engine.image.startswith("vllm/vllm-openai:")


def _missing(workload: Workload) -> Iterator[Diagnostic]:
    if workload.training is not None:
        if workload.training.dataset is None:
            yield problems.no_dataset(workload)
        if workload.schedule is not None:
            yield problems.goes_on_again(workload, f"{folder(workload, 'checkpoints')}/run")
        yield from _run(workload, workload.training)


def _run(workload: Workload, training: Training) -> Iterator[Diagnostic]:
    if workload.engine.name == MEGATRON:
        if megatron.recipe(workload) is not None and training.dataset is not None:
            yield problems.megatron_files(
                workload,
                megatron.data(workload),
                megatron.pretrained(workload) if training.method == "full" else None,
            )
    elif axolotl.optimizer(training) is None:
        yield problems.optimizer_of_another_kind(workload, training.optimizer)


def _untrained(workload: Workload) -> Diagnostic:
    """Why an engine that trains does not start."""
    if workload.engine.name == TORCH:
        return problems.no_trainer(workload)
    if workload.engine.name != MEGATRON or workload.model is None:
        return problems.unknown_engine(workload, ("axolotl", MEGATRON))
    if megatron.recipe(workload) is None:
        return problems.no_recipe(workload, workload.model.identifier)
    return problems.unsized_recipe(workload)


def batch_folders(workload: Workload) -> tuple[str, str]:
    """Where the files of a batch's requests lie, and those of its results."""
    return folder(workload, "requests"), folder(workload, "results")


def _train(workload: Workload, first: str) -> Launch | None:
    if workload.command:
        joined = workload.engine.name == TORCH and workload.nodes_per_replica > 1
        return Launch(
            command=workload.command, environment=_rendezvous(workload, first) if joined else ()
        )
    if workload.engine.name == MEGATRON and megatron.recipe(workload):
        ready = megatron.emitted(workload)
        return Launch(arguments=megatron.arguments(workload, first)) if ready else None
    if workload.engine.name != "axolotl" or workload.training is None or workload.model is None:
        return None
    return Launch(
        arguments=axolotl.arguments(workload, first),
        files=tuple(axolotl.files(workload, workload.training)),
    )


def _rendezvous(workload: Workload, first: str) -> tuple[tuple[str, str], ...]:
    """What torchrun needs to meet: `--nnodes=$NNODES --rdzv-backend=c10d
    --rdzv-endpoint=$MASTER_ADDR:$MASTER_PORT` (docs.pytorch.org, elastic/run)."""
    return (
        ("MASTER_ADDR", first),
        ("MASTER_PORT", "29500"),
        ("NNODES", str(workload.nodes_per_replica)),
    )


def _notebook(workload: Workload) -> Launch | None:
    """Jupyter makes its own token where none is given, and logs it."""
    command = workload.command or NOTEBOOKS.get(workload.engine.name, ())
    return Launch(command=command, port=NOTEBOOK_PORT) if command else None
