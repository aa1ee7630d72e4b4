"""What verbs share: printing problems, JSON answers, progress."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from gpuplan.diagnostics import Diagnostic
    from gpuplan.source import Sources


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")


def day(text: str) -> date:
    """`2026-02-01`. Raises `ArgumentTypeError`."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        message = f"'{text}' is not a date: write year, month and day like 2026-02-01"
        raise argparse.ArgumentTypeError(message) from None


def refused(text: str, why: str) -> argparse.ArgumentTypeError:
    """That `text`, the value of an option, is `why`."""
    from gpuplan.render.text import shortened

    return argparse.ArgumentTypeError(f"'{shortened(text, 20)}' is {why}")


def today() -> date:
    return datetime.now(UTC).date()


def print_json(value: Any) -> None:
    json.dump(value, sys.stdout, indent=2, ensure_ascii=False)
    print()


def diagnostic_json(diagnostic: Diagnostic, sources: Sources) -> dict[str, Any]:
    """One problem as data: stable keys, 1-based line and column where the place is known."""
    from gpuplan.source import format_path

    located = sources.locate(diagnostic.origin)
    place = (
        {"file": located[0].path, "line": located[1].line, "column": located[1].column}
        if located
        else {}
    )
    return {
        "code": diagnostic.rule,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        "label": diagnostic.label,
        "help": diagnostic.help,
        "remedies": [
            [{"path": format_path(c.origin.path), "value": c.value} for c in remedy]
            for remedy in diagnostic.remedies
        ],
        **place,
    }


def report_problems(
    diagnostics: Iterable[Diagnostic], sources: Sources | None = None, *, as_json: bool = False
) -> int:
    """Print every problem; 2 when one of them is an error, else 0."""
    from gpuplan.diagnostics import Severity, worst
    from gpuplan.source import Sources

    problems, sources = list(dict.fromkeys(diagnostics)), sources or Sources()
    if as_json:
        print_json({"problems": [diagnostic_json(d, sources) for d in problems]})
    elif problems:
        from gpuplan.report.paint import paint_for
        from gpuplan.report.terminal import render_diagnostics

        sys.stdout.flush()  # the answer stands before its problems where both go to one file
        print(render_diagnostics(problems, sources, paint_for(sys.stderr)), file=sys.stderr)
    return 2 if worst(problems) is Severity.ERROR else 0


def say(text: str, *, end: str = "\n") -> None:
    """Print an answer for people, in lines of 80 columns."""
    from gpuplan.render.text import fitted

    print(fitted(text), end=end)


def write_text(text: str, file: str) -> Diagnostic | None:
    """Print `text`, or write it to `file`; what prevented that."""
    from pathlib import Path

    from gpuplan.diagnostics import error

    if not file:
        sys.stdout.write(text)
        return None
    try:
        Path(file).write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as problem:
        reason = (problem.strerror or "unknown error").lower()
        return error("GP009", f"cannot write {file}: {reason}", help="check the folder")
    return None


def replace_text(text: str, path: Path) -> Diagnostic | None:
    """Exchange what a file holds, in one step; what prevented that."""
    from gpuplan.diagnostics import error

    target = path.resolve()
    fresh = target.with_name(f".{target.name}.new")
    try:
        fresh.write_text(text, encoding="utf-8")
        fresh.chmod(target.stat().st_mode)
        fresh.replace(target)
    except OSError as problem:
        reason = (problem.strerror or "unknown error").lower()
        return error("GP009", f"cannot write {path}: {reason}", help="check the folder")
    return None


class Progress:
    """One line on a terminal that says what is being done; silent elsewhere."""

    def __init__(self) -> None:
        self.shown = sys.stderr.isatty()

    def __call__(self, text: str) -> None:
        if self.shown:
            sys.stderr.write(f"\r\033[K{text}")
            sys.stderr.flush()

    def done(self) -> None:
        self("")
