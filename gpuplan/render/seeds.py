"""A file that became the user's own, with the hints that a later stack adds to it."""

from __future__ import annotations

import re

# What a seed says of one setting: a text for people, and the command that sets it.
_HINT = re.compile(
    r"^# - [^\n]*\n(?:#   [^ \n][^\n]*\n)*#     pulumi config set (?:--secret )?(\S+)[^\n]*\n",
    re.MULTILINE,
)
_HEAD = re.compile(r"\A(?:#[^\n]*\n)*")


def refreshed(own: str, seed: str) -> str:
    """`own`, the user's text, with those hints of `seed` about settings that it never names; below
    the comments that it begins with. All else stays as it is."""
    hints = [h[0] for h in _HINT.finditer(seed) if not _names(own, h[1])]
    if not hints:
        return own
    head = _HEAD.match(own)
    end = head.end() if head else 0
    return own[:end] + "".join(hints) + own[end:]


def _names(text: str, setting: str) -> bool:
    return re.search(rf"(?<![A-Za-z0-9-]){re.escape(setting)}(?![A-Za-z0-9-])", text) is not None
