"""What a rule is: a pure function from plan and stack to findings. Its docstring is its page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpuplan.plan.model import Plan, record
from gpuplan.render.tree import FileTree


@record
class Finding:
    """A rule's verdict on one resource. `requested`, `capacity` and `unit` make it data;
    `usd_per_hour` is what acting on it would save (positive). `path` names a file of the stack, or
    the plan's field."""

    resource: str
    path: str
    message: str
    help: str
    requested: float | None = None
    capacity: float | None = None
    unit: str = ""
    usd_per_hour: float | None = None
    line: int | None = None
    level: str | None = None  # replaces the rule's severity: `error`, `warning`, `info`


@dataclass(frozen=True, slots=True)
class Subject:
    """What is checked: the plan and the stack's files (empty when only a plan is at hand).
    `thresholds` are the rule's own, from `policies/builtin.yaml`, as integers."""

    plan: Plan
    files: FileTree
    thresholds: dict[str, int]


@dataclass(frozen=True, slots=True)
class Rule:
    identifier: str
    name: str
    check: Callable[[Subject], Iterator[Finding]]

    @property
    def documentation(self) -> str:
        return self.check.__doc__ or ""
