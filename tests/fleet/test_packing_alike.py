"""Kinds of items that differ little are packed as one, and what that costs is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.fleets import fleet
from gpuplan.fleet.problem import Option, Problem, Result
from gpuplan.fleet.solver import pack
from gpuplan.fleet.solver.classes import compile_fleet
from gpuplan.report.machines.pack import text, tree
from tests.support.packing_check import faults


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuplan.fleet.solver.run.effort", lambda _: 5_000)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small fleets are merged too, and whatever it costs."""
    monkeypatch.setattr("gpuplan.fleet.solver.alike.CLASSES", 0)
    monkeypatch.setattr("gpuplan.fleet.solver.alike.SMALL", 0)
    monkeypatch.setattr("gpuplan.fleet.solver.alike.WORTH", 1.0)
    monkeypatch.setattr("gpuplan.fleet.solver.alike.MOST_ERROR", 9.0)


def checked(problem: Problem) -> Result:
    result = pack(problem)
    assert faults(problem, result) == []
    assert result.bound <= result.cost
    return result


def scattered(problem: Problem) -> Problem:
    """Every request wants a little less memory than another."""

    def less(option: Option, part: int) -> Option:
        return replace(option, memory_bytes=option.memory_bytes * (100 - part) // 100)

    return replace(
        problem,
        requests=tuple(
            replace(r, options=tuple(less(o, n % 9) for o in r.options))
            for n, r in enumerate(problem.requests)
        ),
    )


def test_a_fleet_of_unlike_items_is_packed_as_one_of_fewer_kinds() -> None:
    problem = fleet("distinct", 300, 5)
    result = checked(problem)
    merged = result.merged
    assert merged is not None
    assert not result.refused
    assert merged.before == len(compile_fleet(problem).classes)
    assert merged.after < merged.before / 2
    assert 0 < merged.rounded <= 0.6


def test_a_fleet_of_few_kinds_is_packed_by_its_own_amounts() -> None:
    assert checked(fleet("mixed", 300, 5)).merged is None


def test_what_binds_is_not_rounded() -> None:
    """Cores are short there: rounding those up would buy hosts."""
    free, bound = (checked(fleet(mix, 300, 5)).merged for mix in ("distinct", "distinct-bound"))
    assert free is not None
    assert bound is not None
    assert bound.after > free.after
    assert bound.cost <= 0.0025


@pytest.mark.parametrize("mix", ["core-bound", "memory-bound", "mixed", "notebooks"])
def test_the_bound_is_one_of_the_amounts_that_were_asked(
    mix: str, monkeypatch: pytest.MonkeyPatch, always: None
) -> None:
    """No packing of the items by their own amounts costs less."""
    asked = scattered(fleet(mix, 40, 4))
    merged = checked(asked)
    assert merged.merged is not None
    assert merged.merged.after < merged.merged.before
    monkeypatch.setattr("gpuplan.fleet.solver.alike.SMALL", 10**6)
    alone = checked(asked)
    assert alone.merged is None
    assert max(merged.bound, alone.bound) <= min(merged.cost, alone.cost)


def test_a_full_fleet_is_packed_by_its_own_amounts(always: None) -> None:
    """Nobody is refused for what was rounded up."""
    problem = scattered(fleet("mixed", 120, 3))
    few = replace(problem, hosts=tuple(replace(h, available=1) for h in problem.hosts))
    result = checked(few)
    assert result.refused
    assert result.merged is None


def test_it_is_said_with_what_it_costs() -> None:
    problem = fleet("distinct", 300, 5)
    result = checked(problem)
    assert result.merged is not None
    said = f"{result.merged.before} kinds of items were packed as {result.merged.after}"
    assert said in " ".join(text(problem, result).split())
    assert tree(problem, result)["merged"]["after"] == result.merged.after
