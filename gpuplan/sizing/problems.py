"""One constructor for each message of the sizing engine.

GP004 a field that is needed · GP007 fields that contradict each other or the task · GP010 no GPU
type fits · GP011 an override that does not fit · GP012 absent facts · GP014 what is not acted on
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpuplan.diagnostics import Diagnostic, Severity, did_you_mean, error
from gpuplan.plan.model import Shortfall
from gpuplan.sizing.choose import Candidate
from gpuplan.source import Origin
from gpuplan.units import format_quantity


def missing_field(field: str, task: str, parent: Origin, remedy: str) -> Diagnostic:
    name = field.rpartition(".")[2]
    return error(
        "GP004",
        f"missing field '{name}'",
        Origin(parent.document, parent.path, key=True),
        label=f"a {task} workload needs '{field}'",
        help=remedy,
    )


def unused_field(field: str, task: str, origin: Origin, users: Iterable[str]) -> Diagnostic:
    kinds = ", ".join(users)
    return error(
        "GP007",
        f"'{field}' is not used by a {task} workload",
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


def nothing_fits(
    name: str, rejected: Sequence[Candidate], origin: Origin, smaller: str
) -> Diagnostic:
    """One error a workload: each GPU type's first gate with its numbers, and the nearest remedy:
    `smaller` says which precision would fit, if any."""
    gates = "; ".join(f"{c.device.gpu.identifier}: {describe(c.shortfalls[0])}" for c in rejected)
    return error(
        "GP010",
        f"no GPU type that may be used fits '{name}'",
        Origin(origin.document, origin.path),
        label=gates or "no GPU type may be used",
        help=smaller or _remedy(rejected),
    )


def override_does_not_fit(fields: str, shortfalls: tuple[Shortfall, ...], at: Origin) -> Diagnostic:
    return error(
        "GP011",
        f"with {fields} overridden, the workload does not fit",
        at,
        label="; ".join(describe(s) for s in shortfalls),
        help="remove the override to see what fits",
    )


def unknown_override(field: str, value: str, known: tuple[str, ...], at: Origin) -> Diagnostic:
    return error(
        "GP011",
        f"'{value}' cannot be chosen as {field} here",
        at,
        label=did_you_mean(value, known),
        help=f"choose from: {', '.join(known)}" if known else f"remove '{field}'",
    )


def missing_fact(what: str, why: str, origin: Origin, remedy: str) -> Diagnostic:
    return Diagnostic(
        rule="GP012",
        severity=Severity.WARNING,
        message=f"{what} is not stated",
        origin=origin,
        label=f"needed for {why}",
        help=remedy,
    )


def not_acted_on(message: str, origin: Origin, remedy: str) -> Diagnostic:
    return Diagnostic(
        rule="GP014", severity=Severity.INFO, message=message, origin=origin, help=remedy
    )


def describe(shortfall: Shortfall) -> str:
    """`gpu_memory: needs 74 GiB, has 44 GiB`."""
    need = format_quantity(shortfall.requested + shortfall.used, shortfall.unit)
    has = format_quantity(shortfall.capacity, shortfall.unit)
    return f"{shortfall.resource}: needs {need}, has {has}"


def _remedy(rejected: Sequence[Candidate]) -> str:
    """The change that is smallest in proportion, over all rejected types."""
    flips = [(a, a.flip) for a in rejected if a.flip and a.flip.now > 0 and a.flip.needed > 0]
    within_reach = [(a, f) for a, f in flips if f.quantity != "gpu_memory_bytes"]
    if not flips:
        return "allow other GPU types in `platform.gpus`, or choose another precision"
    flips = within_reach or flips
    nearest, flip = min(
        flips,
        key=lambda pair: (
            max(pair[1].needed / pair[1].now, pair[1].now / pair[1].needed),
            pair[0].device.gpu.identifier,
        ),
    )
    now, needed = (format_quantity(v, flip.unit) for v in (flip.now, flip.needed))
    gpu = nearest.device.gpu.identifier
    return f"{gpu} would do with {flip.quantity} {needed} instead of {now}"
