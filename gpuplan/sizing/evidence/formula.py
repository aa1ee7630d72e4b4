"""Formulas as data: one text is what is computed, what is printed and what is checked.

A `Formula` is an arithmetic expression over named inputs, with its unit and its source. Sizing code
calls it with `Quantity` values through a `Ledger`, which records the `Evidence`; `explain` prints
that record, and `evaluate` computes it again from its own text and inputs.

Results are rounded to nine significant digits, so that the last bits of a platform's `log` or `pow`
never reach a plan.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from types import CodeType
from typing import Any

from gpuplan.plan.model import Evidence, Input
from gpuplan.units import HOURS_PER_MONTH


def norm(first: Any, second: Any, power: Any) -> Any:
    """Two parts in one unit that overlap: their sum at `power` 1, the larger at infinity."""
    return (first**power + second**power) ** (1 / power)


FUNCTIONS: dict[str, Callable[..., float]] = {
    "min": min,
    "max": max,
    "ceil": math.ceil,
    "floor": math.floor,
    "log2": math.log2,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "norm": norm,
}
_ALLOWED = {
    ast.Expression,
    ast.BinOp,
    ast.UnaryOp,
    ast.USub,
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.Div,
    ast.FloorDiv,
    ast.Pow,
    ast.Call,
    ast.Name,
    ast.Load,
    ast.Constant,
}
_SIZED = {ast.BinOp, ast.Constant}  # that may be too large


MOST_CONSTANT, MOST_POWER = 1e30, 64


@cache
def _compile(expression: str) -> tuple[CodeType, tuple[str, ...]]:
    """Code and the names of the inputs, in order of appearance. Raises ValueError for anything that
    is not arithmetic over names, numbers and `FUNCTIONS`."""
    try:
        tree = ast.parse(expression, mode="eval")
    except (SyntaxError, RecursionError, MemoryError) as problem:
        raise ValueError(f"not arithmetic: {expression}") from problem
    names: list[str] = []
    for node in ast.walk(tree):
        kind = type(node)
        if kind not in _ALLOWED or (kind in _SIZED and _huge(node)):
            raise ValueError(f"not arithmetic: {expression}")
        if isinstance(node, ast.Name) and node.id not in FUNCTIONS and node.id not in names:
            names.append(node.id)
    return compile(tree, "<formula>", "eval"), tuple(names)


def _huge(node: ast.AST) -> bool:
    """A power of whole numbers that nobody writes, and no memory holds: `9**9**9**9`. Where there
    is a name both are floats."""
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, int | float) or abs(node.value) > MOST_CONSTANT
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Pow):
        return False
    if any(isinstance(part, ast.Name) for part in ast.walk(node)):
        return False
    base, power = node.left, node.right
    both = isinstance(base, ast.Constant) and isinstance(power, ast.Constant)
    return not both or abs(power.value) > MOST_POWER  # type: ignore[attr-defined]


def canonical(value: float) -> float:
    """Nine significant digits; whole numbers below 2^53 stay exact."""
    if float(value).is_integer() and abs(value) < 2**53:
        return float(int(value))
    return float(f"{value:.9g}")


def evaluate(expression: str, inputs: dict[str, float]) -> float:
    """`expression` over `inputs`, as the engine computed it. Raises ValueError, NameError,
    ZeroDivisionError."""
    code, _ = _compile(expression)
    scope = {"__builtins__": {}, **FUNCTIONS, **inputs}
    return canonical(eval(code, scope))  # noqa: S307 - `_compile` admits arithmetic only


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit and its source (see `Input.source`)."""

    value: float
    unit: str
    source: str

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        return round(self.value)


def constant(value: float, unit: str, citation: str) -> Quantity:
    return Quantity(value, unit, f"constant: {citation}")


# Numbers with a unit that any formula may name: a bare number in a text has none.
CONSTANTS: dict[str, Quantity] = {
    "mac_flop": constant(2, "FLOP", "a multiplication and an addition"),
    "fp8_bytes": constant(1, "B", "bytes of an fp8 element"),
    "bf16_bytes": constant(2, "B", "bytes of a bf16 element"),
    "fp32_bytes": constant(4, "B", "bytes of an fp32 element"),
    "second": constant(1, "s", "a second"),
    "hour": constant(3600, "s/h", "seconds of an hour"),
    "month": constant(HOURS_PER_MONTH * 3600, "s/month", "seconds of a month of 730 hours"),
    "gigabyte": constant(1_000_000_000, "B/GB", "bytes of a gigabyte"),
    "gibibyte": constant(2**30, "B", "1 GiB"),
}


@dataclass(frozen=True, slots=True)
class Formula:
    """`expression` over named inputs gives a value in `unit`; `source` says where it comes from."""

    expression: str
    unit: str
    source: str

    @property
    def names(self) -> tuple[str, ...]:
        return _compile(self.expression)[1]

    def __call__(self, **inputs: float) -> float:
        """The value, without a record: what searches use."""
        return evaluate(self.expression, inputs)


@dataclass(slots=True)
class Ledger:
    """Evidence of one workload or candidate, in the order of derivation."""

    prefix: str
    entries: dict[str, Evidence] = field(default_factory=dict)

    def derive(self, name: str, formula: Formula, **inputs: Quantity) -> Quantity:
        """Evaluate `formula` and record it as `PREFIX.name`; a later record replaces an earlier
        one of the same name."""
        names = formula.names
        inputs |= {n: CONSTANTS[n] for n in names if n in CONSTANTS and n not in inputs}
        value = evaluate(formula.expression, {k: q.value for k, q in inputs.items()})
        quantity = f"{self.prefix}.{name}"
        self.entries[quantity] = Evidence(
            quantity=quantity,
            value=value,
            unit=formula.unit,
            formula=formula.expression,
            source=formula.source,
            inputs=tuple(
                Input(name=n, value=inputs[n].value, unit=inputs[n].unit, source=inputs[n].source)
                for n in names
            ),
        )
        return Quantity(value, formula.unit, f"quantity:{quantity}")

    def given(self, name: str, quantity: Quantity) -> Quantity:
        """Record a number that is not derived (an input, a default, a choice of the search)."""
        key = f"{self.prefix}.{name}"
        self.entries[key] = Evidence(
            quantity=key,
            value=canonical(quantity.value),
            unit=quantity.unit,
            formula="",
            source=quantity.source,
        )
        return Quantity(canonical(quantity.value), quantity.unit, f"quantity:{key}")

    def override(self, name: str, quantity: Quantity) -> Quantity:
        """`quantity` replaces what `PREFIX.name` says; the derivation stays, marked."""
        key = f"{self.prefix}.{name}"
        self.entries[key] = replace(self.entries[key], overridden_by=quantity.source)
        return quantity

    def evidence(self) -> tuple[Evidence, ...]:
        return tuple(self.entries.values())
