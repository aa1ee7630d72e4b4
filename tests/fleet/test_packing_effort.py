"""What the packer's effort is worth: fleets that it packs at the least cost there is, or near it,
and that a tenth of it does not."""

from __future__ import annotations

import sys

import pytest

from bench.packing.fleets import fleet
from gpuplan.fleet.problem import Result
from gpuplan.fleet.solver import effort, pack
from tests.support.packing_check import faults

# Of 60 items; ruin and recreate, contents or exchanges have to get there.
AT_THE_BOUND = (
    *(("distinct", 1), ("distinct-bound", 1), ("giants", 1), ("heavy-tailed", 1), ("mixed", 1)),
    *(("training", 1), ("memory-bound", 3), ("core-bound", 1), ("mixed", 2), ("training", 3)),
)
NEAR = ("core-bound", "mixed")  # of 250 items
SOLVER = "gpuplan.fleet.solver"


def packed(mix: str, items: int, seed: int) -> Result:
    problem = fleet(mix, items, seed)
    result = pack(problem)
    assert faults(problem, result) == []
    assert not result.refused
    return result


def over(results: list[Result]) -> float:
    """What all cost beyond what is proven, as a part of it."""
    return sum(r.cost for r in results) / sum(r.bound for r in results) - 1


def a_tenth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every whole number of effort.py becomes a tenth, in each module that has imported it; what
    is a part of something (a gap, a price) stays."""
    numbers = {name: n for name, n in vars(effort).items() if name.isupper() and type(n) is int}
    assert len(numbers) > 30
    modules = [module for name, module in sys.modules.items() if name.startswith(SOLVER)]
    for name, number in numbers.items():
        for module in modules:
            if hasattr(module, name):
                monkeypatch.setattr(module, name, max(1, number // 10))


@pytest.mark.parametrize(("mix", "seed"), AT_THE_BOUND)
def test_a_small_fleet_costs_what_no_packing_beats(mix: str, seed: int) -> None:
    result = packed(mix, 60, seed)
    assert result.cost == result.bound


@pytest.mark.parametrize(("mix", "seed"), [("mixed", 1), ("serving", 1)])
def test_a_packing_that_nothing_can_beat_is_given_at_once(
    mix: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one costs what is proven: contents of nodes, which take longest, are not asked."""

    def asked(*_: object) -> None:
        raise AssertionError("nothing can be won")

    monkeypatch.setattr(f"{SOLVER}.run.by_nodes", asked)
    result = packed(mix, 60, seed)
    assert result.cost == result.bound


def test_larger_fleets_cost_less_than_half_a_percent_more() -> None:
    assert over([packed(mix, 250, 1) for mix in NEAR]) < 0.005


def test_a_tenth_of_the_effort_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the tests above would say nothing of it."""
    a_tenth(monkeypatch)
    assert over([packed(mix, 60, seed) for mix, seed in AT_THE_BOUND]) > 0.015
    assert over([packed(mix, 250, 1) for mix in NEAR]) > 0.025
