"""Pydantic's error list as gpuplan diagnostics: one message a problem, at its own place.

A missing field is reported at the key of its nearest existing parent; an unknown one with the name
that was probably meant.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from gpuplan.diagnostics import Change, Diagnostic, did_you_mean, error, nearest, remedied
from gpuplan.manifest.base import RULES, Shorthand
from gpuplan.manifest.synonyms import meant, meant_value, snake
from gpuplan.render import yaml
from gpuplan.source import Origin, Path
from gpuplan.targets import OTHER_NAMES

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
_THOUSANDS = re.compile(r"\d{3}(?!\d)")
_LIMITS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}


def unknown_field(
    name: str,
    known: tuple[str, ...],
    origin: Origin,
    home: str = "",
    synonyms: Sequence[str] = (),
) -> Diagnostic:
    """`home` is a mapping that has a field of this name, empty where none has; `synonyms` are
    fields that it is another word for."""
    beside = [path.rpartition(".")[2] for path in synonyms]
    own = next((n for n in (snake(name), *beside) if n in known), "")
    others = " or ".join(f"'{path}'" for path in synonyms)
    hints = (
        home and not own and f"this is a field of '{home}'",
        f"did you mean '{own}'?" if own else others and f"write {others}",
        "" if own or others else did_you_mean(name, known),
    )
    return error(
        "GP003",
        f"unknown field '{name}'",
        Origin(origin.document, origin.path, key=True),
        label=", or ".join(h for h in hints if h),
        help=f"fields here are {', '.join(known)}" if known else "this mapping takes no fields",
    )


def missing_field(
    name: str, meaning: str, example: str, parent: Origin, value: object = None
) -> Diagnostic:
    """`example` shows the field with the `value`, which a person puts there and then corrects."""
    problem = error(
        "GP004",
        f"missing field '{name}'",
        Origin(parent.document, parent.path, key=True),
        label=f"needs '{name}'",
        help=" ".join(t for t in (meaning, f"For example `{example}`" if example else "") if t)
        or f"add '{name}'",
    )
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return problem
    return remedied(problem, (Change(parent.child(name), value),))


def wrong_value(message: str, origin: Origin, label: str = "", remedy: str = "") -> Diagnostic:
    return error("GP005", message, origin, label=label, help=remedy)


def explain_errors(
    problem: ValidationError, document: str, data: object, root: type[BaseModel]
) -> Iterator[Diagnostic]:
    """A diagnostic for each error of `problem`; a field that another was meant to be is not said to
    be missing."""
    errors = problem.errors()
    slips = set(_slips(errors, data, root))
    for item in errors:
        path = _existing(data, item["loc"])
        of_key = item["loc"][-1:] == ("[key]",)
        origin = Origin(document, path, key=of_key)
        if item["type"] == "missing":
            name = str(item["loc"][-1])
            if (path, name) in slips:
                continue
            info = _info(_model_at(root, path), name)
            value = next(iter((info and info.examples) or ()), None)
            yield missing_field(name, _meaning(info), _example(name, info), origin, value)
        elif item["type"] == "extra_forbidden":
            name, known = str(path[-1]), _fields(_model_at(root, path[:-1]))
            home = _home(root, path[:-1], name)
            said = unknown_field(name, known, origin, home, _synonyms(root, name))
            yield _of_a_number(said, data, path) or said
        else:
            yield _value_problem(item, origin, root)


def _of_a_number(problem: Diagnostic, data: object, path: Path) -> Diagnostic | None:
    """Of `{budget: $5,000/month}` the field `000/month`: what a comma cut off."""
    *parent, name = path
    for step in parent:
        data = data[step]  # type: ignore[index]
    if not isinstance(data, Mapping) or name not in data or not _THOUSANDS.match(str(name)):
        return None
    keys = list(data)
    before = str(keys[max(keys.index(name) - 1, 0)])
    whole = f"{data[before]},{name}" if before in data else ""
    if not whole[:1].isdigit() and not whole.startswith("$"):
        return None
    return replace(
        problem,
        label="inside { } a comma ends a value",
        help=f'write `{before}: "{whole}"`, in quotes',
    )


def _slips(
    errors: Iterable[Any], data: object, root: type[BaseModel]
) -> Iterator[tuple[Path, str]]:
    """Of fields that are unknown, where they stand and what they were probably meant to be."""
    for item in errors:
        if item["type"] == "extra_forbidden":
            *parent, name = _existing(data, item["loc"])
            known = _fields(_model_at(root, tuple(parent)))
            words = (snake(str(name)), *(p.rpartition(".")[2] for p in _synonyms(root, str(name))))
            own = next((n for n in words if n in known), None)
            if own or (own := nearest(str(name), known)):
                yield tuple(parent), own


def _value_problem(item: Any, origin: Origin, root: type[BaseModel]) -> Diagnostic:
    kind, context, value = item["type"], item.get("ctx", {}), item["input"]
    name, info = _subject(origin), _info_at(root, origin.path)
    example = _for_example(origin, info)
    if kind == "literal_error":
        choices = [
            c.strip().strip("'") for c in context["expected"].replace(" or ", ", ").split(",")
        ]
        meant = meant_value(OTHER_NAMES.get(str(value), str(value)))
        remedy = _meaning(info)
        if not all(re.search(rf"\b{re.escape(c)}\b", remedy) for c in choices):
            remedy = f"use {', '.join(choices)}{f': {remedy}' if remedy else ''}"
        return wrong_value(
            f"'{value}' is not a value of {name}", origin, did_you_mean(meant, choices), remedy
        )
    if kind == "value_error":
        return wrong_value(f"{name}: {context['error']}", origin, remedy=example)
    if kind in _KINDS:
        expected = _shorthand(info, _model_at(root, origin.path)) if kind == "model_type" else ""
        message = f"{name} must be {expected or _KINDS[kind]}"
        return wrong_value(message, origin, f"found {_describe(value)}", example)
    if kind in _LIMITS:
        key, words = _LIMITS[kind]
        message = f"{name} must be {words} {context[key]:,}"
        return wrong_value(message, origin, f"found {_clip(str(value))}", example)
    if kind == "too_short" or value == "":
        return wrong_value(f"{name} must not be empty", origin, remedy=example)
    if kind == "string_pattern_mismatch":
        remedy = RULES.get(context["pattern"]) or f"it must match {context['pattern']}"
        bare = name.removeprefix("an ").removeprefix("a ")
        return wrong_value(f"'{_clip(value)}' is not a valid {bare}", origin, remedy=remedy)
    return wrong_value(f"{name}: {item['msg'][:1].lower()}{item['msg'][1:]}", origin)


def _example(name: str, info: FieldInfo | None) -> str:
    """The field as a person writes it: `interval: 30 min`; empty where none is known."""
    examples = (info and info.examples) or ()
    return f"{name}: {yaml.inline(examples[0])}" if examples else ""


def _for_example(origin: Origin, info: FieldInfo | None) -> str:
    """A remedy for a wrong value of a field, not of an entry in it."""
    name = origin.path[-1] if origin.path and not origin.key else 0
    example = _example(name, info) if isinstance(name, str) else ""
    return f"for example `{example}`" if example else ""


def _synonyms(root: type[BaseModel], name: str) -> tuple[str, ...]:
    """The fields of `root` that `name` is another word for, below a workload or from the top."""
    paths = (path for path in meant(name) if _declared(root, path))
    return tuple(path.removeprefix("workloads.") for path in paths)


def _declared(root: type[BaseModel], path: str) -> bool:
    *parents, name = path.replace("workloads.", "workloads.0.").split(".")
    above = tuple(int(p) if p.isdigit() else p for p in parents)
    return name in _fields(_model_at(root, above))


def _subject(origin: Origin) -> str:
    """What a message is about, by name: a field, an entry of a list, a key of a mapping."""
    names = [p for p in origin.path if isinstance(p, str)]
    if origin.key:
        return f"a key of '{names[-2]}'"
    if not names:
        return "the document"
    return f"'{names[-1]}'" if names[-1] == origin.path[-1] else f"an entry of '{names[-1]}'"


def _describe(value: object) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return "nothing" if value is None else _clip(repr(value))


def _clip(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


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


def _info(model: type[BaseModel] | None, name: str) -> FieldInfo | None:
    fields = model.model_fields.items() if model else ()
    return next((info for field, info in fields if name in (field, info.alias)), None)


def _info_at(root: type[BaseModel], path: Path) -> FieldInfo | None:
    """The field at `path`, or, of an entry in a list, the list."""
    while path and isinstance(path[-1], int):
        path = path[:-1]
    return _info(_model_at(root, path[:-1]), str(path[-1])) if path else None


def _meaning(info: FieldInfo | None) -> str:
    if info is None:
        return ""
    inner = [i.description for i in _parts(info.annotation) if isinstance(i, FieldInfo)]
    kinds = (m for m in _models(info.annotation) if isinstance(m, type))
    pages = [m.__doc__ for m in kinds if issubclass(m, BaseModel)]
    texts = (info.description, *inner, *pages)
    return " ".join(next((t for t in texts if t), "").split())


def _shorthand(info: FieldInfo | None, model: type[BaseModel] | None) -> str:
    """What may stand in place of a mapping, and the mapping."""
    parts = (*info.metadata, *_parts(info.annotation)) if info else ()
    bare = {"number": "a number", "string": "a text", "duration": "a duration"}
    kinds = [bare[p.kind] for p in parts if isinstance(p, Shorthand)]
    return f"{kinds[0]}, or {{{', '.join(_fields(model))}}}" if kinds else ""


def _parts(annotation: Any) -> Iterator[Any]:
    """Everything that a type is made of, at any depth."""
    for argument in get_args(annotation):
        yield argument
        yield from _parts(argument)
