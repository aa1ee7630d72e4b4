"""`plan.yaml` and `evidence.yaml`: the plan in canonical form, byte-stable, both ways.

What a reviewer reads is apart from how its numbers came about, which is many times as long.
"""

from __future__ import annotations

import dataclasses
import math
import re
import types
import typing
from collections.abc import Callable
from decimal import Decimal
from functools import cache, partial
from typing import Any, Literal, Union, get_args, get_origin

from gpuplan.errors import Rejected
from gpuplan.plan.model import PLAN_VERSION, Plan
from gpuplan.plan.outside.references import dangling
from gpuplan.plan.tree import EVIDENCE_VERSION, broken_plan, load_evidence, load_tree
from gpuplan.render import yaml
from gpuplan.source import Origin, format_path

HEADER = (
    "# Written by gpuplan; `gpuplan check` finds edits. The numbers' derivations: evidence.yaml.\n"
)
MOST = math.nextafter(math.inf, 0.0)
_OPTIONAL = (tuple, Union, types.UnionType)
_WORDS = {str: "a text", int: "a whole number", bool: "true or false"}
_LEAVES = frozenset((str, int, float, bool, Decimal))
Reader = Callable[[Any], Any]
_NUMBERED = re.compile(r"\[[0-9]{1,9}\]")
EVIDENCE_HEADER = (
    "# Written by gpuplan: how the numbers of plan.yaml came about, for `gpuplan explain`.\n"
)


def to_tree(value: Any) -> Any:
    """A record as plain data: absent fields and empty tuples are left out."""
    kind: Any = type(value)
    if kind in _LEAVES:
        return value
    if isinstance(value, Origin):
        return f"{value.document}:{format_path(value.path)}"
    if isinstance(value, tuple):
        return [to_tree(v) for v in value]
    names = _names(kind)
    if names is None:
        return value
    return {
        name: held if type(held) in _LEAVES else to_tree(held)
        for name in names
        if (held := getattr(value, name)) is not None and held != ()
    }


@cache
def _names(kind: type) -> tuple[str, ...] | None:
    """The fields of a record's class, in order; None for any other class."""
    if not dataclasses.is_dataclass(kind):
        return None
    return tuple(f.name for f in dataclasses.fields(kind))


def to_json(value: Any) -> Any:
    """`to_tree` with nothing in it that JSON does not have."""
    return _numbers(to_tree(value))


def _numbers(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {k: _numbers(v) for k, v in tree.items()}
    if isinstance(tree, list):
        return [_numbers(v) for v in tree]
    return float(tree) if isinstance(tree, Decimal) else tree


def dump(plan: Plan) -> str:
    """The text of `plan.yaml`: the plan without its evidence."""
    tree = to_tree(dataclasses.replace(plan, evidence=()))
    return HEADER + yaml.dumps({"api_version": PLAN_VERSION, **tree})


def dump_evidence(plan: Plan) -> str:
    """The text of `evidence.yaml`."""
    tree = {"api_version": EVIDENCE_VERSION, "evidence": to_tree(plan.evidence)}
    return EVIDENCE_HEADER + yaml.dumps(tree)


def load(text: str, document: str = "plan.yaml", evidence: str | None = None) -> Plan:
    """The plan of a `plan.yaml`, with what the text `evidence` of its `evidence.yaml` adds. Raises
    `Rejected` for another version, and for a document that is broken or refers to what it does not
    hold."""
    tree = load_tree(text, document)
    try:
        if evidence is not None:
            tree["evidence"] = load_evidence(evidence, document)
        plan = typing.cast(Plan, _record(Plan, tree))
    except Unfit as problem:
        raise Rejected([broken_plan(document, str(problem))]) from problem
    if problems := list(dangling(document, plan)):
        raise Rejected(problems)
    return plan


class Unfit(ValueError):
    """A value that a record cannot hold: what is wrong, and its path in the tree."""

    def __init__(self, fault: str) -> None:
        super().__init__(fault)
        self.fault = fault
        self.path: tuple[str | int, ...] = ()

    def __str__(self) -> str:
        return f"{format_path(self.path)} {self.fault}" if self.path else f"it {self.fault}"


@cache
def _reader(kind: Any) -> Reader:
    """What makes a value of type `kind` of plain data, or raises `Unfit`; a `NewType` is what it is
    made of."""
    kind = getattr(kind, "__supertype__", kind)
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return partial(_optional, [_reader(a) for a in args if a is not type(None)])
    if origin is tuple:
        return partial(_tuple, [_reader(a) for a in args if a is not Ellipsis], args[1:] == (...,))
    if kind is Origin:
        return _parse_origin
    if dataclasses.is_dataclass(kind):
        return partial(_record, typing.cast(type, kind))
    if kind in (float, Decimal):
        return partial(_number, kind)
    if origin is Literal:
        return partial(_word, args)
    return partial(_leaf, kind)


@cache
def _fields(kind: type) -> tuple[dict[str, Reader], dict[str, Any], list[str]]:
    """What reads each field of a record; what stands for those that canonical form leaves out, None
    or (); and those that have to be there. A field that an earlier plan did not have has its
    default."""
    hints = typing.get_type_hints(kind)
    absent = {name: () if get_origin(hint) is tuple else None for name, hint in hints.items()}
    left_out = {n: absent[n] for n, h in hints.items() if get_origin(h) in _OPTIONAL}
    needed = [
        field.name
        for field in dataclasses.fields(kind)
        if field.default is field.default_factory is dataclasses.MISSING
        and field.name not in left_out
    ]
    return {name: _reader(hint) for name, hint in hints.items()}, left_out, needed


def _record(kind: type, tree: Any) -> Any:
    if not isinstance(tree, dict):
        raise Unfit(f"is {_shown(tree)}, and a mapping is wanted")
    readers, left_out, needed = _fields(kind)
    if unknown := [str(name) for name in tree if name not in readers]:
        raise Unfit(f"has an unknown field '{min(unknown)[:40]}'")
    given = {name: _part(name, read, tree[name]) for name, read in readers.items() if name in tree}
    if missing := [name for name in needed if name not in given]:
        raise Unfit(f"has no field '{missing[0]}'")
    return kind(**left_out | given)


def _shown(tree: Any) -> str:
    if isinstance(tree, dict | list):
        return "a mapping" if isinstance(tree, dict) else "a list"
    text = "nothing" if tree is None else f"'{tree}'"
    return text if len(text) <= 40 else f"{text[:38]}…'"


def _number(kind: type[float] | type[Decimal], tree: Any) -> float | Decimal:
    if type(tree) not in (int, float) or not abs(tree) <= MOST:
        raise Unfit(f"is {_shown(tree)}, and a number is wanted")
    return float(tree) if kind is float else Decimal(str(tree))


def _word(words: tuple[Any, ...], tree: Any) -> Any:
    if tree not in words:
        raise Unfit(f"is {_shown(tree)}, and one of {', '.join(map(str, words))} is wanted")
    return tree


def _leaf(kind: type, tree: Any) -> Any:
    if type(tree) is not kind:
        raise Unfit(f"is {_shown(tree)}, and {_WORDS.get(kind, kind.__name__)} is wanted")
    return tree


def _part(name: str | int, read: Reader, tree: Any) -> Any:
    try:
        return read(tree)
    except Unfit as problem:
        problem.path = (name, *problem.path)
        raise


def _optional(readers: list[Reader], tree: Any) -> Any:
    """Of several kinds, one is text and the other a number."""
    if tree is None:
        return None
    read = readers[0] if len(readers) == 1 else _reader(str if isinstance(tree, str) else float)
    return read(tree)


def _tuple(readers: list[Reader], endless: bool, tree: Any) -> tuple[Any, ...]:
    if not isinstance(tree, list):
        raise Unfit(f"is {_shown(tree)}, and a list is wanted")
    if endless:
        return tuple(_part(number, readers[0], item) for number, item in enumerate(tree))
    if len(tree) != len(readers):
        raise Unfit(f"has {len(tree)} entries, and {len(readers)} are wanted")
    return tuple(_part(n, read, tree[n]) for n, read in enumerate(readers))


def _parse_origin(text: Any) -> Origin:
    if not isinstance(text, str):
        raise Unfit(f"is {_shown(text)}, and a place is wanted")
    document, _, path = text.partition(":")
    parts = (p for p in path.replace("[", ".[").split(".") if p)
    return Origin(document, tuple(int(p[1:-1]) if _NUMBERED.fullmatch(p) else p for p in parts))
