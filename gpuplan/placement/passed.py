"""GPUs that hosts have, and on which a workload finds no place: the choice falls on the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gpuplan.diagnostics import Diagnostic, Severity
from gpuplan.plan.model import Workload
from gpuplan.source import Origin

if TYPE_CHECKING:
    from gpuplan.inventory.v1 import Inventory


def blamed(
    diagnostics: Iterable[Diagnostic],
    workloads: Sequence[Workload],
    inventory: Inventory | None,
    document: str,
) -> dict[str, Diagnostic]:
    """The workloads by name that errors of their placement speak of, each with its first error:
    those at whose place in the manifest one stands, and those on the GPUs of a host at which one
    does. Empty where one error speaks of none of them: no other GPU would mend it."""
    first_errors: dict[str, Diagnostic] = {}
    for problem in (d for d in diagnostics if d.severity is Severity.ERROR):
        at = problem.origin
        names = (
            [w.name for w in _spoken_of(at, workloads, inventory, document)]
            if isinstance(at, Origin)
            else []
        )
        if not names:
            return {}
        for name in names:
            first_errors.setdefault(name, problem)
    return first_errors


def _spoken_of(
    at: Origin, workloads: Sequence[Workload], inventory: Inventory | None, document: str
) -> Iterator[Workload]:
    for workload in workloads:
        own = workload.origin
        if own and at.document == own.document and at.path[: len(own.path)] == own.path:
            yield workload
    if inventory is None or at.document != document or at.path[:1] != ("hosts",):
        return
    index = at.path[1] if len(at.path) > 1 else None
    if isinstance(index, int) and index < len(inventory.hosts):
        types = {g.type for g in inventory.hosts[index].gpus}
        yield from (w for w in workloads if w.gpu in types)


def passed_over(workload: Workload, problem: Diagnostic) -> Diagnostic:
    """A warning: what would have been chosen, and why it was not."""
    return replace(
        problem,
        severity=Severity.WARNING,
        message=f"'{workload.name}' is not put on {workload.gpu}: {problem.message}",
        remedies=(),
    )
