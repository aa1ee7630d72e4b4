"""Text where columns count: its width, cut to it, and without what could drive a terminal."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator

COLUMNS = 80  # of every answer on a terminal
# A space that a line may be broken at: none between a number and its unit, or before it and the
# sign that compares it, and none before a dot that parts two items.
_UNIT = r"(?:%|[kKMGTP]i?[Bb](?:/s)?|ms|µs|s|min|h|d|w|k?W)"
_GAP = re.compile(rf"(?<![><≥≤])(?:(?<!\d) | (?!{_UNIT}(?![\w/])))(?!·)")
_CODES = re.compile("\033\\[[0-9;]*m")


def width(text: str) -> int:
    """Columns that `text` takes on a terminal: none for a combining character or a code that
    colours, two for a wide character."""
    if "\033" in text:
        text = _CODES.sub("", text)
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def fitted(text: str, columns: int = COLUMNS) -> str:
    """`text` with lines of at most `columns`, broken between words; what follows a break stands
    below the words that the line's label is followed by. A longer word stays whole."""
    return "\n".join(part for line in text.split("\n") for part in _fitted(line, columns))


def wrapped(text: str, columns: int) -> Iterator[str]:
    """The words of `text` in lines of at most `columns`; a longer word has a line of its own."""
    line: str | None = None
    for word in _GAP.split(text):
        longer = word if line is None else f"{line} {word}"
        if line is not None and line.strip() and width(longer) > columns:
            yield line.rstrip()
            line = word or None
        else:
            line = longer
    yield (line or "").rstrip()


def _fitted(line: str, columns: int) -> Iterator[str]:
    if width(line) <= columns:
        yield line
        return
    plain = _CODES.sub("", line)
    label = re.match(r" *(?:= help: |\S.{0,30}?(?:: | {2,}))?", plain)
    assert label is not None
    indent = len(plain) - len(plain.lstrip())
    hang = label.end() if indent < label.end() <= columns // 2 else min(indent, columns // 2) + 2
    first, *rest = wrapped(line, columns)
    yield first
    if rest:
        yield from (f"{' ' * hang}{part}" for part in wrapped(" ".join(rest), columns - hang))


def shortened(text: str, columns: int) -> str:
    """`text` in at most `columns`, with an ellipsis where some of it is left off."""
    if width(text) <= columns:
        return text
    kept = bisect_right(range(1, len(text)), columns - 1, key=lambda end: width(text[:end]))
    return f"{text[:kept]}…"


def printable(text: str) -> str:
    """`text` with escapes for control characters, so that no input can drive the terminal."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def spaced(text: str) -> str:
    """`text` with a space for each control character and line break."""
    return "".join(c if c.isprintable() else " " for c in text)
