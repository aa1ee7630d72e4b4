"""Facts and problems of one output as they are found, and the messages that all readers share."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpuplan.diagnostics import Diagnostic, Related, Severity, error, note, warning
from gpuplan.inventory.facts import Observation, Reading, Subject, Value
from gpuplan.inventory.readers.words import Word
from gpuplan.source import Place

HOST: Subject = ("host", "")
AGAIN = "run the command again and keep its whole output"
CORRECT = "it is left out: correct the line, or give the fact with another tool's output"


def unreadable(tool: str, fault: str, place: Place | None, help_: str = AGAIN) -> Diagnostic:
    """Nothing of the output, or of this part of it, can be read."""
    return error("GP061", f"this output of {tool} cannot be read: {fault}", place, help=help_)


def cut_off(tool: str, fault: str, place: Place | None, kept: str = "") -> Diagnostic:
    """The output ends early; `kept` is what could be read all the same."""
    label = f"{kept} could be read" if kept else ""
    message = f"this output of {tool} is cut off: {fault}"
    return warning("GP062", message, place, label=label, help=AGAIN)


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
    facts: dict[tuple[Subject, str], Observation] = field(default_factory=dict)
    subjects: set[Subject] = field(default_factory=set)  # of which a fact was said
    problems: list[Diagnostic] = field(default_factory=list)
    dropped: set[tuple[Subject, str]] = field(default_factory=set)

    def add(self, subject: Subject, attribute: str, value: Value, place: Place) -> None:
        key = subject, attribute
        self.subjects.add(subject)
        before = self.facts.get(key)
        if key in self.dropped or (before and before.value == value):
            return
        if before is None:
            fact = Observation(subject=subject, attribute=attribute, value=value, place=place)
            self.facts[key] = fact
            return
        both = shown(before.value), shown(value)
        self.contradiction(named(subject, attribute), both, (before.place, place))
        self.drop(subject, attribute)

    def drop(self, subject: Subject, attribute: str) -> None:
        """No fact of this attribute is kept, whatever comes."""
        self.facts.pop((subject, attribute), None)
        self.dropped.add((subject, attribute))

    def value(self, subject: Subject, attribute: str) -> Value | None:
        fact = self.facts.get((subject, attribute))
        return fact.value if fact else None

    def cut_off(self, fault: str, place: Place | None, kept: str = "") -> None:
        """The output ends early; `kept` is what could be read all the same."""
        self.problems.append(cut_off(self.tool, fault, place, kept))

    def lacks(self, part: str, place: Place | None) -> None:
        """A part is missing that a whole output has."""
        message = f"this output of {self.tool} has no {part}"
        self.problems.append(warning("GP062", message, place, help=AGAIN))

    def not_understood(self, fact: str, word: Word, expected: str, remedy: str = "") -> None:
        """`word` stands where a fact must be and is not one; the fact is left out."""
        written = f"'{word.text}'" if word.text else "nothing"
        message = f"{self.tool} says {written} for {fact}, which is not {expected}"
        self.problems.append(warning("GP063", message, word.place, help=remedy or CORRECT))

    def several(self, fact: str, word: Word, left_out: str, better: str) -> None:
        """A fact that the tool gives for several at once, where one is kept of one; `better` are
        tools that say it of each."""
        message = f"{self.tool} says '{word.text}' for {fact}: {left_out}"
        remedy = f"give the output of {better} too"
        self.problems.append(note("GP063", message, word.place, help=remedy))

    def contradiction(
        self, fact: str, values: tuple[object, object], places: tuple[Place, Place]
    ) -> None:
        """Two places of one output say different things; neither is used."""
        said = f"{values[0]} and {values[1]}"
        self.problems.append(
            Diagnostic(
                rule="GP064",
                severity=Severity.ERROR,
                message=f"this output of {self.tool} contradicts itself on {fact}: {said}",
                origin=places[1],
                label="neither is used",
                help="outputs of different hosts or moments may be mixed: " + AGAIN,
                related=(Related("the other", places[0]),),
            )
        )

    def reading(self, host: str | None = None) -> Reading:
        return Reading(
            tool=self.tool,
            document=self.document,
            host=host,
            facts=tuple(self.facts.values()),
            problems=tuple(self.problems),
        )
