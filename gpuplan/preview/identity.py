"""Names that must not change by accident: the program against the stack's committed `urns.txt`.

A line is `type::name`, then marks two spaces apart: `protect`, `retain`, `former=NAME`,
`if=SETTING`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from gpuplan.diagnostics import Diagnostic, Severity
from gpuplan.frozen import record
from gpuplan.preview import messages
from gpuplan.preview import urn as urns
from gpuplan.preview.comparing.replace import is_stateful_type
from gpuplan.preview.registered import Preview, Registered

DOCUMENT = "urns.txt"


@record
class Identity:
    """A committed resource. `conditional`: registered only where a setting is true."""

    type: str
    name: str
    protect: bool
    conditional: bool

    def __str__(self) -> str:
        return f"{self.type}::{self.name}"


def read_identities(text: str) -> tuple[tuple[Identity, ...], tuple[Diagnostic, ...]]:
    """The resources of a `urns.txt`, and what is wrong with its lines."""
    identities, problems = [], []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        entry, *marks = (part for part in line.strip().split("  ") if part)
        kind, separator, name = entry.partition("::")
        if not (kind and separator and name):
            problems.append(messages.bad_urn_list(DOCUMENT, number, line))
            continue
        conditional = any(m.startswith(("if=", "if ")) for m in marks)
        identities.append(
            Identity(type=kind, name=name, protect="protect" in marks, conditional=conditional)
        )
    return tuple(identities), tuple(problems)


def check_identity(
    folder: Path, preview: Preview, *, complete: bool = True
) -> tuple[Diagnostic, ...]:
    """`compare_identities` with the `urns.txt` of a stack's folder; nothing where there is none.

    Not `complete`: the list is of an earlier version, so it lacks what is new.
    """
    path = folder / DOCUMENT
    if not path.is_file():
        return ()
    problems = compare_identities(preview, path.read_text(encoding="utf-8"))
    return tuple(d for d in problems if complete or d.severity is Severity.ERROR)


def compare_identities(preview: Preview, text: str) -> tuple[Diagnostic, ...]:
    """An error for each protected or stateful resource of `text` that the program no longer
    registers, under its own name or as an alias; a warning when `text` does not list all."""
    committed, problems = read_identities(text)
    names = {n for r in preview.resources for n in _names(r)}
    lost = [c for c in committed if not c.conditional and str(c) not in names]
    listed = {str(c) for c in committed}
    new = [
        urns.short(r.urn)
        for r in preview.resources
        if r.custom and listed.isdisjoint(_own_names(r.urn))
    ]
    return (*problems, *_lost(lost), *([messages.unlisted_resource(new)] if new else ()))


def _lost(identities: Iterable[Identity]) -> Iterator[Diagnostic]:
    for identity in identities:
        if identity.protect:
            yield messages.lost_resource(str(identity), "it is protected")
        elif is_stateful_type(identity.type.rpartition("$")[2]):
            yield messages.lost_resource(str(identity), "it holds state")


def _names(resource: Registered) -> Iterator[str]:
    for urn in (resource.urn, *resource.aliases):
        yield from _own_names(urn)


def _own_names(urn: str) -> tuple[str, str]:
    """`type::name` with and without the types of its parents."""
    return urns.short(urn), f"{urns.type_of(urn)}::{urns.name_of(urn)}"
