"""Diagnostics for people: code, place, the line, a caret, the remedy; all of them, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from gpuplan.credentials import FORM
from gpuplan.diagnostics import Diagnostic, count_severities
from gpuplan.render.text import COLUMNS, fitted, printable, width, wrapped
from gpuplan.report.paint import STYLES, Paint, tag
from gpuplan.source import Place, SourceDocument, Sources, Span

LEAST = 44  # columns of a label that stands below its mark
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
    first, *rest = fitted(f"{head}: {printable(diagnostic.message)}").split("\n")
    lines = [f"{head}: {paint('bold', first.removeprefix(f'{head}: '))}"]
    lines += [paint("bold", line) for line in rest]
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
        lines += fitted(f"{' ' * gutter} {edge('=')} help: {printable(diagnostic.help)}").split(
            "\n"
        )
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
    line = FORM.sub(lambda secret: "*" * len(secret[0]), line)
    end = max(span.end_column - 1, span.column) if span.end_line == span.line else len(line)
    pad, bar = " " * gutter, edge("|")
    line, first, end = _window(line, span.column - 1, end, COLUMNS - gutter - 3)
    before, marked = line[:first], line[first:end]
    carets = "^" * max(1, width(marked.rstrip()))
    start = width(_tabs(before))
    notes = _beside_or_below(label, start, carets, COLUMNS - gutter - 3)
    return [
        f"{pad}{edge('-->')} {printable(document.path)}:{span.line}:{span.column}",
        f"{pad} {bar}",
        f"{edge(str(span.line).rjust(gutter))} {bar} {_tabs(printable_line(line))}",
        *(f"{pad} {bar} {' ' * column}{mark(text)}" for column, text in notes),
    ]


def _beside_or_below(label: str, start: int, carets: str, room: int) -> Iterator[tuple[int, str]]:
    """The mark and its label with their columns: on one line where both have room."""
    if not label or start + len(carets) + 1 + width(label) <= room:
        yield start, f"{carets} {label}".rstrip()
        return
    yield start, carets
    column = max(0, min(start, room - max(LEAST, *map(width, label.split()))))
    yield from ((column, line) for line in wrapped(label, room - column))


def _window(line: str, first: int, end: int, columns: int) -> tuple[str, int, int]:
    """The part of a long line around `first`, with the places of the mark in it."""
    if width(_tabs(line)) <= columns:
        return line, first, end
    start = first = min(first, len(line) - 1)
    while start and width(_tabs(line[start - 1 : end])) <= columns * 2 // 3:
        start -= 1
    stop = start + 1
    while stop < len(line) and width(_tabs(line[start : stop + 1])) <= columns - 2:
        stop += 1
    lead, tail = "…" if start else "", "…" if stop < len(line) else ""
    shift = start - len(lead)
    shown = f"{lead}{line[start:stop]}{tail}"
    return shown, first - shift, min(end - shift, len(shown))


def _tabs(text: str) -> str:
    return text.replace("\t", "    ")


def printable_line(line: str) -> str:
    return "".join(c if c == "\t" or c.isprintable() else "·" for c in line)
