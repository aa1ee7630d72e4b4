"""Fleets cost no more than they did, with no weaker proof, and take about as much search.

The fleets are those of bench/packing/packed.py, what they cost stands in packed.csv. Where a change
of the solver is worth it although one of them fails, `make packed` records all anew and tells the
differences.
"""

from __future__ import annotations

import pytest

from bench.packing.packed import MOVE_COST, Row, packings, recorded, row
from tests.support.packing_check import faults

MORE_SEARCH = 1.25  # of what is recorded
RECORDED = recorded()


def told(now: Row, old: Row) -> list[str]:
    """What a user has more of, or less, than was recorded."""
    dearer = now.cost - old.cost + MOVE_COST * (now.moved - old.moved)
    found = []
    if dearer > 0:
        moves = (
            f", with what {now.moved - old.moved:+} moves count" if now.moved or old.moved else ""
        )
        found.append(f"costs {dearer / 1e6:,.2f} USD/h more ({dearer / old.cost:.2%}){moves}")
    if now.bound < old.bound:
        found.append(f"{(old.bound - now.bound) / 1e6:,.2f} USD/h less of its cost is proven")
    if now.bound > now.cost:
        found.append("costs less than is said that any packing costs")
    if now.refused != old.refused:
        found.append(f"refused are {now.refused or 'none'}, not {old.refused or 'none'}")
    for name, more, most in (
        ("places are looked at", now.looks, old.looks),
        ("steps of linear programs are taken", now.iterations, old.iterations),
    ):
        if more > MORE_SEARCH * most:
            found.append(f"{more / most:.2f} times as many {name}: it takes longer")
    return found


def test_what_is_recorded_is_what_is_packed() -> None:
    assert list(RECORDED) == list(packings())


@pytest.mark.parametrize("name", packings())
def test_a_fleet_costs_no_more_than_it_did(name: str) -> None:
    problem, result, work = packings()[name]()
    assert faults(problem, result) == []
    assert told(row(name, result, work), RECORDED[name]) == []


def test_what_is_worse_is_told_as_a_user_has_it() -> None:
    old = RECORDED["mixed 250, a twentieth changed"]
    worse = Row(
        "", old.cost + 10_000_000, old.bound - 2_500_000, old.moved, "r1:0", 2 * old.looks, 1
    )
    dearer, proven, refused, longer = told(worse, old)
    assert dearer.startswith("costs 10.00 USD/h more (")
    assert proven == "2.50 USD/h less of its cost is proven"
    assert refused.startswith("refused are r1:0, not ")
    assert longer.startswith("2.00 times as many places are looked at")
    assert told(old, old) == []
