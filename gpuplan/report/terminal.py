"""Diagnostics for people: code, place, the line, a caret, the remedy; all of them, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from gpuplan.diagnostics import Diagnostic, count_severities
from gpuplan.render.text import printable, width
from gpuplan.report.paint import STYLES, Paint, tag
from gpuplan.source import Place, SourceDocument, Sources, Span

WIDEST = 160  # characters shown of a line
Painter = Callable[[str], str]


def render_diagnostics(
    diagnostics: Iterable[Diagnostic], sources: Sources, paint: Paint | None = None
) -> str:
    """All diagnostics, errors first, then by document and line, and a line that counts them."""
    shown = sorted(diagnostics, key=lambda d: _order(d, sources))
    if not shown:
        return ""
    paint = paint or Paint()
    blocks = [render_diagnostic(d, sources, paint) for d in shown]
    return "\n".join([*blocks, paint("bold", count_severities(d.severity for d in shown))])


def _order(diagnostic: Diagnostic, sources: Sources) -> tuple[int, str, int, int, str]:
    place = sources.locate(diagnostic.origin)
    line, column = (place[1].line, place[1].column) if place else (0, 0)
    document = diagnostic.origin.document if diagnostic.origin else ""
    return diagnostic.severity.rank, document, line, column, diagnostic.message


def render_diagnostic(diagnostic: Diagnostic, sources: Sources, paint: Paint) -> str:
    edge, mark = partial(paint, "blue"), partial(paint, STYLES[diagnostic.severity])
    head = tag(paint, diagnostic.severity, diagnostic.rule)
    lines = [f"{head}: {paint('bold', printable(diagnostic.message))}"]
    gutter = 1
    place = sources.locate(diagnostic.origin)
    if place:
        gutter = len(str(place[1].line))
        lines += excerpt(place, printable(diagnostic.label), gutter, edge, mark)
    elif diagnostic.origin is not None:
        lines.append(f"{' ' * gutter}{edge('-->')} {printable(_where(diagnostic.origin))}")
    for related in diagnostic.related:
        if place := sources.locate(related.origin):
            lines.append(f"{' ' * gutter} {edge('::')} {printable(related.message)}")
            lines += excerpt(place, "", gutter, edge, edge)
    if diagnostic.help:
        lines.append(f"{' ' * gutter} {edge('=')} help: {printable(diagnostic.help)}")
    return "\n".join(lines) + "\n"


def _where(origin: object) -> str:
    return origin.document if isinstance(origin, Place) else str(origin)


def excerpt(
    place: tuple[SourceDocument, Span], label: str, gutter: int, edge: Painter, mark: Painter
) -> list[str]:
    """The place and the line of it, with carets and `label` below the span."""
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
