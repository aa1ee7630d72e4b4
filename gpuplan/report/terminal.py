"""Diagnostics for people: code, place, the line, a caret, the remedy; all of them, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from gpuplan.diagnostics import Diagnostic, Severity
from gpuplan.report.paint import Paint, printable, width
from gpuplan.source import Place, SourceDocument, Sources, Span

WIDEST = 160  # characters shown of a line
Painter = Callable[[str], str]
_STYLE = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold blue"}


def render_diagnostics(
    diagnostics: Iterable[Diagnostic], sources: Sources, paint: Paint | None = None
) -> str:
    """All diagnostics, errors first, then by document and line, and a line that counts them."""
    shown = sorted(diagnostics, key=lambda d: _order(d, sources))
    if not shown:
        return ""
    paint = paint or Paint()
    blocks = [render_diagnostic(d, sources, paint) for d in shown]
    return "\n".join([*blocks, _count(shown, paint)])


def _order(diagnostic: Diagnostic, sources: Sources) -> tuple[int, str, int, int, str]:
    found = sources.locate(diagnostic.origin)
    line, column = (found[1].line, found[1].column) if found else (0, 0)
    document = diagnostic.origin.document if diagnostic.origin else ""
    return diagnostic.severity.rank, document, line, column, diagnostic.message


def render_diagnostic(diagnostic: Diagnostic, sources: Sources, paint: Paint) -> str:
    style = _STYLE[diagnostic.severity]
    edge = partial(paint, "blue")
    head = paint(style, f"{diagnostic.severity.value}[{diagnostic.rule}]")
    lines = [f"{head}: {paint('bold', printable(diagnostic.message))}"]
    gutter = 1
    found = sources.locate(diagnostic.origin)
    if found:
        gutter = len(str(found[1].line))
        lines += _excerpt(found, printable(diagnostic.label), gutter, edge, partial(paint, style))
    elif diagnostic.origin is not None:
        lines.append(f"{' ' * gutter}{edge('-->')} {printable(_where(diagnostic.origin))}")
    for related in diagnostic.related:
        place = sources.locate(related.origin)
        if place:
            lines.append(f"{' ' * gutter} {edge('::')} {printable(related.message)}")
            lines += _excerpt(place, "", gutter, edge, edge)
    if diagnostic.help:
        lines.append(f"{' ' * gutter} {edge('=')} help: {printable(diagnostic.help)}")
    return "\n".join(lines) + "\n"


def _where(origin: object) -> str:
    return origin.document if isinstance(origin, Place) else str(origin)


def _excerpt(
    place: tuple[SourceDocument, Span], label: str, gutter: int, edge: Painter, mark: Painter
) -> list[str]:
    document, span = place
    rows = document.text.split("\n")
    line = rows[span.line - 1] if span.line <= len(rows) else ""
    end = max(span.end_column - 1, span.column) if span.end_line == span.line else len(line)
    line, first, end = _window(line, span.column - 1, end)
    before, marked = line[:first], line[first:end]
    carets = "^" * max(1, width(marked.rstrip()))
    pad, bar = " " * gutter, edge("|")
    note = f" {label}" if label else ""
    return [
        f"{pad}{edge('-->')} {printable(document.path)}:{span.line}:{span.column}",
        f"{pad} {bar}",
        f"{edge(str(span.line).rjust(gutter))} {bar} {_tabs(printable_line(line))}",
        f"{pad} {bar} {' ' * width(_tabs(before))}{mark(carets + note)}",
    ]


def _window(line: str, first: int, end: int) -> tuple[str, int, int]:
    """The part of a long line around `first`, with the places of the mark in it."""
    if len(line) <= WIDEST:
        return line, first, end
    start = max(0, first - WIDEST // 2)
    lead, tail = "…" if start else "", "…" if start + WIDEST < len(line) else ""
    shift = start - len(lead)
    shown = f"{lead}{line[start : start + WIDEST]}{tail}"
    return shown, first - shift, min(end - shift, len(shown))


def _tabs(text: str) -> str:
    return text.replace("\t", "    ")


def printable_line(line: str) -> str:
    return "".join(c if c == "\t" or c.isprintable() else "·" for c in line)


def _count(diagnostics: list[Diagnostic], paint: Paint) -> str:
    counts = []
    for severity, noun in (
        (Severity.ERROR, "error"),
        (Severity.WARNING, "warning"),
        (Severity.INFO, "note"),
    ):
        number = sum(d.severity is severity for d in diagnostics)
        if number:
            counts.append(f"{number} {noun}{'s' if number > 1 else ''}")
    return paint("bold", ", ".join(counts))
