"""What a terminal, a mail or a log puts around each line of an output, taken off."""

from __future__ import annotations

import re

# Colours and cursor moves of terminals, and what `script` and `less` leave behind.
_TERMINAL = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]|.\x08"
)
_UNSEEN = {ord("\ufeff"): None, ord("\u200b"): None, ord("\u00a0"): " "}
# What may stand before every line: the mark of a quotation, the time of a log.
_BEFORE = (
    re.compile(r"[ \t]*> ?"),
    re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]{8,18}(?:Z|[+-][0-9:]{4,6})? "),
)
_BLANKS = re.compile(r"[ \t]+")


def plain(text: str) -> str:
    """`text` as the tool printed it. Lines stay the lines they are; their columns may move."""
    if "\x1b" in text or "\x08" in text:
        text = _TERMINAL.sub("", text)
    rows = text.translate(_UNSEEN).split("\n")
    rows = [row.rstrip("\r") for row in rows]
    for before in _BEFORE:
        matches = [before.match(row) for row in rows]
        if all(m or not row.strip() for m, row in zip(matches, rows, strict=True)):
            rows = [row[m.end() :] if m else row for m, row in zip(matches, rows, strict=True)]
    width = _common_blanks(rows)
    return "\n".join(row[width:] for row in rows)


def _common_blanks(rows: list[str]) -> int:
    """How many blanks all lines that are not blank begin with, character for character."""
    common: str | None = None
    for row in rows:
        if row.strip():
            match = _BLANKS.match(row)
            blanks = match[0] if match else ""
            if common is None:
                common = blanks
            while not blanks.startswith(common):
                common = common[:-1]
            if not common:
                return 0
    return len(common or "")
