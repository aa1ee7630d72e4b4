"""Frozen dataclasses that share their methods.

`dataclass` compiles six methods for each class, which for a hundred classes takes longer than a
plan. Where millions of one class are made, its own `__init__` is faster: those stay dataclasses.
What a record holds is in its own dictionary: with slots each class would be made twice, and none
could have a `cached_property`. A record's `__post_init__` is taken when its class is made; its
equality and hash are those here.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from functools import cache, partial
from inspect import get_annotations
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """A frozen, keyword-only dataclass."""
    return _made(cls, _init)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """The same, whose values may also be given by position."""
    return _made(cls, _init_by_position)


def _made(cls: type[T], init: Callable[..., None]) -> type[T]:
    text = cls.__doc__
    cls.__doc__ = text or cls.__name__  # else `dataclass` puts a signature there, slowly
    kinds = get_annotations(cls)
    plain = all(isinstance(kind, str) and "Var" not in kind for kind in kinds.values())
    if plain:  # `dataclass` searches each text for the two kinds that are no fields, slowly
        cls.__annotations__ = dict.fromkeys(kinds, object)
    made: Any = dataclass(init=False, repr=False, eq=False, kw_only=True)(cls)
    if plain:
        made.__annotations__ = kinds
        for item in fields(made):
            item.type = kinds.get(item.name, item.type)
    made.__doc__ = text
    made.__init__ = _checked(init) if hasattr(made, "__post_init__") else init
    made.__setattr__, made.__delattr__ = _refuse, _refuse
    made.__eq__, made.__hash__, made.__reduce__ = _equal, _hash, _reduce
    if made.__repr__ is object.__repr__:
        made.__repr__ = _repr
    return typing.cast(type[T], made)


@cache
def _known(
    kind: Any,
) -> tuple[tuple[str, ...], frozenset[str], dict[str, Any], dict[str, Callable[[], Any]]]:
    """The names of a record's fields, in order and as a set; the values of those that have a
    default, and what makes those of others."""
    items = fields(kind)
    values = {i.name: i.default for i in items if i.default is not MISSING}
    made = {i.name: i.default_factory for i in items if i.default_factory is not MISSING}
    names = tuple(i.name for i in items)
    return names, frozenset(names), values, made


@cache
def _compared(kind: Any) -> Callable[[Any], Any]:
    names = [item.name for item in fields(kind) if item.compare]
    return attrgetter(*names) if names else lambda _: ()


def _kind(self: object) -> Any:
    return type(self)


def _init(self: Any, **given: Any) -> None:
    names, known, values, made = _known(_kind(self))
    held = self.__dict__
    held.update(values)
    held.update(given)
    for name, make in made.items():
        if name not in given:
            held[name] = make()
    if held.keys() != known:
        raise TypeError(_unfit(type(self).__name__, names, held))


def _unfit(record: str, names: tuple[str, ...], held: Mapping[str, Any]) -> str:
    missing = next((name for name in names if name not in held), None)
    if missing is not None:
        return f"{record} needs '{missing}'"
    return f"{record} has no {', '.join(sorted(held.keys() - set(names)))}"


def _init_by_position(self: Any, *values: Any, **given: Any) -> None:
    names = _known(_kind(self))[0]
    if len(values) == len(names) and not given:
        self.__dict__.update(zip(names, values, strict=True))
    elif len(values) > len(names):
        raise TypeError(f"{type(self).__name__} has {len(names)} fields, not {len(values)}")
    else:
        _init(self, **dict(zip(names, values, strict=False)), **given)


def _checked(init: Callable[..., None]) -> Callable[..., None]:
    def made(self: Any, *values: Any, **given: Any) -> None:
        init(self, *values, **given)
        self.__post_init__()

    return made


def _refuse(self: Any, name: str, *_: Any) -> None:
    raise FrozenInstanceError(f"{type(self).__name__}.{name} cannot be changed")


def _equal(self: Any, other: object) -> Any:
    if type(self) is not type(other):
        return NotImplemented
    values = _compared(_kind(self))
    return values(self) == values(other)


def _hash(self: Any) -> int:
    return hash(_compared(_kind(self))(self))


def _repr(self: Any) -> str:
    values = (f"{n}={getattr(self, n)!r}" for n in _known(_kind(self))[0])
    return f"{type(self).__qualname__}({', '.join(values)})"


def _reduce(self: Any) -> Any:
    values = {n: getattr(self, n) for n in _known(_kind(self))[0]}
    return partial(_kind(self), **values), ()
