"""A chart of a page: lines and texts with their coordinates, which a template prints."""

from __future__ import annotations

from gpuplan.frozen import record


@record
class Line:
    path: str
    style: str


@record
class Label:
    x: int
    y: int
    text: str
    style: str


@record
class Chart:
    """`description` says in words what it shows."""

    key: str
    title: str
    description: str
    width: int
    height: int
    lines: tuple[Line, ...]
    labels: tuple[Label, ...]
