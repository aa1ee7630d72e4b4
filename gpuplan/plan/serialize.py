"""`plan.yaml` and `evidence.yaml`: the plan in canonical form, byte-stable, both ways.

What a reviewer reads is apart from how its numbers came about, which is many times as long.
"""

from __future__ import annotations

import dataclasses
import math
import re
import types
import typing
from decimal import Decimal
from functools import cache
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
_WORDS = {str: "a text", int: "a whole number", bool: "true or false"}
_LEAVES = frozenset((str, int, float, bool, Decimal))
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
    fields = ((name, getattr(value, name)) for name in names)
    return {k: to_tree(v) for k, v in fields if v is not None and v != ()}


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
        plan = typing.cast(Plan, _build(Plan, tree))
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
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _build(kind: Any, tree: Any) -> Any:
    """`tree` as a value of type `kind`; a `NewType` is what it is made of."""
    kind = getattr(kind, "__supertype__", kind)
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        options = [a for a in get_args(kind) if a is not type(None)]
        return None if tree is None else _build(_choose(options, tree), tree)
    if origin is tuple:
        return _build_tuple(get_args(kind), tree)
    if kind is Origin:
        return _parse_origin(tree)
    if dataclasses.is_dataclass(kind):
        return _record(typing.cast(type, kind), tree)
    return _scalar(kind, tree)


def _record(kind: type, tree: Any) -> Any:
    if not isinstance(tree, dict):
        raise Unfit(f"is {_shown(tree)}, and a mapping is wanted")
    hints = _hints(kind)
    unknown = [str(name) for name in tree if name not in hints]
    if unknown:
        raise Unfit(f"has an unknown field '{min(unknown)[:40]}'")
    arguments = _fields(hints, tree)
    for field in dataclasses.fields(kind):
        required = field.default is field.default_factory is dataclasses.MISSING
        if required and field.name not in arguments:
            raise Unfit(f"has no field '{field.name}'")
    return kind(**arguments)


def _shown(tree: Any) -> str:
    if isinstance(tree, dict | list):
        return "a mapping" if isinstance(tree, dict) else "a list"
    text = "nothing" if tree is None else f"'{tree}'"
    return text if len(text) <= 40 else f"{text[:38]}…'"


def _scalar(kind: Any, tree: Any) -> Any:
    """`tree` as a scalar of type `kind`. Raises `Unfit` for any other value."""
    if get_origin(kind) is Literal:
        good, wanted = tree in get_args(kind), f"one of {', '.join(map(str, get_args(kind)))}"
    elif kind in (float, Decimal):
        good, wanted = type(tree) in (int, float) and abs(tree) <= MOST, "a number"
    else:
        good, wanted = type(tree) is kind, _WORDS.get(kind, kind.__name__)
    if not good:
        raise Unfit(f"is {_shown(tree)}, and {wanted} is wanted")
    if kind is Decimal:
        return Decimal(str(tree))
    return float(tree) if kind is float else tree


def _fields(hints: dict[str, Any], tree: dict[str, Any]) -> dict[str, Any]:
    """The constructor's arguments; what canonical form leaves out is None or (), and a field that
    an earlier plan did not have has its default."""
    given = {name: _part(name, kind, tree[name]) for name, kind in hints.items() if name in tree}
    return {n: _absent(kind) for n, kind in hints.items() if _is_optional(kind)} | given


def _part(name: str | int, kind: Any, tree: Any) -> Any:
    try:
        return _build(kind, tree)
    except Unfit as problem:
        problem.path = (name, *problem.path)
        raise


def _is_optional(kind: Any) -> bool:
    return get_origin(kind) in (tuple, Union, types.UnionType)


def _absent(kind: Any) -> Any:
    return () if get_origin(kind) is tuple else None


def _choose(options: list[Any], tree: Any) -> Any:
    if len(options) == 1:
        return options[0]
    return str if isinstance(tree, str) else float


def _build_tuple(args: tuple[Any, ...], tree: Any) -> tuple[Any, ...]:
    if not isinstance(tree, list):
        raise Unfit(f"is {_shown(tree)}, and a list is wanted")
    if len(args) == 2 and args[1] is Ellipsis:
        return tuple(_part(number, args[0], item) for number, item in enumerate(tree))
    if len(tree) != len(args):
        raise Unfit(f"has {len(tree)} entries, and {len(args)} are wanted")
    return tuple(_part(n, kind, tree[n]) for n, kind in enumerate(args))


def _parse_origin(text: Any) -> Origin:
    if not isinstance(text, str):
        raise Unfit(f"is {_shown(text)}, and a place is wanted")
    document, _, path = text.partition(":")
    parts = (p for p in path.replace("[", ".[").split(".") if p)
    return Origin(document, tuple(int(p[1:-1]) if _NUMBERED.fullmatch(p) else p for p in parts))
