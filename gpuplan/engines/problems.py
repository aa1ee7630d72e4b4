"""What of a plan engines cannot do, one constructor a message."""

from __future__ import annotations

from gpuplan.diagnostics import Diagnostic, error, warning
from gpuplan.plan.model import Workload


def _warning(message: str, workload: Workload, remedy: str) -> Diagnostic:
    return warning("GP017", f"{workload.name}: {message}", workload.origin, help=remedy)


def unknown_engine(workload: Workload, known: tuple[str, ...]) -> Diagnostic:
    return error(
        "GP016",
        f"{workload.name}: {workload.engine.name} has no known start for {workload.task}",
        workload.origin,
        help=f"write 'command', or use one of: {', '.join(known)}",
    )


def unsupported_parallelism(workload: Workload, kind: str) -> Diagnostic:
    return error(
        "GP016",
        f"{workload.name}: {workload.engine.name} has no setting for {kind} parallelism here",
        workload.origin,
        help="use another engine, or write 'command'",
    )


def batch_without_command(workload: Workload) -> Diagnostic:
    return error(
        "GP016",
        f"{workload.name}: {workload.engine.name} has no command for a file of requests",
        workload.origin,
        help="write 'command', the program that reads the requests and writes the results",
    )


def batch_files(workload: Workload, folder: str) -> Diagnostic:
    return _warning(
        f"reads its requests from {folder}/requests-0.jsonl, which must be there first",
        workload,
        f"put one such file in OpenAI's batch format there for each of {workload.replicas}"
        f" replicas; results-0.jsonl … appear beside them. Or write 'command'",
    )


def no_dataset(workload: Workload) -> Diagnostic:
    return _warning(
        "no dataset is named, so the run cannot start", workload, "name it in 'dataset.name'"
    )


def optimizer_of_another_kind(workload: Workload, optimizer: str) -> Diagnostic:
    return error(
        "GP016",
        f"{workload.name}: {workload.engine.name} cannot run optimizer '{optimizer}' with"
        f" sharding '{workload.training.sharding if workload.training else 'none'}'",
        workload.origin,
        help="use 'adamw' or 'adamw-8bit', or write 'command'",
    )
