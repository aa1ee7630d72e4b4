"""Text in XML 1.0, which cannot hold every character: not even a reference to U+0000 is allowed."""

from __future__ import annotations

import re

REPLACEMENT = "\ufffd"
_ILLEGAL = "[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"  # slow to compile: when used
_ENTITIES = {ord(c): f"&#{ord(c)};" for c in "\t\n\r\"'&<>"}


def illegal(text: str) -> list[str]:
    """The characters of `text` that XML cannot hold, each once, sorted."""
    return sorted(set(re.findall(_ILLEGAL, text)))


def legal(text: str) -> str:
    """`text` with U+FFFD for each character that XML cannot hold."""
    return re.sub(_ILLEGAL, REPLACEMENT, text)


def quote(text: str) -> str:
    """`text` as the content of an element or of a quoted attribute. A character that XML cannot
    hold is a ValueError."""
    if re.search(_ILLEGAL, text):
        raise ValueError(f"XML cannot hold {text!r}")
    return text.translate(_ENTITIES)
