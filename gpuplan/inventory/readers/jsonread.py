"""JSON as a small tree that knows its lines; a text that ends early gives the tree so far."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace

from gpuplan.inventory.readers.words import Line, Word, lines_of
from gpuplan.source import SourceDocument, Span

DEEPEST = 100  # values in one another
_TOKEN = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"|[{}\[\]:,]|[-+.\w]+|\S')
_OPENERS = {"{": "object", "[": "array"}
_CLOSERS = {"object": "}", "array": "]"}


@dataclass(slots=True)
class Json:
    """A value: `members` of an object (in order, without repeats), `items` of an array, or `data`.
    It begins at `word` (of a text, without its quotes), and in an object stands behind `key`. An
    object or array ends at `last`; `closed` is false where the text ended inside it."""

    word: Word
    data: str | int | float | bool | None = None
    kind: str = "scalar"  # object, array
    members: dict[str, Json] = field(default_factory=dict)
    items: list[Json] = field(default_factory=list)
    closed: bool = True
    key: Word | None = None
    last: Word | None = None

    @property
    def span(self) -> Span:
        """From its first character to its last, quotes and brackets with it."""
        first, quote = self.word.place.span, isinstance(self.data, str)
        end = self.last.place.span if self.last else first
        return Span(first.line, first.column - quote, end.end_line, end.end_column + quote)

    def text(self, key: str) -> Word | None:
        """A member's value as text; None where it is absent, null or no scalar."""
        member = self.members.get(key)
        if member is None or member.kind != "scalar" or member.data is None:
            return None
        return Word(text=str(member.data), place=member.word.place)


@dataclass(slots=True)
class Parsed:
    """The value read, and the word at which the text breaks off or stops being JSON. `repeats` are
    the places of a key that an object has already: the first, and the later one."""

    value: Json | None
    fault: Word | None = None
    repeats: list[tuple[Word, Word]] = field(default_factory=list)


def parse(document: SourceDocument, start: str) -> Parsed:
    """The value that begins with the first match of the pattern `start`."""
    match = re.search(start, document.text)
    if match is None:
        return Parsed(None)
    first = document.text.count("\n", 0, match.start())
    column = match.start() - (document.text.rfind("\n", 0, match.start()) + 1)
    return _Parser(lines_of(document)[first:], column).parse()


Token = tuple[re.Match[str], Line]


def _tokens(lines: tuple[Line, ...], column: int) -> list[Token]:
    tokens = []
    for number, line in enumerate(lines):
        skip = column + 1 if number == 0 else 0
        tokens += [
            (match, line) for match in _TOKEN.finditer(line.text) if match.start() + 1 >= skip
        ]
    return tokens


def _word(token: Token) -> Word:
    match, line = token
    return line.word(match.start(), match.end())


class _Parser:
    """Goes over the tokens with a stack, so that nothing is lost where they end."""

    def __init__(self, lines: tuple[Line, ...], column: int) -> None:
        self.tokens = _tokens(lines, column)
        self.at = 0
        self.stack: list[Json] = []
        self.repeats: list[tuple[Word, Word]] = []

    def parse(self) -> Parsed:
        root: Json | None = None
        while self.at < len(self.tokens):
            text = self.tokens[self.at][0][0]
            if self.stack and text == _CLOSERS[self.stack[-1].kind]:
                ended = self.stack.pop()
                ended.closed, ended.last = True, _word(self.tokens[self.at])
                self.at += 1
                if not self.stack:
                    return Parsed(root, repeats=self.repeats)
                continue
            if text == "," and self.stack:
                self.at += 1
                continue
            key = self._key()
            value = self._value()
            if value is None or len(self.stack) >= DEEPEST:
                fault = self.tokens[min(self.at, len(self.tokens) - 1)]
                return Parsed(root, _word(fault), self.repeats)
            root = root or value
            self._place(key, value)
            if value.kind != "scalar":
                self.stack.append(value)
            elif not self.stack:
                return Parsed(root)
        return Parsed(root, _word(self.tokens[-1]) if self.tokens else None, self.repeats)

    def _key(self) -> tuple[str, Word] | None:
        """The name before a member's value, and its place with the quotes."""
        if not self.stack or self.stack[-1].kind != "object":
            return None
        name, colon = _scalar(self.tokens[self.at][0][0]), self.at + 1
        if colon == len(self.tokens) or self.tokens[colon][0][0] != ":" or type(name) is not str:
            return None
        self.at += 2
        return name, _word(self.tokens[colon - 1])

    def _value(self) -> Json | None:
        if self.at >= len(self.tokens):
            return None
        token = self.tokens[self.at]
        text = token[0][0]
        data = None if text in _OPENERS else _scalar(text)
        if data is _NOTHING:
            return None
        self.at += 1
        if text in _OPENERS:
            return Json(_word(token), kind=_OPENERS[text], closed=False)
        return Json(_inner(_word(token)), data)  # type: ignore[arg-type]

    def _place(self, key: tuple[str, Word] | None, value: Json) -> None:
        if not self.stack:
            return
        parent = self.stack[-1]
        if parent.kind == "array":
            parent.items.append(value)
        elif key is not None:
            name, value.key = key
            first = parent.members.setdefault(name, value).key
            if first is not value.key and first is not None:
                self.repeats.append((first, value.key))


_NOTHING = object()


def _scalar(text: str) -> object:
    if len(text) > 1 and text[0] == '"' and "\\" not in text:
        return text[1:-1]
    try:
        value = json.loads(text)
    except ValueError:
        return _NOTHING
    return _NOTHING if isinstance(value, (dict, list)) else value


def _inner(word: Word) -> Word:
    """A string's place without its quotes."""
    if not word.text.startswith('"'):
        return word
    span = word.place.span
    inner = replace(span, column=span.column + 1, end_column=span.end_column - 1)
    return Word(text=word.text[1:-1], place=replace(word.place, span=inner))
