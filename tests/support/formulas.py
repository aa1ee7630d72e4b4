"""Formulas against arithmetic by hand."""

from __future__ import annotations

import pytest

from gpuplan.sizing.evidence.formula import CONSTANTS
from gpuplan.sizing.evidence.sheet import Sheet

KNOWN = {name: quantity.value for name, quantity in CONSTANTS.items()}


def agree(sheet: Sheet, inputs: dict[str, float], expected: dict[str, float]) -> None:
    """Each line of `expected` alone, of `inputs` and the constants that every formula may name."""
    lines = dict(sheet.lines)
    scope = KNOWN | inputs
    results = {n: lines[n](**{i: scope[i] for i in lines[n].names}) for n in expected}
    assert results == pytest.approx(expected, rel=1e-8)  # results have nine digits
