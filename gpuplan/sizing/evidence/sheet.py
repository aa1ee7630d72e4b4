"""Sheets: formulas in order over one scope of named numbers.

A search evaluates a sheet on plain floats, or on arrays of many candidates at once; the chosen one
is recorded through a `Ledger` from the same formulas: one text is searched, printed and checked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, partial, reduce
from types import CodeType
from typing import Any

from gpuplan.sizing.evidence.formula import FUNCTIONS, Formula, Ledger, Quantity

Line = tuple[str, Formula]

_GLOBALS: dict[str, object] = {"__builtins__": {}, **FUNCTIONS}


@cache
def _vector_globals() -> dict[str, Any]:
    """`FUNCTIONS` on arrays."""
    import numpy as np

    functions = {name: getattr(np, name) for name in FUNCTIONS if name not in ("min", "max")}
    least, most = partial(reduce, np.minimum), partial(reduce, np.maximum)
    return {
        "__builtins__": {},
        **functions,
        "min": lambda *values: least(values),
        "max": lambda *values: most(values),
    }


@dataclass(frozen=True, slots=True)
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

    def record(
        self, ledger: Ledger, scope: dict[str, Quantity], prefix: str = ""
    ) -> dict[str, Quantity]:
        """The same on quantities: each line becomes evidence named `prefix` + its name."""
        for name, formula in self.lines:
            inputs = {n: scope[n] for n in formula.names}
            scope[name] = ledger.derive(prefix + name, formula, **inputs)
        return scope


def floats(scope: dict[str, Quantity]) -> dict[str, float]:
    """The values alone, for a search."""
    return {name: quantity.value for name, quantity in scope.items()}
