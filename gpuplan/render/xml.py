"""Text in XML 1.0, which cannot hold every character: not even a reference to U+0000 is allowed."""

from __future__ import annotations

import re

REPLACEMENT = "\ufffd"
_ILLEGAL = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ENTITIES = {ord(c): f"&#{ord(c)};" for c in "\t\n\r\"'&<>"}


def illegal(text: str) -> list[str]:
    """The characters of `text` that XML cannot hold, each once, sorted."""
    return sorted(set(_ILLEGAL.findall(text)))


def legal(text: str) -> str:
    """`text` with U+FFFD for each character that XML cannot hold."""
    return _ILLEGAL.sub(REPLACEMENT, text)


def quote(text: str) -> str:
    """`text` as the content of an element or of a quoted attribute. A character that XML cannot
    hold is a ValueError."""
    if _ILLEGAL.search(text):
        raise ValueError(f"XML cannot hold {text!r}")
    return text.translate(_ENTITIES)
