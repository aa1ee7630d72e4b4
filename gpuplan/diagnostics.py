"""Problems as data: a code, a severity, one message, one place, one remedy.

Each module that finds problems has one constructor a message; renderers live in `report`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import field, replace
from enum import Enum

from gpuplan.frozen import frozen, record
from gpuplan.source import Origin, Place
from gpuplan.units import plural


class Severity(Enum):
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 is the most severe."""
        return ("error", "warning", "info").index(self.value)


@frozen
class Related:
    """A second place that belongs to the same problem."""

    message: str
    origin: Origin | Place


@frozen
class Change:
    """A field of a document and its value there, as a person writes it; None takes the field away,
    with the mappings that it leaves empty. A place at the end of a list adds to it."""

    origin: Origin
    value: str | float | None


Remedy = tuple[Change, ...]
AGAIN = "compile the stack again from its manifest"  # a help


@record
class Diagnostic:
    """One problem. `label` stands beside the caret, `help` says what to do; `remedies` are those of
    its ways that change fields of a document, the nearest first."""

    rule: str
    severity: Severity
    message: str
    origin: Origin | Place | None = None
    label: str = ""
    help: str = ""
    related: tuple[Related, ...] = field(default=())
    remedies: tuple[Remedy, ...] = ()


def remedied(diagnostic: Diagnostic, *remedies: Remedy) -> Diagnostic:
    return replace(diagnostic, remedies=remedies)


def error(rule: str, message: str, origin: Origin | Place | None = None, **more: str) -> Diagnostic:
    """An error; `more` are `label` and `help`."""
    return Diagnostic(rule=rule, severity=Severity.ERROR, message=message, origin=origin, **more)  # type: ignore[arg-type]


def warning(
    rule: str, message: str, origin: Origin | Place | None = None, **more: str
) -> Diagnostic:
    """As `error`, for what works and should not be."""
    return replace(error(rule, message, origin, **more), severity=Severity.WARNING)


def note(rule: str, message: str, origin: Origin | Place | None = None, **more: str) -> Diagnostic:
    """As `error`, for what a person should know."""
    return replace(error(rule, message, origin, **more), severity=Severity.INFO)


LONGEST_NAME = 200  # looking for what is near takes the square of its length


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` was probably meant to be, or None."""
    if len(name) > LONGEST_NAME:
        return None
    import difflib  # only what is wrong is looked up

    folded = {k.casefold(): k for k in sorted(known, reverse=True)}
    match = difflib.get_close_matches(name.casefold(), sorted(folded), n=1, cutoff=0.6)
    return folded[match[0]] if match else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?`, or an empty string when nothing is near."""
    near = nearest(name, known)
    return f"did you mean '{near}'?" if near else ""


def worst(diagnostics: Iterable[Diagnostic]) -> Severity | None:
    return min((d.severity for d in diagnostics), key=lambda s: s.rank, default=None)


def count_severities(severities: Iterable[Severity]) -> str:
    """`2 errors, 1 warning, 3 notes`; empty when there are none."""
    numbers = Counter(severities)
    nouns = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
    return ", ".join(plural(numbers[s], noun) for s, noun in nouns.items() if s in numbers)
