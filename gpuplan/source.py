"""Where a value stands in the text a person wrote.

An `Origin` is symbolic (document and path), so moving a YAML line changes no plan. A `Span` is a
place in the text; spans are looked up once, at the edge, when a diagnostic is printed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gpuplan.frozen import frozen

Path = tuple[str | int, ...]


@frozen
class Span:
    """A half-open range of text; lines and columns count from 1, columns in characters."""

    line: int
    column: int
    end_line: int
    end_column: int


@frozen
class Origin:
    """A node of a document, by path from the document's root; `key` points at the node's key."""

    document: str
    path: Path = ()
    key: bool = False

    def __str__(self) -> str:
        return f"{self.document}:{format_path(self.path)}" if self.path else self.document

    def child(self, *parts: str | int) -> Origin:
        return Origin(self.document, (*self.path, *parts))


@frozen
class Place:
    """A span of a named text, for problems found before a document has a tree."""

    document: str
    span: Span


def format_path(path: Path) -> str:
    """`("workloads", 0, "load")` → `workloads[0].load`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else part)
    return text


@dataclass(slots=True)
class SourceDocument:
    """One YAML document: its plain data and the span of each key and value. `path` is how the
    person named the file; it is shown, and never stored."""

    name: str
    text: str
    path: str = ""
    data: object = None
    keys: dict[Path, Span] = field(default_factory=dict)
    values: dict[Path, Span] = field(default_factory=dict)

    def span(self, origin: Origin) -> Span | None:
        """The span of `origin`, or of the key of its nearest existing parent."""
        path = origin.path
        if path in self.values and not (origin.key and path in self.keys):
            return self.values[path]
        while path:
            if path in self.keys:
                return self.keys[path]
            path = path[:-1]
        return self.values.get(())


@dataclass(slots=True)
class Sources:
    """All texts of one run, by document name."""

    documents: dict[str, SourceDocument] = field(default_factory=dict)

    def add(self, document: SourceDocument) -> None:
        self.documents[document.name] = document

    def locate(self, where: Origin | Place | None) -> tuple[SourceDocument, Span] | None:
        if where is None or where.document not in self.documents:
            return None
        document = self.documents[where.document]
        span = where.span if isinstance(where, Place) else document.span(where)
        return (document, span) if span else None
