"""JSON as a small tree that knows its lines; a text that ends early gives the tree so far."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace

from gpuplan.inventory.readers.words import Line, Word, lines_of
from gpuplan.source import SourceDocument

DEEPEST = 100  # values in one another
_TOKEN = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"|[{}\[\]:,]|[-+.\w]+|\S')
_OPENERS = {"{": "}", "[": "]"}


@dataclass(slots=True)
class Json:
    """A value: `members` of an object (in order, without repeats), `items` of an array, or `data`.
    `closed` is false where the text ended inside it."""

    word: Word
    data: str | int | float | bool | None = None
    kind: str = "scalar"  # object, array
    members: dict[str, Json] = field(default_factory=dict)
    items: list[Json] = field(default_factory=list)
    closed: bool = True

    def text(self, key: str) -> Word | None:
        """A member's value as text; None where it is absent, null or no scalar."""
        found = self.members.get(key)
        if found is None or found.kind != "scalar" or found.data is None:
            return None
        return Word(text=str(found.data), place=found.word.place)


@dataclass(slots=True)
class Parsed:
    """The value read, and the word at which the text breaks off or stops being JSON."""

    value: Json | None
    fault: Word | None = None


def parse(document: SourceDocument, start: str) -> Parsed:
    """The value that begins with the first match of the pattern `start`."""
    match = re.search(start, document.text)
    if match is None:
        return Parsed(None)
    first = document.text.count("\n", 0, match.start())
    column = match.start() - (document.text.rfind("\n", 0, match.start()) + 1)
    return _Parser(lines_of(document)[first:], column).parse()


def _tokens(lines: tuple[Line, ...], column: int) -> list[Word]:
    found = []
    for number, line in enumerate(lines):
        skip = column + 1 if number == 0 else 0
        found += [
            line.word(match.start(), match.end())
            for match in _TOKEN.finditer(line.text)
            if line.columns[match.start()] >= skip
        ]
    return found


class _Parser:
    """Goes over the tokens with a stack, so that nothing is lost where they end."""

    def __init__(self, lines: tuple[Line, ...], column: int) -> None:
        self.tokens = _tokens(lines, column)
        self.at = 0

    def parse(self) -> Parsed:
        root: Json | None = None
        stack: list[tuple[Json, str | None]] = []
        while self.at < len(self.tokens):
            word = self.tokens[self.at]
            if stack and word.text == _OPENERS[_opener(stack[-1][0])]:
                stack.pop()[0].closed = True
                self.at += 1
                if not stack:
                    return Parsed(root)
                continue
            if word.text == "," and stack:
                self.at += 1
                continue
            key = self._key(stack)
            value = self._value()
            if value is None or len(stack) >= DEEPEST:
                return Parsed(root, self.tokens[min(self.at, len(self.tokens) - 1)])
            root = root or value
            self._place(stack, key, value)
            if value.kind != "scalar":
                stack.append((value, None))
            elif not stack:
                return Parsed(root)
        return Parsed(root, self.tokens[-1] if self.tokens else None)

    def _key(self, stack: list[tuple[Json, str | None]]) -> str | None:
        """The name before a member's value."""
        if not stack or stack[-1][0].kind != "object":
            return None
        pair = self.tokens[self.at : self.at + 2]
        name = _scalar(pair[0].text)
        if len(pair) < 2 or pair[1].text != ":" or not isinstance(name, str):
            return None
        self.at += 2
        return name

    def _value(self) -> Json | None:
        if self.at >= len(self.tokens):
            return None
        word = self.tokens[self.at]
        if word.text in _OPENERS:
            self.at += 1
            return Json(word, kind="object" if word.text == "{" else "array", closed=False)
        data = _scalar(word.text)
        if data is _NOTHING:
            return None
        self.at += 1
        return Json(_inner(word), data)  # type: ignore[arg-type]

    @staticmethod
    def _place(stack: list[tuple[Json, str | None]], key: str | None, value: Json) -> None:
        if not stack:
            return
        parent = stack[-1][0]
        if parent.kind == "array":
            parent.items.append(value)
        elif key is not None:
            parent.members.setdefault(key, value)


_NOTHING = object()


def _scalar(text: str) -> object:
    try:
        value = json.loads(text)
    except ValueError:
        return _NOTHING
    return _NOTHING if isinstance(value, (dict, list)) else value


def _opener(value: Json) -> str:
    return "{" if value.kind == "object" else "["


def _inner(word: Word) -> Word:
    """A string's place without its quotes."""
    if not word.text.startswith('"'):
        return word
    span = word.place.span
    inner = replace(span, column=span.column + 1, end_column=span.end_column - 1)
    return Word(text=word.text[1:-1], place=replace(word.place, span=inner))
