"""Formulas that plans record, each on small numbers that differ.

A row of `by_hand.csv` is a quantity, what its formula is made of, and the formula with the numbers
in it: a product takes 2 FLOP, bf16 2 bytes, fp32 4, a GiB 2**30. Several rows of a formula meet the
sides of its bounds, and both sides of a whole number. What a quantity is made of tells formulas of
one name apart.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from gpuplan.plan.model import Evidence
from gpuplan.sizing.evidence.formula import CONSTANTS, evaluate
from tests.sizing.test_evidence_chain import WHERE, answer

Key = tuple[str, frozenset[str]]
Row = tuple[dict[str, float], float]
KNOWN = {name: quantity.value for name, quantity in CONSTANTS.items()}
ARITHMETIC = {
    **{name: getattr(math, name) for name in ("ceil", "exp", "floor", "log2", "sqrt")},
    "min": min,
    "max": max,
    "norm": lambda a, b, power: (a**power + b**power) ** (1 / power),
}


def rows() -> dict[Key, list[Row]]:
    read: dict[Key, list[Row]] = defaultdict(list)
    with Path(__file__).with_name("by_hand.csv").open(encoding="utf-8") as file:
        for name, made_of, by_hand in [*csv.reader(file)][1:]:
            pairs = (part.split("=") for part in made_of.split())
            values = {of: float(number) for of, number in pairs}
            result = eval(by_hand, {"__builtins__": {}}, ARITHMETIC)  # of this table alone
            read[name, frozenset(values)].append((values, float(result)))
    return read


ROWS = rows()


def key(entry: Evidence) -> Key:
    made_of = frozenset(each.name for each in entry.inputs if each.name not in KNOWN)
    return entry.quantity.rpartition(".")[2], made_of


def recorded(found: Iterable[Evidence]) -> list[Evidence]:
    return [entry for entry in found if entry.formula and key(entry) in ROWS]


@pytest.mark.parametrize("name", WHERE)
def test_formulas_of_a_plan_are_what_they_are_by_hand(name: str) -> None:
    found = recorded(answer.__wrapped__(name).evidence)
    assert len(found) > 5
    for entry in found:
        for values, result in ROWS[key(entry)]:
            now = evaluate(entry.formula, KNOWN | values)
            assert now == pytest.approx(result, rel=1e-8), f"{entry.quantity} = {entry.formula}"


def test_each_row_is_of_a_formula_that_some_plan_records() -> None:
    met = {key(entry) for name in WHERE for entry in recorded(answer(name).evidence)}
    assert ROWS.keys() == met


@pytest.mark.parametrize(("name", "products"), [("classifier", 1), ("training of images", 3)])
def test_an_image_takes_its_products_at_least_and_its_training_three_times_as_many(
    name: str, products: float
) -> None:
    """Two formulas of one name on the same numbers: forward, and two backward."""
    (found,) = (e for e in answer(name).evidence if e.quantity == "work.least_seconds")
    of = {each.name: each.value for each in found.inputs}
    assert found.value == pytest.approx(products * 2 * of["macs"] / (of["peak"] * of["boost"]))
