"""JSON text → plain data; where each value stands is looked up only when something is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator

from gpuplan.diagnostics import Diagnostic
from gpuplan.fleet.messages import broken_text
from gpuplan.inventory.readers.jsonread import Json, parse
from gpuplan.manifest.text import duplicate_key, json_place, json_words, too_deep
from gpuplan.source import Origin, Path, Place, SourceDocument, Span


class JsonDocument(SourceDocument):
    """A document whose spans are made at the first question."""

    __slots__ = ()

    def span(self, origin: Origin) -> Span | None:
        if not self.values:
            _locate(self)
        return SourceDocument.span(self, origin)


def read_json(name: str, text: str, path: str) -> tuple[SourceDocument, list[Diagnostic]]:
    """The document of `text`, and what is wrong with it as JSON."""
    document = JsonDocument(name, text, path)
    repeated: list[str] = []

    def mapping(members: list[tuple[str, object]]) -> dict[str, object]:
        data = dict(members)
        if len(data) < len(members):
            repeated.append(name)
        return data

    try:
        document.data = json.loads(text, object_pairs_hook=mapping, parse_constant=_refuse)
    except RecursionError:
        return document, [too_deep(path)]
    except ValueError as problem:  # also a constant that JSON has not, or 4,300 digits
        line, column = json_place(text, problem)
        place = Place(name, Span(line, column, line, column + 1))
        return document, [broken_text("JSON", json_words(problem), place)]
    return document, list(_locate(document)) if repeated else []


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no number of JSON")


def _locate(document: SourceDocument) -> Iterator[Diagnostic]:
    """Fill in where keys and values stand; every key that a mapping has twice."""
    parsed = parse(document, r"\S")
    if parsed.value is not None:
        _fill(document, (), parsed.value)
    return (
        duplicate_key(document.name, json.loads(later.text), first.place.span, later.place.span)
        for first, later in parsed.repeats
    )


def _fill(document: SourceDocument, path: Path, value: Json) -> None:
    document.values[path] = value.span
    for name, member in value.members.items():
        if member.key is not None:
            document.keys[(*path, name)] = member.key.place.span
        _fill(document, (*path, name), member)
    for number, item in enumerate(value.items):
        _fill(document, (*path, number), item)
