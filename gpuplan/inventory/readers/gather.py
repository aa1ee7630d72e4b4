"""Facts and problems of one output as they are found, and the messages that all readers share."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpuplan.diagnostics import Diagnostic, Related, Severity, error, note, warning
from gpuplan.inventory.facts import Fact, Reading, Subject, Value
from gpuplan.inventory.readers.words import Word
from gpuplan.source import Place

HOST: Subject = ("host", "")
AGAIN = "run the command again and keep its whole output"


def unreadable(tool: str, what: str, place: Place | None, help_: str = AGAIN) -> Diagnostic:
    """Nothing of the output, or of this part of it, can be read."""
    return error("GP061", f"this output of {tool} cannot be read: {what}", place, help=help_)


def cut_off(tool: str, what: str, place: Place | None, kept: str = "") -> Diagnostic:
    """The output ends early; `kept` is what could be read all the same."""
    label = f"{kept} could be read" if kept else ""
    message = f"this output of {tool} is cut off: {what}"
    return warning("GP062", message, place, label=label, help=AGAIN)


def lacks(tool: str, what: str, place: Place | None) -> Diagnostic:
    """A part is missing that a whole output has."""
    return warning("GP062", f"this output of {tool} has no {what}", place, help=AGAIN)


def not_understood(tool: str, what: str, word: Word, expected: str, help_: str = "") -> Diagnostic:
    """`word` stands where a fact must be and is not one; the fact is left out."""
    shown = f"'{word.text}'" if word.text else "nothing"
    message = f"{tool} says {shown} for {what}, which is not {expected}"
    remedy = (
        help_ or "it is left out: correct the line, or give the fact with another tool's output"
    )
    return warning("GP063", message, word.place, help=remedy)


def several(tool: str, what: str, word: Word, left_out: str, better: str) -> Diagnostic:
    """A fact that the tool gives for several at once, where one is kept of one; `better` are tools
    that say it of each."""
    message = f"{tool} says '{word.text}' for {what}: {left_out}"
    return note("GP063", message, word.place, help=f"give the output of {better} too")


def contradiction(
    tool: str, what: str, values: tuple[object, object], places: tuple[Place, Place]
) -> Diagnostic:
    """Two places of one output say different things; neither is used."""
    return Diagnostic(
        rule="GP064",
        severity=Severity.ERROR,
        message=f"this output of {tool} contradicts itself on {what}: {values[0]} and {values[1]}",
        origin=places[1],
        label="neither is used",
        help="outputs of different hosts or moments may be mixed: " + AGAIN,
        related=(Related("the other", places[0]),),
    )


def named(subject: Subject, attribute: str) -> str:
    """`the numa_node of gpu 0000:1b:00.0`."""
    kind, key = subject
    return f"the {attribute} of {kind} {key}".rstrip() if key else f"the {kind}'s {attribute}"


def shown(value: Value) -> str:
    """A value as a message can carry it."""
    text = ",".join(str(v) for v in value) if isinstance(value, tuple) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


@dataclass(slots=True)
class Gathering:
    """The reading that grows. A fact that is said twice is kept once; where the two differ, both
    are dropped and the contradiction is reported."""

    tool: str
    document: str
    facts: dict[tuple[Subject, str], Fact] = field(default_factory=dict)
    problems: list[Diagnostic] = field(default_factory=list)
    dropped: set[tuple[Subject, str]] = field(default_factory=set)

    def add(self, subject: Subject, attribute: str, value: Value, place: Place) -> None:
        key = subject, attribute
        before = self.facts.get(key)
        if key in self.dropped or (before and before.value == value):
            return
        if before is None:
            fact = Fact(subject=subject, attribute=attribute, value=value, place=place)
            self.facts[key] = fact
            return
        both = shown(before.value), shown(value)
        self.problems.append(
            contradiction(self.tool, named(subject, attribute), both, (before.place, place))
        )
        self.drop(subject, attribute)

    def drop(self, subject: Subject, attribute: str) -> None:
        """No fact of this attribute is kept, whatever comes."""
        self.facts.pop((subject, attribute), None)
        self.dropped.add((subject, attribute))

    def value(self, subject: Subject, attribute: str) -> Value | None:
        fact = self.facts.get((subject, attribute))
        return fact.value if fact else None

    def reading(self, host: str | None = None) -> Reading:
        return Reading(
            tool=self.tool,
            document=self.document,
            host=host,
            facts=tuple(self.facts.values()),
            problems=tuple(self.problems),
        )
