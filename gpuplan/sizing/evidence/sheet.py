"""Sheets: formulas in order over one scope of named numbers.

A search evaluates a sheet on plain floats, or on arrays of many candidates at once; the chosen one
is recorded through a `Ledger` from the same formulas: one text is searched, printed and checked.
"""

from __future__ import annotations

import re
from dataclasses import field
from functools import cache, partial, reduce
from types import CodeType
from typing import Any

from gpuplan.frozen import frozen
from gpuplan.sizing.evidence.formula import CONSTANTS, FUNCTIONS, Formula, Ledger, Quantity

Line = tuple[str, Formula]
Scope = dict[str, Quantity]

_START = re.compile(r"([a-z]\w*): (\S+) = (.*)")
_VALUES = {name: quantity.value for name, quantity in CONSTANTS.items()}
_GLOBALS: dict[str, object] = {"__builtins__": {}, **FUNCTIONS, **_VALUES}


@cache
def _vector_globals() -> dict[str, Any]:
    """`FUNCTIONS` on arrays."""
    import numpy as np

    names = [name for name in FUNCTIONS if name not in ("min", "max", "norm")]
    least, most = partial(reduce, np.minimum), partial(reduce, np.maximum)
    return {
        **_GLOBALS,
        **{name: getattr(np, name) for name in names},
        "min": lambda *values: least(values),
        "max": lambda *values: most(values),
    }


@frozen
class Sheet:
    """Lines `name = formula`; each may use the scope's inputs and the lines before it."""

    lines: tuple[Line, ...]
    _code: list[CodeType] = field(default_factory=list, init=False, repr=False, compare=False)

    def __add__(self, other: Sheet) -> Sheet:
        return Sheet(self.lines + other.lines)

    def __call__(self, scope: dict[str, float]) -> dict[str, float]:
        """`scope` with every line's value added to it."""
        exec(self._compiled(), _GLOBALS, scope)  # noqa: S102 - `Formula` admits arithmetic only
        return scope

    def over(self, scope: dict[str, Any]) -> dict[str, Any]:
        """The same where values are arrays of numpy, which are broadcast."""
        exec(self._compiled(), _vector_globals(), scope)  # noqa: S102 - as above
        return scope

    def _compiled(self) -> CodeType:
        if not self._code:
            text = "\n".join(f"{name} = {formula.expression}" for name, formula in self.lines)
            self._code.append(compile(text, "<sheet>", "exec"))
        return self._code[0]

    def record(self, ledger: Ledger, scope: Scope, prefix: str = "") -> Scope:
        """The same on quantities: each line becomes evidence named `prefix` + its name."""
        for name, formula in self.lines:
            inputs = {n: scope[n] for n in formula.names if n not in CONSTANTS}
            scope[name] = ledger.derive(prefix + name, formula, **inputs)
        return scope


def sheet(text: str) -> Sheet:
    """Lines `name: unit = expression  # source`. What does not begin so continues the line before,
    its expression, its source or both. Raises ValueError for other texts."""
    rows: list[tuple[str, str, list[str], list[str]]] = []
    for row in filter(None, map(str.strip, text.splitlines())):
        code, _, source = row.partition("#")
        if start := _START.match(code):
            rows.append((start[1], start[2], [], []))
            code = start[3]
        if not rows:
            raise ValueError(f"no line of a sheet: {row}")
        rows[-1][2].append(code.strip())
        rows[-1][3].append(source.strip())
    return Sheet(tuple(_line(*row) for row in rows))


def _line(name: str, unit: str, expression: list[str], source: list[str]) -> Line:
    said = " ".join(filter(None, source))
    if not said:
        raise ValueError(f"a line without its source: {name}")
    return name, Formula(" ".join(filter(None, expression)), unit, said)


def floats(scope: Scope) -> dict[str, float]:
    """The values alone, for a search."""
    return {name: quantity.value for name, quantity in scope.items()}
