"""Expression trees as Python source, in the layout that `ruff format` keeps.

What fits on a line stays on it; everything else has one entry a line and a trailing comma. Strings
become literals by escaping, so no text can leave its quotes.
"""

from __future__ import annotations

import keyword
import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count

from gpuplan.frozen import frozen
from gpuplan.render.text import spaced, width

WIDTH = 100
STEP = 4


@frozen
class Name:
    """A reference, printed as it is: `cluster.provider`, `*addons.installed`."""

    text: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\*{0,2}[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", self.text, re.ASCII):
            raise ValueError(f"not a Python reference: {self.text!r}")


@frozen
class Call:
    """`function(*positional, **keywords)`."""

    function: str
    positional: tuple[Expression, ...] = ()
    keywords: tuple[tuple[str, Expression], ...] = ()


@frozen
class Commented:
    """A value with a comment on the lines above its entry."""

    comment: str
    value: Expression


Values = Sequence["Expression"] | Mapping[str, "Expression"]
Expression = str | int | float | None | Name | Call | Commented | Values

_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def identifier(text: str) -> str:
    """A variable name for a key: `tune-0` → `tune_0`."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_").lower()
    return f"_{name}" if not name or name[0].isdigit() or keyword.iskeyword(name) else name


def identifiers(texts: Iterable[str]) -> list[str]:
    """Variable names for `texts`, no two alike."""
    names: list[str] = []
    for base in map(identifier, texts):
        numbered = (f"{base}_{n}" for n in count(2))
        names.append(next(n for n in chain([base], numbered) if n not in names))
    return names


def literal(value: object) -> str:
    """A scalar or a collection of scalars on one line. Raises TypeError for anything else."""
    text = _flat(value)  # type: ignore[arg-type]
    if text is None:
        raise TypeError("a comment does not fit on the line of its value")
    return text


def expression(value: Expression, *, indent: int = 0, lead: str = "", trail: str = "") -> str:
    """Source of `value` behind `lead` (`name = `), from column `indent` on."""
    return "\n".join(_lines(value, indent, lead, trail))


def comment(text: str, indent: int = 0) -> str:
    """`text` as comment lines. Whatever could end a line is a space here."""
    words = " ".join(spaced(text).split())
    lines = _wrap(words, WIDTH - indent - 2)
    return "\n".join(f"{' ' * indent}# {line}".rstrip() for line in lines)


def _wrap(words: str, columns: int) -> list[str]:
    lines = textwrap.wrap(words, columns, break_on_hyphens=False)
    return lines or [""]


def _string(text: str) -> str:
    """A literal with the quotes that need fewer escapes, double ones first."""
    quote = "'" if text.count('"') > text.count("'") else '"'
    if text.isprintable() and quote not in text and "\\" not in text:
        return f"{quote}{text}{quote}"
    return quote + "".join(_character(c, quote) for c in text) + quote


def _character(char: str, quote: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char == quote:
        return "\\" + char
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _flat(value: Expression, room: float = math.inf) -> str | None:
    """`value` on one line, or None when a comment in it needs lines of its own, or when its entries
    need more than `room` characters."""
    if isinstance(value, Commented):
        return None
    if isinstance(value, str):
        return _string(value)
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, Name):
        return value.text
    opening, entries, closing = _parts(value)
    pieces = []
    for name, entry in entries:
        piece = _flat(entry, room)
        if piece is None:
            return None
        pieces.append(f"{name}{piece}")
        room -= len(pieces[-1])
        if room < 0:
            return None
    return f"{opening}{', '.join(pieces)}{closing}"


def _parts(value: Expression) -> tuple[str, list[tuple[str, Expression]], str]:
    """Brackets and entries of a call or a collection; an entry is what leads it, and its value."""
    if isinstance(value, Call):
        positional: list[tuple[str, Expression]] = [("", item) for item in value.positional]
        keywords: list[tuple[str, Expression]] = [(f"{name}=", v) for name, v in value.keywords]
        return f"{value.function}(", positional + keywords, ")"
    if isinstance(value, Mapping):
        return "{", [(f"{_string(name)}: ", item) for name, item in value.items()], "}"
    if isinstance(value, Sequence):
        return "[", [("", item) for item in value], "]"
    raise TypeError(f"not an expression: {type(value).__name__}")


def _lines(value: Expression, indent: int, lead: str, trail: str) -> Iterator[str]:
    pad = " " * indent
    if isinstance(value, Commented):
        yield comment(value.comment, indent)
        yield from _lines(value.value, indent, lead, trail)
        return
    flat = _flat(value, WIDTH)
    whole = None if flat is None else f"{pad}{lead}{flat}{trail}"
    if whole is not None and (width(whole) <= WIDTH or not _can_break(value)):
        yield whole
    elif isinstance(value, str):
        yield f"{pad}{lead}("
        yield from _pieces(value, indent + STEP)
        yield f"{pad}){trail}"
    else:
        opening, entries, closing = _parts(value)
        yield f"{pad}{lead}{opening}"
        for name, entry in entries:
            yield from _lines(entry, indent + STEP, name, ",")
        yield f"{pad}{closing}{trail}"


def _can_break(value: Expression) -> bool:
    if isinstance(value, str):
        return len(value) > 1
    return not isinstance(value, bool | int | float | Name | None) and bool(_parts(value)[1])


def _pieces(text: str, indent: int) -> Iterator[str]:
    """`text` as adjacent literals, one a line, broken behind a newline or a space."""
    pad, room = " " * indent, WIDTH - indent
    while text:
        end = _fitting(text, room)
        if end < len(text):
            cut = max(text.rfind("\n", 0, end), text.rfind(" ", 0, end))
            end = cut + 1 if cut >= 0 else end
        yield pad + _string(text[:end])
        text = text[end:]


def _fitting(text: str, room: int) -> int:
    """How many characters of `text` (at least one) fit as a literal into `room` columns."""
    low, high = 1, min(len(text), room)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if width(_string(text[:middle])) <= room else (low, middle - 1)
    return low
