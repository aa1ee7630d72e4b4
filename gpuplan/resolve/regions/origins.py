"""Where a person wrote what a region's own manifest was made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from gpuplan.diagnostics import Diagnostic
from gpuplan.resolve.regions.parts import OF_ONE
from gpuplan.source import Origin, Path

R = TypeVar("R")


def written(record: R, kept: Sequence[int], place: int | None = None) -> R:
    """`record` with each origin as it stands in the manifest of all regions: of the workloads those
    that were `kept`, of the platform what the entry `place` says."""
    if isinstance(record, Origin):
        return replace(record, path=_path(record.path, kept, place))
    if isinstance(record, tuple):
        return type(record)(written(item, kept, place) for item in record)
    if not is_dataclass(record) or isinstance(record, type):
        return record
    changed: dict[str, Any] = {}
    for field in fields(record):
        value = getattr(record, field.name)
        if isinstance(value, tuple) or is_dataclass(value):
            new = written(value, kept, place)
            if new is not value:
                changed[field.name] = new
    return replace(record, **changed) if changed else record


def _path(path: Path, kept: Sequence[int], place: int | None) -> Path:
    head, *rest = path or ("",)
    if head == "workloads" and rest and isinstance(rest[0], int) and rest[0] < len(kept):
        return ("workloads", kept[rest[0]], *rest[1:])
    entry = ("platform", "regions", "places")
    if head == "platform" and place is not None and rest[:1] == ["region"]:
        return (*entry, place, "region")
    own = rest[:1] == ["cluster"] and len(rest) > 1 and rest[1] in OF_ONE
    if head == "platform" and place is not None and own:
        return (*entry, place, *rest[1:])
    return path


def all_written(
    diagnostics: Sequence[Diagnostic], kept: Sequence[int], place: int | None = None
) -> tuple[Diagnostic, ...]:
    return tuple(written(d, kept, place) for d in diagnostics)
