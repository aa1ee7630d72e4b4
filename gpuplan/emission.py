"""What a backend gives: files, what of the plan they do not express, and sections of the README.

A backend is a module below `gpuplan.backends` with a pure function `emit` from the plan to an
`Emission`.
"""

from __future__ import annotations

from dataclasses import field

from gpuplan.diagnostics import Diagnostic
from gpuplan.frozen import frozen
from gpuplan.render.tree import FileTree

# Headings in the order of a README. Others follow, as backends give them.
HEADINGS = (
    "Regions",
    "Order",
    "Before",
    "Apply",
    "Start",
    "Reach",
    "Update",
    "Run again",
    "After",
    "Remove",
    "Adopt",
)


@frozen
class Section:
    """Markdown below a heading of the stack's README. Texts of several backends below one heading
    follow each other in the order of the target's backends."""

    heading: str
    text: str


@frozen
class Emission:
    """`diagnostics` name whatever of the plan the files do not express."""

    files: FileTree = field(default_factory=FileTree)
    diagnostics: tuple[Diagnostic, ...] = ()
    sections: tuple[Section, ...] = ()
