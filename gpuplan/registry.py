"""The backends of a target, found by the names in its record (docs/adding-a-backend.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module

from gpuplan.diagnostics import Diagnostic
from gpuplan.emission import Emission
from gpuplan.plan.model import Plan
from gpuplan.targets import TARGETS

Backend = Callable[[Plan], Emission]
Updater = Callable[[Plan, Plan, Sequence[str]], tuple[Plan, tuple[Diagnostic, ...]]]


def backends(target: str) -> Iterator[Backend]:
    """In the record's order. Only these are imported."""
    for name in TARGETS[target].backends:
        backend: Backend = import_module(f"gpuplan.backends.{name}").emit
        yield backend


def updater(target: str) -> Updater | None:
    """What fits a plan to the one of the stack that is there; None where nothing has to be kept."""
    name = TARGETS[target].updated_by
    if not name:
        return None
    carry_over: Updater = import_module(f"gpuplan.{name}").carry_over
    return carry_over
