"""What of a plan engines cannot do, one constructor a message."""

from __future__ import annotations

from gpuplan.diagnostics import Change, Diagnostic, error, remedied, warning
from gpuplan.plan.model import Workload


def _warning(message: str, workload: Workload, remedy: str) -> Diagnostic:
    return warning("GP017", f"{workload.name}: {message}", workload.origin, help=remedy)


def _refused(
    message: str, workload: Workload, remedy: str, *changes: tuple[str, str | None]
) -> Diagnostic:
    """`changes`: fields below the workload, each a remedy of its own with the value there."""
    at = workload.origin
    problem = error("GP016", f"{workload.name}: {message}", at, help=remedy)
    if at is None:
        return problem
    return remedied(problem, *((Change(at.child(*f.split(".")), v),) for f, v in changes))


def unknown_engine(workload: Workload, known: tuple[str, ...]) -> Diagnostic:
    return _refused(
        f"{workload.engine.name} has no known start for {workload.task}",
        workload,
        f"write 'command', or use one of: {', '.join(known)}",
        *(("engine", name) for name in known),
    )


def unsupported_parallelism(workload: Workload, kind: str) -> Diagnostic:
    fields = {o.quantity.partition(".")[2] for o in workload.overrides}
    field = f"{kind}_parallel_size"
    return _refused(
        f"{workload.engine.name} has no setting for {kind} parallelism here",
        workload,
        "use another engine, or write 'command'",
        *([(f"overrides.{field}", None)] if field in fields else []),
    )


def batch_without_command(workload: Workload) -> Diagnostic:
    return error(
        "GP016",
        f"{workload.name}: {workload.engine.name} has no command for a file of requests",
        workload.origin,
        help="write 'command', the program that reads the requests and writes the results",
    )


def batch_files(workload: Workload, requests: str, results: str) -> Diagnostic:
    return _warning(
        f"reads its requests from {requests}/requests-0.jsonl, which must be there first",
        workload,
        f"put one such file in OpenAI's batch format there for each of {workload.replicas}"
        f" replicas; {results}/results-0.jsonl … are its results. Or write 'command'",
    )


def no_audio(workload: Workload) -> Diagnostic:
    return _warning(
        f"image {workload.engine.image} leaves the libraries for audio out, for their licences",
        workload,
        "build one FROM it with `RUN uv pip install --system vllm[audio]==VERSION` (vLLM,"
        " docs/deployment/docker.md) and name that in 'engine.image'",
    )


def no_dataset(workload: Workload) -> Diagnostic:
    return _warning(
        "no dataset is named, so the run cannot start", workload, "name it in 'dataset.name'"
    )


def optimizer_of_another_kind(workload: Workload, optimizer: str) -> Diagnostic:
    return _refused(
        f"{workload.engine.name} cannot run optimizer '{optimizer}' with"
        f" sharding '{workload.training.sharding if workload.training else 'none'}'",
        workload,
        "use 'adamw' or 'adamw-8bit', or write 'command'",
        ("training.optimizer", "adamw"),
        ("training.optimizer", "adamw-8bit"),
    )
