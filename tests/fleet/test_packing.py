"""Generated fleets of all mixes are packed rightly, near their bound, and the same each time."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench.packing.fleets import MIXES, fleet, replaced
from gpuplan.fleet.problem import Problem, Result
from gpuplan.fleet.solver import pack
from tests.support.packing_check import faults

ROOT = Path(__file__).parents[2]
ITEMS = 200
MOVE_COST = 1_000_000


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few steps of ruin and recreate: what is right does not depend on their number."""
    monkeypatch.setattr("gpuplan.fleet.solver.run.ruin_work", lambda _: 10_000)


def packed(problem: Problem) -> Result:
    result = pack(problem)
    assert faults(problem, result) == []
    return result


def over(result: Result) -> float:
    return result.cost / result.bound - 1


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("mix", sorted(MIXES))
def test_a_fleet_is_packed_rightly_and_near_its_bound(mix: str, seed: int) -> None:
    result = packed(fleet(mix, ITEMS, seed))
    assert not result.refused
    assert over(result) < 0.12


def test_everything_stands_that_can_where_hosts_are_few() -> None:
    problem = fleet("mixed", ITEMS, 3)
    few = tuple(replace(h, available=min(h.available or 2, 2)) for h in problem.hosts)
    result = packed(replace(problem, hosts=few))
    assert result.refused
    assert all(r.resource and r.unit for r in result.refused)


def test_room_for_growth_is_kept() -> None:
    problem = fleet("serving", ITEMS, 4)
    grown = tuple(
        replace(r, growth=1 if n % 10 == 0 else 0) for n, r in enumerate(problem.requests)
    )
    result = packed(replace(problem, requests=grown))
    counts = {r.name: r.count for r in grown}
    reserved = sum(p.number >= counts[p.request] for p in result.placed)
    assert reserved == sum(r.growth for r in grown)


@pytest.mark.parametrize("part", [0.01, 0.05])
def test_after_a_small_change_a_move_saves_its_price(part: float) -> None:
    problem = fleet("mixed", ITEMS, 5)
    changed = replaced(problem, packed(problem), part, "mixed", 5)
    still = packed(replace(changed, move_cost=10**12))
    assert still.moved == ()
    after = packed(replace(changed, move_cost=MOVE_COST))
    assert len(after.moved) <= ITEMS // 5
    assert all(m.why for m in after.moved)
    host = max(h.cost for h in problem.hosts)
    assert after.cost + len(after.moved) * MOVE_COST <= still.cost + host


def test_a_fleet_that_stands_is_left_alone_where_moves_are_dear() -> None:
    problem = fleet("training", ITEMS, 6)
    result = packed(problem)
    again = packed(replace(problem, kept=result.placed, move_cost=10**12))
    assert again.moved == ()
    assert again.cost == result.cost


def test_two_processes_give_one_answer() -> None:
    command = [sys.executable, "-m", "bench.packing.least_cost", "60"]
    command += ["--mix", "mixed", "--seeds", "1"]
    found = set()
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        more = {"cwd": ROOT, "env": environment, "capture_output": True, "text": True}
        done = subprocess.run([*command, "--digest"], check=False, **more)
        assert done.returncode == 0, done.stderr
        found.add(done.stdout)
    assert len(found) == 1
