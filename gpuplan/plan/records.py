"""The record decorator, and the records of numbers and where they come from."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal, TypeVar, dataclass_transform

from gpuplan.source import Origin

T = TypeVar("T")
Basis = Literal["measured", "calibrated", "extrapolated", "derived"]


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """A frozen, slotted, keyword-only dataclass."""
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)


def origin_field() -> Origin | None:
    """An optional origin, which never makes two records differ."""
    return field(default=None, compare=False)


@record
class Estimate:
    """A predicted value with its 90 % interval (`low` ≤ `value` ≤ `high`)."""

    value: float
    low: float
    high: float
    basis: Basis


@record
class Input:
    """One input of a formula. `source` is `quantity:NAME` for another derived number, else a
    citation: `manifest: PATH`, `catalog: FILE FIELD (publisher, date)`, `default: FIELD`,
    `constant: …`."""

    name: str
    value: float
    unit: str
    source: str


@record
class Evidence:
    """How a number came about: `value` is `formula` evaluated over `inputs`. `quantity` is
    `WORKLOAD.NAME`. An overridden number keeps its derivation and carries `overridden_by`."""

    quantity: str
    value: float
    unit: str
    formula: str
    source: str
    inputs: tuple[Input, ...] = ()
    overridden_by: str | None = None


@record
class Shortfall:
    """A gate that a candidate did not pass: `requested` + `used` exceeds `capacity`."""

    resource: str
    requested: float
    used: float
    capacity: float
    unit: str


@record
class Flip:
    """What would have to change for a rejected candidate to be chosen."""

    quantity: str
    now: float
    needed: float
    unit: str


@record
class Alternative:
    """A candidate that was not chosen. `gate` names what rejected it (`cost` when it was feasible
    but dearer); `shortfalls` are the verdicts; `usd_per_hour` is None when unpriced."""

    gpu: str
    gpu_count: int
    tensor_parallel_size: int
    replicas: int
    usd_per_hour: Decimal | None
    gate: str
    shortfalls: tuple[Shortfall, ...] = ()
    flip: Flip | None = None


@record
class Override:
    """A value of the manifest that replaced a derived one."""

    quantity: str
    derived: float | None
    value: float | str
    unit: str
    origin: Origin | None = origin_field()
