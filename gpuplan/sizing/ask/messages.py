"""One constructor for each message of the sizing engine.

GP004 a field that is needed · GP007 fields that contradict each other or the task · GP010 no GPU
type fits · GP011 an override that does not fit · GP012 absent facts · GP014 what is not acted on ·
GP044 guests that are less than they should be
"""

from __future__ import annotations

from collections.abc import Iterable

from gpuplan.diagnostics import Diagnostic, did_you_mean, error, note, warning
from gpuplan.source import Origin


def missing_field(field: str, task: str, parent: Origin, remedy: str) -> Diagnostic:
    name = field.rpartition(".")[2]
    return error(
        "GP004",
        f"missing field '{name}'",
        Origin(parent.document, parent.path, key=True),
        label=f"{_workload(task)} needs '{field}'",
        help=remedy,
    )


def _workload(task: str) -> str:
    return f"{'an' if task[0] in 'aeiou' else 'a'} {task} workload"


def unused_field(field: str, task: str, origin: Origin, users: Iterable[str]) -> Diagnostic:
    kinds = ", ".join(users)
    return error(
        "GP007",
        f"'{field}' is not used by {_workload(task)}",
        Origin(origin.document, origin.path, key=True),
        label="would have no effect",
        help=f"remove it; it belongs to: {kinds}" if kinds else "remove it",
    )


def contradiction(message: str, origin: Origin, label: str, remedy: str) -> Diagnostic:
    return error("GP007", message, origin, label=label, help=remedy)


def wrong_engine(name: str, task: str, tasks: tuple[str, ...], origin: Origin) -> Diagnostic:
    return error(
        "GP007",
        f"engine '{name}' does not do {task}",
        origin,
        label=f"it does: {', '.join(tasks)}",
        help="leave 'engine' out to take the default, or name one that fits",
    )


def override_cannot_work(field: str, why: str, at: Origin) -> Diagnostic:
    return error("GP011", f"'{field}' cannot work: {why}", at, help=f"change or remove '{field}'")


def override_is_unwise(field: str, why: str, at: Origin) -> Diagnostic:
    message = f"'{field}' is less than it should be: {why}"
    return warning("GP011", message, at, help=f"change or remove '{field}'")


def unknown_override(field: str, value: str, known: tuple[str, ...], at: Origin) -> Diagnostic:
    return error(
        "GP011",
        f"'{value}' cannot be chosen as {field} here",
        at,
        label=did_you_mean(value, known),
        help=f"choose from: {', '.join(known)}" if known else f"remove '{field}'",
    )


def missing_fact(what: str, why: str, origin: Origin, remedy: str) -> Diagnostic:
    return warning("GP012", f"{what} is not stated", origin, label=f"needed for {why}", help=remedy)


def reduced(guest: str, given: str, wanted: str, because: str, origin: Origin) -> Diagnostic:
    return warning(
        "GP044",
        f"{guest} gets {given} instead of {wanted}: {because}",
        origin,
        help="use a host with more of it, or fewer GPUs per guest",
    )


def not_acted_on(message: str, origin: Origin, remedy: str) -> Diagnostic:
    return note("GP014", message, origin, help=remedy)
