"""Text where columns count: its width, cut to it, and without what could drive a terminal."""

from __future__ import annotations

import unicodedata


def width(text: str) -> int:
    """Columns that `text` takes on a terminal: none for a combining character, two for a wide
    one."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def shortened(text: str, columns: int) -> str:
    """`text` in at most `columns`, with an ellipsis where some of it is left off."""
    if width(text) <= columns:
        return text
    while text and width(text) > columns - 1:
        text = text[:-1]
    return f"{text}…"


def printable(text: str) -> str:
    """`text` with escapes for control characters, so that no input can drive the terminal."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def spaced(text: str) -> str:
    """`text` with a space for each control character and line break."""
    return "".join(c if c.isprintable() else " " for c in text)
