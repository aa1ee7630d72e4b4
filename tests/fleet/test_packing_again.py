"""Small fleets whose least cost is known, packed a second time: as they stand, with one more to
place, and with a host less."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuplan.fleet.problem import HostType, Problem
from gpuplan.fleet.solver import pack
from tests.fleet.test_packing_core import SEVEN, UNIFORM, USD, number, problem
from tests.fleet.test_packing_outline import LEAST
from tests.support.packing_check import faults

every_fleet = pytest.mark.parametrize("name", LEAST)
OF_ONE_TYPE = [name for name, (kinds, *_) in LEAST.items() if isinstance(kinds, HostType)]


@pytest.fixture(autouse=True)
def _no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuplan.fleet.solver.run.ruin_work", lambda _: 0)


def asked(name: str) -> Problem:
    kinds, requests, _ = LEAST[name]
    made: Problem = problem(kinds, *requests, modes=(SEVEN, UNIFORM))
    return made


@every_fleet
def test_what_stands_stays_as_it_is(name: str) -> None:
    first = pack(asked(name))
    again = pack(replace(asked(name), kept=first.placed))
    assert again.moved == ()
    assert set(again.placed) == set(first.placed)
    assert again.cost == first.cost


@every_fleet
def test_whoever_comes_is_placed_and_nobody_moves_where_moves_are_dear(name: str) -> None:
    fleet = asked(name)
    kept = pack(replace(fleet, requests=fleet.requests[:-1])).placed
    more = replace(fleet, kept=kept, move_cost=1000 * USD)
    result = pack(more)
    assert faults(more, result) == []
    assert (result.refused, result.moved) == ((), ())
    assert set(kept) <= set(result.placed)


@pytest.mark.parametrize("name", OF_ONE_TYPE)
def test_a_host_too_few_is_refused_and_as_many_more_as_said_are_enough(name: str) -> None:
    fleet = asked(name)
    (kind,) = fleet.hosts
    hosts = number(pack(fleet))
    short = replace(fleet, hosts=(replace(kind, available=hosts - 1),))
    result = pack(short)
    assert faults(short, result) == []
    assert result.refused
    said = [e for r in result.refused for e in r.enough if e.resource == "hosts"]
    assert len(said) == len(result.refused)
    assert all(e.cost == e.amount * kind.cost for e in said)
    enough = sum(int(e.amount) for e in said)
    assert not pack(replace(fleet, hosts=(replace(kind, available=hosts - 1 + enough),))).refused
