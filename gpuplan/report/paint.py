"""Colour, only where a person looks at a terminal."""

from __future__ import annotations

import os
from typing import TextIO

from gpuplan.diagnostics import Severity
from gpuplan.frozen import frozen

STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold blue"}
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34"}


@frozen
class Paint:
    """Wraps text in ANSI codes when `on`."""

    on: bool = False

    def __call__(self, style: str, text: str) -> str:
        if not self.on or not text:
            return text
        codes = ";".join(_CODES[s] for s in style.split())
        return f"\033[{codes}m{text}\033[0m"


def paint_for(stream: TextIO) -> Paint:
    """Colour on a terminal, unless NO_COLOR is set or TERM is dumb (https://no-color.org)."""
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return Paint(on=stream.isatty() and not plain)


def tag(paint: Paint, severity: Severity, rule: str) -> str:
    """`error[GP006]`, before a message."""
    return paint(STYLES[severity], f"{severity.value}[{rule}]")
