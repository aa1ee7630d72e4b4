"""The backends of a target, found by the names in its record (docs/adding-a-backend.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module

from gpuplan.emission import Emission
from gpuplan.plan.model import Plan
from gpuplan.targets import TARGETS

Backend = Callable[[Plan], Emission]


def backends(target: str) -> Iterator[Backend]:
    """In the record's order. Only these are imported."""
    for name in TARGETS[target].backends:
        backend: Backend = import_module(f"gpuplan.backends.{name}").emit
        yield backend
