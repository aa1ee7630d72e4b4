"""Dimensions of formula texts: what a text's unit is, from the units of its inputs.

A unit is a product of powers of base symbols (`B/s` is B¹ s⁻¹). Symbols are never converted: an
hour is not 3,600 of anything, but for a constant in `s/h`. A bare number has no unit; 0 has any.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from fractions import Fraction

Dimension = Mapping[str, Fraction]
ANY: Dimension = {"": Fraction(0)}  # of a bare 0
NONE: Dimension = {}


class Mixed(Exception):
    """Units that do not belong together, in words."""


def parse(unit: str) -> Dimension:
    """`1`, `B`, `B/s`, `1/s`, `USD/h`. Raises `Mixed`."""
    if not re.fullmatch(r"(1|[A-Za-z]+)(/[A-Za-z]+)*", unit):
        raise Mixed(f"no unit: {unit}")
    over, *under = unit.split("/")
    found: dict[str, Fraction] = {} if over == "1" else {over: Fraction(1)}
    for symbol in under:
        found[symbol] = found.get(symbol, Fraction(0)) - 1
    return _clean(found)


def dimension(expression: str, units: Mapping[str, str]) -> Dimension:
    """Of a formula's text. Raises `Mixed` where units do not fit, KeyError for unknown names."""
    return _of(ast.parse(expression, mode="eval").body, units)


def same(one: Dimension, other: Dimension, where: str = "") -> Dimension:
    if one == ANY:
        return other
    if other not in (ANY, one):
        raise Mixed(f"{_shown(one)} and {_shown(other)} in {where}")
    return one


def _of(node: ast.expr, units: Mapping[str, str]) -> Dimension:
    if isinstance(node, ast.Constant):
        return ANY if node.value == 0 else NONE
    if isinstance(node, ast.Name):
        return parse(units[node.id])
    if isinstance(node, ast.UnaryOp):
        return _of(node.operand, units)
    if isinstance(node, ast.BinOp):
        return _binary(node, units)
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    return _call(node.func.id, node, units)


def _binary(node: ast.BinOp, units: Mapping[str, str]) -> Dimension:
    left, right = _of(node.left, units), _of(node.right, units)
    if isinstance(node.op, ast.Add | ast.Sub):
        return same(left, right, ast.unparse(node))
    if isinstance(node.op, ast.Pow):
        return _power(left, right, node)
    if ANY in (left, right):
        return ANY
    sign = 1 if isinstance(node.op, ast.Mult) else -1
    found = dict(left)
    for symbol, power in right.items():
        found[symbol] = found.get(symbol, Fraction(0)) + sign * power
    return _clean(found)


def _power(base: Dimension, exponent: Dimension, node: ast.BinOp) -> Dimension:
    same(exponent, NONE, f"an exponent of {ast.unparse(node)}")
    if base in (NONE, ANY):
        return base
    if any(isinstance(n, ast.Name) for n in ast.walk(node.right)):
        raise Mixed(f"{_shown(base)} to a power that is not a number: {ast.unparse(node)}")
    power = Fraction(eval(ast.unparse(node.right))).limit_denominator(1000)
    return _clean({symbol: p * power for symbol, p in base.items()})


def _call(name: str, node: ast.Call, units: Mapping[str, str]) -> Dimension:
    parts = [_of(argument, units) for argument in node.args]
    text = ast.unparse(node)
    if name in ("ceil", "floor"):
        return parts[0]
    if name in ("log2", "exp"):
        return same(parts[0], NONE, text)
    if name == "sqrt":
        return _clean({symbol: power / 2 for symbol, power in parts[0].items()})
    if name == "norm":
        same(parts[2], NONE, text)
        return same(parts[0], parts[1], text)
    assert name in ("min", "max"), name
    whole = parts[0]
    for part in parts[1:]:
        whole = same(whole, part, text)
    return whole


def _clean(powers: Mapping[str, Fraction]) -> Dimension:
    return {symbol: power for symbol, power in powers.items() if power or symbol == ""}


def _shown(one: Dimension) -> str:
    return " ".join(f"{s}^{p}" if p != 1 else s for s, p in sorted(one.items())) or "1"
