"""Texts of a unit that Podman's generator copies into a command of systemd's.

Values come as Compose has them: `$$` is a dollar sign, and so it is in the command; `${NAME:?…}` is
a variable of .env, which systemd fills in as `${NAME}`, one word, whatever it holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from gpuplan.frozen import record
from gpuplan.render import python

EMPTY = "NOTHING"  # a variable without text: the generator ends a command at an empty word
_VARIABLE = re.compile(r"(?<!\$)((?:\$\$)*)\$\{([A-Z0-9_]+):\?[^}]*\}")
_QUOTED = re.compile(r"[\s\x00-\x1f\x7f\"'\\#;]")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


@record
class Line:
    """`NAME=VALUE`, where the value is text of the unit already; `why` stands above it."""

    key: str
    value: str
    why: str | None = None


def value(text: str) -> str:
    """One that is a line of its own and that the generator does not split."""
    return _VARIABLE.sub(r"\1${\2}", text).replace("%", "%%")


def word(text: str) -> str:
    """One of several in a line; quoted where it has to be."""
    if not text:
        return f"${{{EMPTY}}}"
    plain = value(text)
    if not _QUOTED.search(plain):
        return plain
    return '"' + "".join(_escaped(c) for c in plain) + '"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    return (
        character if ord(character) >= 32 and ord(character) != 127 else f"\\x{ord(character):02x}"
    )


def words(texts: Iterable[str]) -> str:
    return " ".join(word(text) for text in texts)


def unit(sections: Mapping[str, Sequence[Line]], title: str) -> str:
    """The file. Sections without lines are left out."""
    lines = [python.comment(title)]
    for name, entries in sections.items():
        if entries:
            lines += ["", f"[{name}]"]
            for entry in entries:
                lines += [python.comment(entry.why)] if entry.why else []
                lines.append(f"{entry.key}={entry.value}")
    return "\n".join(lines) + "\n"
