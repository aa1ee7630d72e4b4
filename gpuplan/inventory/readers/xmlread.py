"""XML as a small tree that knows its lines, read with expat from wherever its root element starts.

What stands before the root is not parsed, so no document type is read and no entity can be
declared; a text that declares some is refused. A text that ends early gives the tree so far.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat  # positions; without a document type there is nothing to expand

from gpuplan.diagnostics import Diagnostic
from gpuplan.inventory.readers.gather import cut_off, unreadable
from gpuplan.inventory.readers.words import Word
from gpuplan.source import Place, SourceDocument, Span

DEEPEST = 200  # elements in one another; real files have some twenty
_ENTITY = re.compile(r"<!ENTITY\b", re.IGNORECASE)


@dataclass(slots=True)
class _Source:
    """The bytes that expat reads, and how its offsets become places."""

    document: str
    data: bytes
    starts: list[int]

    def place(self, start: int, end: int) -> Place:
        (line, column), (end_line, end_column) = self._point(start), self._point(end)
        return Place(self.document, Span(line, column, end_line, end_column))

    def _point(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self.starts, offset)
        before = self.data[self.starts[line - 1] : offset]
        return line, len(before.decode(errors="replace")) + 1


@dataclass(slots=True)
class Element:
    """An element; `closed` is false where the text ended inside it. `text` is what it says itself,
    without its children."""

    tag: str
    attributes: dict[str, str]
    source: _Source
    offset: int  # of its "<"
    children: list[Element] = field(default_factory=list)
    pieces: list[tuple[str, int]] = field(default_factory=list)
    closed: bool = False

    @property
    def text(self) -> str:
        return "".join(piece for piece, _ in self.pieces).strip()

    @property
    def place(self) -> Place:
        """The name in its start tag."""
        return self.source.place(self.offset + 1, self.offset + 1 + len(self.tag.encode()))

    def word(self) -> Word:
        """Its text and where that stands; the tag's place where there is none."""
        pieces = [(piece, at) for piece, at in self.pieces if piece.strip()]
        if not pieces:
            return Word(text="", place=self.place)
        (first, start), (last, at) = pieces[0], pieces[-1]
        start += len(first.encode()) - len(first.lstrip().encode())
        return Word(
            text=self.text, place=self.source.place(start, at + len(last.rstrip().encode()))
        )

    def attribute(self, name: str) -> Word | None:
        """An attribute's value and where it stands."""
        if name not in self.attributes:
            return None
        end = self.source.data.find(b"<", self.offset + 1)
        tag = self.source.data[self.offset : end if end >= 0 else None]
        match = re.search(rb"\s%s\s*=\s*(?:\"([^\"]*)\"|'([^']*)')" % re.escape(name.encode()), tag)
        place = self.place
        if match:
            start, stop = match.span(match.lastindex or 0)
            place = self.source.place(self.offset + start, self.offset + stop)
        return Word(text=self.attributes[name].strip(), place=place)

    def find(self, path: str) -> Element | None:
        """The first element at `a/b`, among children only."""
        element: Element | None = self
        for tag in path.split("/"):
            element = next((c for c in element.children if c.tag == tag), None) if element else None
        return element

    def all(self, tag: str) -> tuple[Element, ...]:
        """The children of that name."""
        return tuple(c for c in self.children if c.tag == tag)

    def value(self, path: str) -> Word | None:
        """The text at `a/b`; None where that is absent or was cut off, and may be half a value."""
        element = self.find(path)
        return element.word() if element and element.closed else None

    def walk(self) -> Iterator[Element]:
        """Itself and all below, in the order of the text."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting += reversed(element.children)


@dataclass(slots=True)
class Root:
    """What could be read of one root element, and what went wrong."""

    root: Element | None = None
    problems: tuple[Diagnostic, ...] = ()


def mentions(text: str, root: str) -> bool:
    """True where the text holds a start tag of `root`."""
    return _start(root).search(text) is not None


def read(document: SourceDocument, root: str, tool: str) -> tuple[Root, ...]:
    """One tree for each `root` element in a text, whatever stands around them."""
    data = document.text.encode("utf-8", "replace")
    starts = [0, *(m.end() for m in re.finditer(b"\n", data))]
    source = _Source(document.name, data, starts)
    declared = _ENTITY.search(document.text)
    if declared:
        before = len(document.text[: declared.start()].encode("utf-8", "replace"))
        place = source.place(before, before + len("<!ENTITY"))
        remedy = "give the file as the tool wrote it"
        return (Root(None, (unreadable(tool, "it declares entities", place, remedy),)),)
    trees, at = [], 0
    while match := re.compile(_start(root).pattern.encode()).search(data, at):
        tree, at = _Parser(source, root, tool).parse(match.start())
        trees.append(tree)
    return tuple(trees)


def _start(root: str) -> re.Pattern[str]:
    return re.compile(rf"<{root}(?=[\s/>])")


class _Done(Exception):
    """The root element has ended."""


class _TooDeep(Exception):
    """More elements in one another than any tool writes."""


class _Parser:
    """Builds one tree; `base` is where in the bytes its text starts."""

    def __init__(self, source: _Source, root: str, tool: str) -> None:
        self.source, self.root, self.tool = source, root, tool
        self.open: list[Element] = []
        self.top: Element | None = None
        self.base = 0
        self.expat = expat.ParserCreate("utf-8")
        self.expat.StartElementHandler = self._start
        self.expat.EndElementHandler = self._end
        self.expat.CharacterDataHandler = self._text

    def parse(self, base: int) -> tuple[Root, int]:
        """The tree that starts at byte `base`, and the byte after what was read of it."""
        self.base = base
        data, isfinal = self.source.data, True
        try:
            self.expat.Parse(data[base:], isfinal)
        except _Done:
            return Root(self.top), base + self.expat.CurrentByteIndex + 1
        except _TooDeep:
            problem = unreadable(self.tool, f"more than {DEEPEST} elements deep", self._here())
            return Root(None, (problem,)), len(data)
        except expat.ExpatError as fault:
            return Root(self.top, (self._fault(fault),)), self._next(data)
        return Root(self.top), len(data)

    def _fault(self, fault: expat.ExpatError) -> Diagnostic:
        last = self.open[-1] if self.open else None
        rest = self.source.data[self.base + max(0, self.expat.ErrorByteIndex) :]
        inside = f"it ends inside <{last.tag}>" if last else "it ends inside its first tag"
        ended = b">" not in rest or fault.code in _EARLY
        if ended:
            return cut_off(self.tool, inside, last.place if last else self._here())
        reason = expat.ErrorString(fault.code)
        return unreadable(self.tool, f"{reason}, and what follows is not read", self._here())

    def _here(self) -> Place:
        at = self.base + max(0, self.expat.CurrentByteIndex)
        at -= 2 if self.source.data[max(0, at - 2) : at] == b"</" else 0
        line_end = self.source.data.find(b"\n", at)
        end = line_end if line_end >= 0 else len(self.source.data)
        return self.source.place(at, max(at, min(end, at + 40)))

    def _next(self, data: bytes) -> int:
        """Where the next root may start after a fault: not inside this one."""
        end = data.find(f"</{self.root}>".encode(), self.base)
        return end + 1 if end >= 0 else len(data)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self.open) >= DEEPEST:
            raise _TooDeep
        offset = self.base + self.expat.CurrentByteIndex
        element = Element(tag, attributes, self.source, offset)
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.top = element
        self.open.append(element)

    def _end(self, _: str) -> None:
        self.open.pop().closed = True
        if not self.open:
            raise _Done

    def _text(self, text: str) -> None:
        if self.open:
            self.open[-1].pieces.append((text, self.base + self.expat.CurrentByteIndex))


_EARLY = frozenset(
    expat.errors.codes[message]
    for message in (
        expat.errors.XML_ERROR_NO_ELEMENTS,
        expat.errors.XML_ERROR_UNCLOSED_TOKEN,
        expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
        expat.errors.XML_ERROR_PARTIAL_CHAR,
    )
)
