"""The record decorator, and the records of numbers and where they come from."""

from __future__ import annotations

import typing
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from decimal import Decimal
from functools import cache, partial
from typing import Any, Literal, TypeVar, dataclass_transform

from gpuplan.source import Origin

T = TypeVar("T")
Basis = Literal["measured", "calibrated", "extrapolated", "derived"]


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """A frozen, slotted, keyword-only dataclass. All share these methods: `dataclass` compiles six
    for each class, which for a hundred classes takes longer than a plan."""
    text = cls.__doc__
    cls.__doc__ = text or cls.__name__  # else `dataclass` puts a signature there, slowly
    made: Any = dataclass(init=False, repr=False, eq=False, slots=True, kw_only=True)(cls)
    made.__doc__ = text
    made.__init__, made.__setattr__, made.__delattr__ = _init, _refuse, _refuse
    made.__eq__, made.__hash__, made.__reduce__ = _equal, _hash, _reduce
    if made.__repr__ is object.__repr__:
        made.__repr__ = _repr
    return typing.cast(type[T], made)


@cache
def _defaults(kind: Any) -> tuple[tuple[str, Callable[[], Any] | None], ...]:
    """The fields of a record's class, with what makes their defaults."""

    def default(item: Field[Any]) -> Callable[[], Any] | None:
        if item.default_factory is not MISSING:
            return item.default_factory
        return None if item.default is MISSING else lambda: item.default

    return tuple((item.name, default(item)) for item in fields(kind))


@cache
def _compared(kind: Any) -> tuple[str, ...]:
    return tuple(item.name for item in fields(kind) if item.compare)


def _kind(self: object) -> Any:
    return type(self)


def _init(self: Any, **given: Any) -> None:
    place = object.__setattr__
    for name, default in _defaults(_kind(self)):
        if name in given:
            place(self, name, given.pop(name))
        elif default is not None:
            place(self, name, default())
        else:
            raise TypeError(f"{type(self).__name__} needs '{name}'")
    if given:
        raise TypeError(f"{type(self).__name__} has no {', '.join(given)}")


def _refuse(self: Any, name: str, *_: Any) -> None:
    raise FrozenInstanceError(f"{type(self).__name__}.{name} cannot be changed")


def _equal(self: Any, other: object) -> Any:
    if type(self) is not type(other):
        return NotImplemented
    return all(getattr(self, n) == getattr(other, n) for n in _compared(_kind(self)))


def _hash(self: Any) -> int:
    return hash(tuple(getattr(self, n) for n in _compared(_kind(self))))


def _repr(self: Any) -> str:
    values = (f"{n}={getattr(self, n)!r}" for n, _ in _defaults(_kind(self)))
    return f"{type(self).__qualname__}({', '.join(values)})"


def _reduce(self: Any) -> Any:
    values = {n: getattr(self, n) for n, _ in _defaults(_kind(self))}
    return partial(_kind(self), **values), ()


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
    but dearer); `shortfalls` are the verdicts; `usd_per_hour` is None when unpriced; `node_type` is
    of nodes that would be bought."""

    gpu: str
    node_type: str | None = None
    gpu_count: int
    tensor_parallel_size: int
    replicas: int
    usd_per_hour: Decimal | None
    gate: str
    shortfalls: tuple[Shortfall, ...] = ()
    flip: Flip | None = None


@record
class Tradeoff:
    """A layout that meets every objective and that no other beats in cost, latency and headroom
    together. `request_latency` is the likely mean in seconds at the sized peak, `headroom` the
    requests per second that it serves over those that it must. `node_type` is of nodes that are
    bought."""

    gpu: str
    node_type: str | None = None
    partition: str | None
    gpu_count: int
    tensor_parallel_size: int
    replicas: int
    usd_per_hour: Decimal | None
    request_latency: float
    headroom: float
    chosen: bool


@record
class Override:
    """A value of the manifest that replaced a derived one."""

    quantity: str
    derived: float | None
    value: float | str
    unit: str
    origin: Origin | None = origin_field()
