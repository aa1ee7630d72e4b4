"""Canonical YAML for machine-written documents: one way to write each tree, fast both ways.

The form is a subset of YAML 1.2 that every YAML reader accepts: block style, two spaces, scalars
and short flow collections written as JSON. `loads` reads exactly this subset, about fifty times
faster than a general YAML parser, and refuses anything else with `NotCanonical`; callers then fall
back to `ruamel.yaml`. People's own files never pass through here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from functools import cache, lru_cache
from json.encoder import encode_basestring
from types import NoneType
from typing import Any

Scalar = str | int | float | Decimal | bool | None
Data = Scalar | list["Data"] | tuple["Data", ...] | dict[str, "Data"]
_NESTED = (dict, list, tuple)

WIDTH = 100
_PLAIN = re.compile(r"[A-Za-z_](?:[A-Za-z0-9_./+@×·*(), -]*[A-Za-z0-9_./+@)])?", re.ASCII)
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*", re.ASCII)
_WORDS = {"true": True, "false": False, "null": None}
_KEYWORDS = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_QUANTITY = re.compile(r"\$?[0-9]+[a-z]*[ x.][A-Za-z0-9/% ]+")  # a text to YAML too
_ESCAPE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


class NotCanonical(ValueError):
    """The text is not in canonical form (it may still be YAML)."""


@lru_cache(maxsize=4096)
def quoted(text: str) -> str:
    """A double-quoted scalar that JSON and YAML 1.2 read alike."""
    return _ESCAPE.sub(lambda m: f"\\u{ord(m[0]):04x}", encode_basestring(text))


@lru_cache(maxsize=4096)
def _text(text: str) -> str:
    """Bare, where YAML reads a text so; quoted otherwise."""
    bare = _PLAIN.fullmatch(text) and text.casefold() not in _KEYWORDS
    return text if bare else quoted(text)


def scalar(value: Scalar, *, flow: bool = False) -> str:
    if isinstance(value, str):
        return quoted(value) if flow else _text(value)
    if (plainly := _PLAINLY.get(type(value))) is not None:
        return plainly(value)
    return _float(value) if isinstance(value, float) else str(value)  # of a class of its own


def _float(value: float) -> str:
    """With the point that YAML 1.1 wants before an exponent: `5e-07` is a text to its readers."""
    if value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    digits, exponent, power = repr(value).partition("e")
    return f"{digits}{'' if '.' in digits or not exponent else '.0'}{exponent}{power}"


_PLAINLY: dict[type, Callable[[Any], str]] = {
    NoneType: lambda _: "null",
    bool: lambda value: "true" if value else "false",
    float: _float,
    Decimal: lambda value: f"{value.normalize():f}",
}


@cache
def key(text: str) -> str:
    return text if _KEY.fullmatch(text) and text.casefold() not in _KEYWORDS else quoted(text)


def _flow(node: Data) -> str | None:
    """`node` as JSON when it is a collection of scalars whose texts a line has room for, else
    None."""
    length = 0
    for item in node.values() if isinstance(node, dict) else node:  # type: ignore[union-attr]
        if isinstance(item, str):
            length += len(item)
        elif isinstance(item, _NESTED):
            return None
    if length > WIDTH:
        return None
    if isinstance(node, dict):
        return f"{{{', '.join([f'{quoted(k)}: {_json(v)}' for k, v in node.items()])}}}"
    return f"[{', '.join(map(_json, node))}]"  # type: ignore[arg-type]


def inline(value: object) -> str:
    """A value as a person writes it on one line: quotes only where they are needed."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{k}: {inline(v)}' for k, v in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(inline, value))}]"
    if isinstance(value, str) and _QUANTITY.fullmatch(value):
        return value
    return scalar(value)  # type: ignore[arg-type]


def _json(node: Data) -> str:
    return scalar(node, flow=True)  # type: ignore[arg-type]


def _write(node: Data, indent: int, out: list[str], lead: str) -> None:
    """Lines of a collection onto `out`; `lead` stands before the first."""
    pad = " " * indent
    if isinstance(node, dict):
        for name, value in node.items():
            if isinstance(value, str):  # most of a tree
                out.append(f"{lead}{key(name)}: {_text(value)}")
            else:
                _entry(f"{lead}{key(name)}:", value, indent, out)
            lead = pad
        return
    for item in node:  # type: ignore[union-attr]
        if not isinstance(item, _NESTED):
            out.append(f"{lead}- {scalar(item)}")
        elif (flow := _flow(item)) is not None and len(flow) + indent + 2 <= WIDTH:
            out.append(f"{lead}- {flow}")
        else:
            within = "" if isinstance(item, dict) else " " * (indent + 2)
            _write(item, indent + 2, out, f"{lead}- {within}")
        lead = pad


def _entry(head: str, value: Data, indent: int, out: list[str]) -> None:
    if not isinstance(value, _NESTED):
        out.append(f"{head} {scalar(value)}")
        return
    flow = None if value and isinstance(value, dict) else _flow(value)
    if flow is not None and (not value or len(head) + 1 + len(flow) <= WIDTH):
        out.append(f"{head} {flow}")
        return
    out.append(head)
    inner = indent + (2 if isinstance(value, dict) else 0)
    _write(value, inner, out, " " * inner)


def dumps(tree: dict[str, Data]) -> str:
    """The canonical text of a mapping; ends with a newline."""
    out: list[str] = []
    _write(tree, 0, out, "")
    return "\n".join(out) + "\n"


# --- reading ---------------------------------------------------------------------------------

_ENTRY = re.compile(r'("(?:[^"\\]|\\.)*"):(?: (.*))?')


def _named(row: str) -> tuple[str, str] | None:
    """The key of a line and the text behind it; None where it is no entry of a mapping."""
    if row[:1] == '"':
        match = _ENTRY.fullmatch(row)
        return match and (str(_word(match[1])), match[2] or "")
    name, colon, text = row.partition(": ")
    if not colon:
        name, colon = row[:-1], row[-1:]
    return (name, text) if colon and colon[0] == ":" and _bare(name) else None


@lru_cache(maxsize=4096)
def _bare(name: str) -> bool:
    return _KEY.fullmatch(name) is not None


def _value(text: str) -> object:
    return _parsed(text) if text.startswith(("[", "{")) else _word(text)


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise NotCanonical(text) from problem


@lru_cache(maxsize=4096)
def _word(text: str) -> object:
    """Of a plan's, which has units, words and sources many times."""
    if text[:1] == '"' or _NUMBER.fullmatch(text):
        return _parsed(text)
    if text in _WORDS:
        return _WORDS[text]
    if _PLAIN.fullmatch(text):
        return text
    raise NotCanonical(text)


class _Reader:
    def __init__(self, text: str) -> None:
        lines = text.split("\n")
        self.rows = [
            (len(line) - len(row := line.lstrip(" ")), row)
            for line in lines
            if line and line[0] != "#"
        ]
        self.rows.append((-1, ""))
        self.at = 0

    def mapping(self, indent: int) -> dict[str, object]:
        tree: dict[str, object] = {}
        while True:
            depth, row = self.rows[self.at]
            if depth != indent or row.startswith("- "):
                return tree
            entry = _named(row)
            if entry is None:
                raise NotCanonical(row)
            name, text = entry
            if name in tree:
                raise NotCanonical(f"duplicate key {name}")
            self.at += 1
            tree[name] = _value(text) if text else self.block(indent)

    def block(self, parent: int) -> object:
        depth, row = self.rows[self.at]
        if depth == parent and row.startswith("- "):
            return self.sequence(parent)
        if depth != parent + 2:
            raise NotCanonical("a key without a value")
        return self.mapping(parent + 2)

    def sequence(self, indent: int) -> list[object]:
        items: list[object] = []
        while True:
            depth, row = self.rows[self.at]
            if depth != indent or not row.startswith("- "):
                return items
            rest = row[2:]
            if _named(rest) is not None:
                self.rows[self.at] = (indent + 2, rest)
                items.append(self.mapping(indent + 2))
            else:
                self.at += 1
                items.append(_value(rest))


def loads(text: str) -> dict[str, object]:
    """The tree of a canonical text. Raises `NotCanonical`."""
    reader = _Reader(text)
    tree = reader.mapping(0)
    if reader.at != len(reader.rows) - 1:
        raise NotCanonical(reader.rows[reader.at][1])
    return tree
