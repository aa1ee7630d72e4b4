"""Frozen, slotted dataclasses that share their methods.

`dataclass` compiles six methods for each class, which for a hundred classes takes longer than a
plan. Where millions of one class are made, its own `__init__` is faster: those stay dataclasses.
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from functools import cache, partial
from inspect import get_annotations
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """A frozen, slotted, keyword-only dataclass."""
    return _made(cls, _init)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """The same, whose values may also be given by position."""
    return _made(cls, _init_by_position)


def _made(cls: type[T], init: Callable[..., None]) -> type[T]:
    text = cls.__doc__
    cls.__doc__ = text or cls.__name__  # else `dataclass` puts a signature there, slowly
    kinds = get_annotations(cls)
    plain = not any("Var" in kind for kind in kinds.values())
    if plain:  # `dataclass` searches each text for the two kinds that are no fields, slowly
        cls.__annotations__ = dict.fromkeys(kinds, object)
    made: Any = dataclass(init=False, repr=False, eq=False, slots=True, kw_only=True)(cls)
    if plain:
        made.__annotations__ = kinds
        for item in fields(made):
            item.type = kinds.get(item.name, item.type)
    made.__doc__ = text
    made.__init__, made.__setattr__, made.__delattr__ = init, _refuse, _refuse
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


def _init_by_position(self: Any, *values: Any, **given: Any) -> None:
    names = [name for name, _ in _defaults(_kind(self))]
    if len(values) > len(names):
        raise TypeError(f"{type(self).__name__} has {len(names)} fields, not {len(values)}")
    _init(self, **dict(zip(names, values, strict=False)), **given)
    if (after := getattr(self, "__post_init__", None)) is not None:
        after()


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
