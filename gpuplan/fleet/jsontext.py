"""JSON text → plain data; where each value stands is looked up only when something is wrong."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator

from gpuplan.diagnostics import Diagnostic
from gpuplan.fleet.messages import broken_text
from gpuplan.manifest.text import duplicate_key, too_deep
from gpuplan.source import Origin, Path, Place, SourceDocument, Span

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


class JsonDocument(SourceDocument):
    """A document whose spans are made at the first question."""

    __slots__ = ()

    def span(self, origin: Origin) -> Span | None:
        if not self.values:
            Spans(self).read()
        return SourceDocument.span(self, origin)


def read_json(name: str, text: str, path: str) -> tuple[SourceDocument, list[Diagnostic]]:
    """The document of `text`, and what is wrong with it as JSON."""
    document = JsonDocument(name, text, path)
    repeated: list[str] = []

    def pairs(found: list[tuple[str, object]]) -> dict[str, object]:
        data = dict(found)
        if len(data) < len(found):
            repeated.append(name)
        return data

    try:
        document.data = json.loads(text, object_pairs_hook=pairs, parse_constant=_refuse)
    except json.JSONDecodeError as problem:
        place = Span(problem.lineno, problem.colno, problem.lineno, problem.colno + 1)
        return document, [broken_text("JSON", problem.msg.lower(), Place(name, place))]
    except RecursionError:
        return document, [too_deep(path)]
    except ValueError as problem:  # a constant that JSON has not, or a number of 4,300 digits
        start = Place(name, Span(1, 1, 1, 2))
        return document, [broken_text("JSON", str(problem).partition(";")[0], start)]
    return document, list(Spans(document).read()) if repeated else []


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no number of JSON")


class Spans:
    """Reads the tokens of a valid text once more, and fills in where keys and values stand."""

    def __init__(self, document: SourceDocument) -> None:
        self.document = document
        text = document.text
        self.tokens = list(_TOKEN.finditer(text))
        self.lines = [0, *(m.end() for m in re.finditer("\n", text))]
        self.next = 0

    def read(self) -> Iterator[Diagnostic]:
        """Every key that a mapping has twice."""
        found: list[Diagnostic] = []
        self._value((), found)
        return iter(found)

    def _value(self, path: Path, found: list[Diagnostic]) -> None:
        first = self.tokens[self.next]
        self.next += 1
        if first[0] == "{":
            self._mapping(path, found)
        elif first[0] == "[":
            self._sequence(path, found)
        last = self.tokens[self.next - 1]
        self.document.values[path] = self._span(first.start(), last.end())

    def _mapping(self, path: Path, found: list[Diagnostic]) -> None:
        seen: dict[str, Span] = {}
        while self.tokens[self.next][0] != "}":
            token = self.tokens[self.next]
            key, span = str(json.loads(token[0])), self._span(token.start(), token.end())
            if key in seen:
                found.append(duplicate_key(self.document.name, key, seen[key], span))
            seen[key] = span
            self.document.keys[(*path, key)] = span
            self.next += 2
            self._value((*path, key), found)
            self._comma()
        self.next += 1

    def _sequence(self, path: Path, found: list[Diagnostic]) -> None:
        number = 0
        while self.tokens[self.next][0] != "]":
            self._value((*path, number), found)
            number += 1
            self._comma()
        self.next += 1

    def _comma(self) -> None:
        self.next += self.tokens[self.next][0] == ","

    def _span(self, start: int, end: int) -> Span:
        line, column = self._point(start)
        return Span(line, column, *self._point(end))

    def _point(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self.lines, offset)
        return line, offset - self.lines[line - 1] + 1
