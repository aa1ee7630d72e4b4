"""What a rule is: a pure function from plan and stack to findings. Its docstring is its page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from datetime import date
from textwrap import dedent
from typing import Generic, TypeVar

from gpuplan.frozen import frozen, record
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.objects import Written
from gpuplan.render.tree import FileTree
from gpuplan.source import Origin

PLAN_FILE = "plan.yaml"
EVIDENCE_FILE = "evidence.yaml"
# The settings in generated files that rules read; files are parsed for these only.
KEYS = frozenset(("privileged", "image", "tag", "chart", "version", "topologyKey", "topology_key"))
EXPANDED = "**"  # the key of a mapping that is expanded in place

S = TypeVar("S")


@record
class Finding:
    """A rule's verdict on one resource. `requested`, `capacity` and `unit` make it data;
    `usd_per_hour` is what acting on it would save (positive).

    `path` is the property: of the plan (`workloads[assistant].memory`) or of `file`. It names
    things by name, never by line or position, so that a finding stays the same when others come and
    go.
    """

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
    file: str = PLAN_FILE
    origin: Origin | None = None


@record
class Entry:
    """One setting of a block: `value` as data, or its source text when it is not `known` without
    running the program."""

    key: str
    value: object
    known: bool = True
    line: int | None = None


@record
class Block:
    """The `KEYS` that stand together in a generated file: of a call, a mapping or an assignment; or
    a text (`kind` is `text` then). `kind` is the callee's name or the object's kind,
    `resource` the nearest named thing around it, `path` the way to it by names."""

    file: str
    kind: str
    resource: str
    path: str
    line: int | None
    entries: tuple[Entry, ...]

    def get(self, key: str) -> Entry | None:
        return next((e for e in self.entries if e.key == key), None)


@frozen
class Unreadable:
    """A file that cannot be judged, and why."""

    file: str
    reason: str
    line: int | None = None


@frozen
class Subject:
    """What is checked: the plan and the stack's files (empty when only a plan is at hand).
    `holders` are the hosts of inventories that stacks hold, each with its stack. `as_of` is the day
    of the check, on which ages are judged; None where nobody says.
    `thresholds` are the rule's own, from `policies/builtin.yaml`, as integers. `blocks` are the
    programs, YAML and JSON among the files, parsed; `unreadable` those that could not be.
    `written` is what its files make for a scheduler or for Compose."""

    plan: Plan
    files: FileTree
    thresholds: Mapping[str, int]
    blocks: tuple[Block, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    written: tuple[Written, ...] = ()
    holders: Mapping[str, str] = field(default_factory=dict)
    as_of: date | None = None


@record
class Waiver:
    """An accepted finding. `match` is a glob over `STACK/RESOURCE`; an inline waiver stands in the
    stack's file itself and covers its own line and the next. One with `problems` covers nothing."""

    rule: str
    match: str = ""
    reason: str = ""
    owner: str = ""
    expires: date | None = None
    file: str
    line: int | None = None
    inline: bool = False
    problems: tuple[str, ...] = ()


@frozen
class Ledger:
    """What the waivers came to: all of them, and those that covered a finding."""

    waivers: tuple[Waiver, ...]
    used: frozenset[Waiver]
    stacks: tuple[str, ...]
    as_of: date
    thresholds: Mapping[str, int]


@frozen
class _Rule(Generic[S]):
    identifier: str
    name: str
    check: Callable[[S], Iterator[Finding]]

    @property
    def documentation(self) -> str:
        """The rule's page: the docstring of its function, without the indentation."""
        first, _, rest = (self.check.__doc__ or "").partition("\n")
        return f"{first}\n{dedent(rest)}".strip()


class Rule(_Rule[Subject]):
    """A rule over plan and stack."""

    __slots__ = ()


class WaiverRule(_Rule[Ledger]):
    """A rule over waivers, run after the others."""

    __slots__ = ()
