"""One constructor for each message of the sizing engine.

GP004 a field that is needed · GP007 fields that contradict each other or the task · GP010 no GPU
type fits · GP011 an override that does not fit · GP012 absent facts · GP014 what is not acted on ·
GP041 hardware that is short · GP043 what isolation costs · GP044 guests that are less than they
should be
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gpuplan.diagnostics import Change, Diagnostic, did_you_mean, error, note, remedied, warning
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
    problem = error(
        "GP007",
        f"'{field}' is not used by {_workload(task)}",
        Origin(origin.document, origin.path, key=True),
        label="would have no effect",
        help=f"remove it; it belongs to: {kinds}" if kinds else "remove it",
    )
    return remedied(problem, (Change(origin, None),))


def read_as_tokens(problem: Diagnostic) -> Diagnostic:
    """The same of images that come to a language model, whose load would be too small without."""
    return replace(
        problem,
        label="a language model reads images as tokens",
        help="remove it, and count the tokens of a request's images in 'load.input_tokens'",
    )


def contradiction(
    message: str, origin: Origin, label: str, remedy: str, *changes: Change
) -> Diagnostic:
    """`changes` are what `remedy` says, where it says of which value."""
    problem = error("GP007", message, origin, label=label, help=remedy)
    return remedied(problem, changes) if changes else problem


def wrong_engine(name: str, task: str, tasks: tuple[str, ...], origin: Origin) -> Diagnostic:
    return error(
        "GP007",
        f"engine '{name}' does not do {task}",
        origin,
        label=f"it does: {', '.join(tasks)}",
        help="leave 'engine' out to take the default, or name one that fits",
    )


def override_cannot_work(field: str, why: str, at: Origin) -> Diagnostic:
    remedy = f"change or remove '{field}'"
    problem = error("GP011", f"'{field}' cannot work: {why}", at, help=remedy)
    return remedied(problem, (Change(at, None),))


def override_is_unwise(field: str, why: str, at: Origin) -> Diagnostic:
    message = f"'{field}' is less than it should be: {why}"
    return warning("GP011", message, at, help=f"change or remove '{field}'")


def unknown_override(field: str, value: str, known: tuple[str, ...], at: Origin) -> Diagnostic:
    problem = error(
        "GP011",
        f"'{value}' cannot be chosen as {field} here",
        at,
        label=did_you_mean(value, known),
        help=f"remove '{field}'" + (f", or choose from: {', '.join(known)}" if known else ""),
    )
    return remedied(problem, (Change(at, None),))


def missing_fact(what: str, why: str, origin: Origin, remedy: str) -> Diagnostic:
    return warning("GP012", f"{what} is not stated", origin, label=f"needed for {why}", help=remedy)


def unpredicted(what: str, at: Origin, label: str, remedy: str) -> Diagnostic:
    return error("GP012", f"{what} cannot be predicted", at, label=label, help=remedy)


def miss_that_is_none(limit: str, at: Origin) -> Diagnostic:
    return note(
        "GP014",
        f"a miss of '{limit}' is accepted, and it is met",
        at,
        help="leave it out of 'accepted_misses', so that it stays so",
    )


def reduced(guest: str, given: str, wanted: str, because: str, origin: Origin) -> Diagnostic:
    return warning(
        "GP044",
        f"{guest} gets {given} instead of {wanted}: {because}",
        origin,
        help="use a host with more of it, or fewer GPUs per guest",
    )


def not_acted_on(message: str, origin: Origin, remedy: str) -> Diagnostic:
    return note("GP014", message, origin, help=remedy)


def whole_for_little(
    workload: str, gpu: str, wanted: str, part: str, *, isolation: str, origin: Origin
) -> Diagnostic:
    """A whole GPU for what a part would hold; `wanted` is a size with its unit."""
    return note(
        "GP043",
        f"'{workload}' gets a whole {gpu} for {wanted}, because isolation "
        f"'{isolation}' keeps other teams off its GPUs",
        origin.child("tenancy", "isolation"),
        help=f"`tenancy.cut: true` cuts its GPUs for its own team alone ({part}); isolation "
        "'shared' lets other teams be on the other parts",
    )
