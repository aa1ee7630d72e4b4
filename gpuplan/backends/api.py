"""What a backend is: a pure function from the plan to files, and what it could not express."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gpuplan.diagnostics import Diagnostic
from gpuplan.plan.model import Plan
from gpuplan.render.tree import FileTree


@dataclass(frozen=True, slots=True)
class Emission:
    """Files of one backend. `diagnostics` name whatever of the plan they do not express."""

    files: FileTree = field(default_factory=FileTree)
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class Backend:
    """`targets` are the manifest targets this backend emits for."""

    name: str
    summary: str
    targets: frozenset[str]
    emit: Callable[[Plan], Emission]
