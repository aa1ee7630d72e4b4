"""Pydantic's error list as gpuplan diagnostics: one message a problem, at its own place.

A missing field is reported at the key of its nearest existing parent; an unknown one with the name
that was probably meant.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from gpuplan.diagnostics import Diagnostic, did_you_mean, error
from gpuplan.source import Origin, Path

_KINDS = {
    "string_type": "a text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "int_from_float": "a whole number",
    "finite_number": "a finite number",
}
_LIMITS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}


def unknown_field(name: str, known: tuple[str, ...], origin: Origin, home: str = "") -> Diagnostic:
    """`home` is a mapping that has a field of this name; empty where none has."""
    hints = (home and f"this is a field of '{home}'", did_you_mean(name, known))
    return error(
        "GP003",
        f"unknown field '{name}'",
        Origin(origin.document, origin.path, key=True),
        label=", or ".join(h for h in hints if h),
        help=f"fields here are {', '.join(known)}" if known else "this mapping takes no fields",
    )


def missing_field(name: str, meaning: str, parent: Origin) -> Diagnostic:
    return error(
        "GP004",
        f"missing field '{name}'",
        Origin(parent.document, parent.path, key=True),
        label=f"needs '{name}'",
        help=meaning or f"add '{name}'",
    )


def wrong_value(message: str, origin: Origin, label: str = "", remedy: str = "") -> Diagnostic:
    return error("GP005", message, origin, label=label, help=remedy)


def explain_errors(
    problem: ValidationError, document: str, data: object, root: type[BaseModel]
) -> Iterator[Diagnostic]:
    """A diagnostic for each error of `problem`."""
    for item in problem.errors():
        path = _existing(data, item["loc"])
        origin = Origin(document, path)
        if item["type"] == "missing":
            name = str(item["loc"][-1])
            yield missing_field(name, _meaning(_model_at(root, path), name), origin)
        elif item["type"] == "extra_forbidden":
            name, known = str(path[-1]), _fields(_model_at(root, path[:-1]))
            yield unknown_field(name, known, origin, _home(root, path[:-1], name))
        else:
            meaning = _meaning(_model_at(root, path[:-1]), str(path[-1])) if path else ""
            yield _value_problem(item, origin, meaning)


def _value_problem(item: Any, origin: Origin, meaning: str) -> Diagnostic:
    kind, context, value = item["type"], item.get("ctx", {}), item["input"]
    name = str(origin.path[-1]) if origin.path else "the document"
    if kind == "literal_error":
        choices = [
            c.strip().strip("'") for c in context["expected"].replace(" or ", ", ").split(",")
        ]
        hint = did_you_mean(str(value), choices)
        return wrong_value(
            f"'{value}' is not a value of '{name}'", origin, hint, f"use {', '.join(choices)}"
        )
    if kind == "value_error":
        return wrong_value(f"'{name}': {context['error']}", origin)
    if kind in _KINDS:
        return wrong_value(f"'{name}' must be {_KINDS[kind]}", origin, f"found {_describe(value)}")
    if kind in _LIMITS:
        key, words = _LIMITS[kind]
        return wrong_value(f"'{name}' must be {words} {context[key]}", origin, f"found {value}")
    if kind == "string_pattern_mismatch":
        remedy = meaning or f"it must match {context['pattern']}"
        return wrong_value(f"'{value}' is not a valid '{name}'", origin, remedy=remedy)
    if kind == "too_short":
        return wrong_value(f"'{name}' must not be empty", origin)
    return wrong_value(f"'{name}': {item['msg'][:1].lower()}{item['msg'][1:]}", origin)


def _describe(value: object) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return "nothing" if value is None else repr(value)


def _existing(data: object, loc: tuple[int | str, ...]) -> Path:
    """The part of `loc` that is in the file (pydantic adds tags and names that are not)."""
    path: list[int | str] = []
    for part in loc:
        in_list = isinstance(data, list) and isinstance(part, int) and part < len(data)
        if not in_list and not (isinstance(data, Mapping) and part in data):
            break
        data = data[part]  # type: ignore[index]
        path.append(part)
    return tuple(path)


def _models(annotation: Any) -> Iterator[Any]:
    """The types inside `annotation`, without Annotated, Optional and unions."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _models(get_args(annotation)[0])
    elif origin in (Union, types.UnionType):
        for arm in get_args(annotation):
            yield from _models(arm)
    else:
        yield annotation


def _model_at(root: type[BaseModel], path: Path) -> type[BaseModel] | None:
    current: Any = root
    for part in path:
        current = _step(current, part)
        if current is None:
            return None
    return current if isinstance(current, type) and issubclass(current, BaseModel) else None


def _step(current: Any, part: str | int) -> Any:
    if isinstance(current, type) and issubclass(current, BaseModel):
        for name, info in current.model_fields.items():
            if part in (name, info.alias):
                return next((m for m in _models(info.annotation) if m is not type(None)), None)
        return None
    arguments = get_args(current)
    return next(_models(arguments[-1]), None) if arguments else None


def _fields(model: type[BaseModel] | None) -> tuple[str, ...]:
    return tuple(i.alias or n for n, i in model.model_fields.items()) if model else ()


def _home(root: type[BaseModel], path: Path, name: str) -> str:
    """The mapping nearest to `path` that takes a field `name`; empty where none does."""
    for depth in range(len(path), -1, -1):
        around = path[:depth]
        here = _model_at(root, around)
        if name in _fields(here):
            return next((p for p in reversed(around) if isinstance(p, str)), "the document")
        for child in _fields(here):
            if name in _fields(_model_at(root, (*around, child))):
                return child
    return ""


def _meaning(model: type[BaseModel] | None, name: str) -> str:
    if model is None:
        return ""
    for field, info in model.model_fields.items():
        if name in (field, info.alias):
            kinds = [m for m in _models(info.annotation) if isinstance(m, type)]
            text = info.description or next((m.__doc__ or "" for m in kinds if m.__doc__), "")
            is_model = any(issubclass(m, BaseModel) for m in kinds)
            return " ".join(text.split()) if info.description or is_model else ""
    return ""
