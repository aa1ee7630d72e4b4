"""Where a property of a plan stands in its canonical text: reports show a line, fingerprints never
hold one."""

from __future__ import annotations

import re

_PART = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")


def line_of(text: str, path: str) -> int | None:
    """The line of `workloads[assistant].memory` in the canonical YAML `text`, or of the nearest
    parent that is written there; None when not even the first part is. Names in brackets are values
    of the entry's `name`."""
    rows = text.split("\n")
    first, last, indent = 0, len(rows), 0
    line = None
    for match in _PART.finditer(path):
        name, key = match[1], match[2]
        if key is not None:
            at = _key(rows, first, last, indent, key)
        else:
            indent -= 2  # a list stands at the indentation of its key
            at = _item(rows, first, last, indent, name)
        if at is None:
            break
        line = at
        first, last = at + (key is not None), _end(rows, at, last, indent, is_item=key is None)
        indent += 2
    return None if line is None else line + 1


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip(" "))


def _key(rows: list[str], first: int, last: int, indent: int, key: str) -> int | None:
    head = " " * indent + f"{key}:"
    return next((i for i in range(first, last) if rows[i].startswith(head)), None)


def _item(rows: list[str], first: int, last: int, indent: int, name: str) -> int | None:
    pad = " " * indent
    block = tuple(f"{pad}- name: {text}" for text in (name, f'"{name}"'))
    flow = f'{pad}- {{"name": "{name}"'
    return next(
        (i for i in range(first, last) if rows[i] in block or rows[i].startswith(flow)), None
    )


def _end(rows: list[str], at: int, last: int, indent: int, *, is_item: bool) -> int:
    """The row after the value that begins at `at`."""
    for i in range(at + 1, last):
        row = rows[i]
        same = _indent(row) == indent
        if row and (
            _indent(row) < indent or (same and (is_item or not row.startswith("- ", indent)))
        ):
            return i
    return last
