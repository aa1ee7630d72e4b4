"""Text from elsewhere inside Markdown: data, never markup."""

from __future__ import annotations

import re

from gpuplan.render.text import spaced

# A colon is markup in `https://…` and in `:emoji:`, a dollar between two of them (GitHub).
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&$@]|:(?=//|[\w+-]+:))")
_LIST = re.compile(r"^(?:(?=[-+=])|(\d+)(?=[.)](?:\s|$)))")


def escape(text: str) -> str:
    """Inline text on one line: markup characters escaped, line breaks and controls as spaces."""
    line = " ".join(spaced(text).split())
    return _LIST.sub(r"\1\\", _SPECIAL.sub(r"\\\1", line))


def code(text: str) -> str:
    """A code span that holds `text` literally, also in a table cell."""
    line = spaced(text).replace("|", "\\|")
    fence = "`" * (max((len(m) for m in re.findall("`+", line)), default=0) + 1)
    pad = " " if "`" in line else ""
    return f"{fence}{pad}{line}{pad}{fence}"
