"""Sheets: formulas in order over one scope of named numbers.

A search evaluates a sheet on plain floats, many times; the chosen candidate is recorded through a
`Ledger` from the same formulas: one text is searched, printed and checked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import CodeType

from gpuplan.sizing.formula import FUNCTIONS, Formula, Ledger, Quantity

_GLOBALS: dict[str, object] = {"__builtins__": {}, **FUNCTIONS}


@dataclass(frozen=True, slots=True)
class Sheet:
    """Lines `name = formula`; each may use the scope's inputs and the lines before it."""

    lines: tuple[tuple[str, Formula], ...]
    _code: list[CodeType] = field(default_factory=list, init=False, repr=False, compare=False)

    def __add__(self, other: Sheet) -> Sheet:
        return Sheet(self.lines + other.lines)

    def __call__(self, scope: dict[str, float]) -> dict[str, float]:
        """`scope` with every line's value added to it."""
        if not self._code:
            text = "\n".join(f"{name} = {formula.expression}" for name, formula in self.lines)
            self._code.append(compile(text, "<sheet>", "exec"))
        exec(self._code[0], _GLOBALS, scope)  # noqa: S102 - every `Formula` admits arithmetic only
        return scope

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
