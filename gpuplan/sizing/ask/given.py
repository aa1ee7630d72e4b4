"""Numbers that were given: by the manifest, or by the default of a field that was not written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

from gpuplan.sizing.ask.fields import ManifestField
from gpuplan.sizing.evidence.formula import Quantity

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Given(Quantity):
    """A number of `field`. `replaced` is the default that the manifest overrides."""

    field: ManifestField
    replaced: Quantity | None = None


def numbers(document: object) -> Iterator[Given]:
    """All numbers of a record and the records in it, in the order of their fields."""
    for value in _values(document).values():
        if isinstance(value, Given):
            yield value
        elif is_dataclass(value):
            yield from numbers(value)


def mapped(document: T, change: Callable[[Given], Given | None]) -> T:
    """The same record with every number as `change` makes it; None takes one away that need not be
    there."""
    changes = {}
    for name, value in _values(document).items():
        new = change(value) if isinstance(value, Given) else value
        if is_dataclass(value) and not isinstance(value, Quantity):
            new = mapped(value, change)
        if new is not value:
            changes[name] = new
    return replace(document, **changes) if changes else document  # type: ignore[type-var]


def _values(document: Any) -> dict[str, Any]:
    if isinstance(document, Quantity | type):
        return {}
    return {item.name: getattr(document, item.name) for item in fields(document)}
