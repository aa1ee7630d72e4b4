"""Verdicts of policies as data: what reports print and what a comparison counts.

The engine in `policy` makes them. Reports and `plan.diff` read them, and nothing of the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date

from gpuplan.diagnostics import Severity, count_severities
from gpuplan.frozen import record
from gpuplan.source import Origin


@record
class Suppression:
    """The waiver that covers a verdict. `place` is its `FILE:LINE`; an inline one has no owner."""

    reason: str
    owner: str
    expires: date
    place: str
    inline: bool

    def __str__(self) -> str:
        """`until 2026-12-31 by ml-platform: the reason (policies/waivers.yaml:3)`."""
        owner = f" by {self.owner}" if self.owner else ""
        return f"until {self.expires}{owner}: {self.reason} ({self.place})"


@record
class Verdict:
    """A finding in its place.

    `resource` and `path` say what it is about in terms that survive an edit elsewhere: `file` and
    `line` say where to look today. `usd_per_hour` is what acting on it would save. `fingerprint` is
    the SHA-256 of rule, stack, resource and path.
    """

    rule: str
    name: str
    severity: Severity
    stack: str
    resource: str
    path: str
    file: str
    line: int | None
    message: str
    help: str
    requested: float | None
    capacity: float | None
    unit: str
    usd_per_hour: float | None
    fingerprint: str
    origin: Origin | None = None
    suppression: Suppression | None = None

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@record
class RuleInfo:
    """What a report says of a rule. `page` is its documentation as Markdown."""

    identifier: str
    name: str
    summary: str
    page: str
    severity: Severity


@record
class Report:
    """All verdicts on some stacks, the gravest first; waived ones among them."""

    stacks: tuple[str, ...]
    as_of: date
    rules: tuple[RuleInfo, ...]
    verdicts: tuple[Verdict, ...]

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self.verdicts)

    @property
    def active(self) -> tuple[Verdict, ...]:
        return tuple(v for v in self.verdicts if v.suppression is None)

    @property
    def waived(self) -> tuple[Verdict, ...]:
        return tuple(v for v in self.verdicts if v.suppression is not None)

    def count(self, severity: Severity) -> int:
        return sum(v.severity is severity for v in self.active)

    def exit_code(self, fail_on: Severity = Severity.ERROR) -> int:
        """1 when a verdict that is not waived is at least as grave as `fail_on`, else 0."""
        return int(any(v.severity.rank <= fail_on.rank for v in self.active))


def counted(verdicts: Iterable[Verdict]) -> str:
    """`2 errors, 1 warning`; `no findings` when there are none."""
    return count_severities(v.severity for v in verdicts) or "no findings"
