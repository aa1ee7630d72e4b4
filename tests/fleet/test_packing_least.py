"""Tiny fleets with every rule, most of them too small: the packing against all that there are."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import pytest

from gpuplan.fleet.problem import Problem, Result
from gpuplan.fleet.solver import pack
from tests.support import packing_problems as small
from tests.support.packing_check import faults

# Seeds of fleets that have too many packings to try all.
LARGE = {
    *(13, 17, 26, 27, 30, 34, 42, 49, 51, 58, 69, 90, 92, 101, 102, 103, 117, 139, 145, 152, 155),
    *(163, 166, 186, 187, 193, 194, 211, 225, 229),
}


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuplan.fleet.solver.run.ruin_work", lambda _: 3_000)


def tiny(seed: int) -> Problem:
    """One or two hosts of one type or two, for up to three requests of three priorities."""
    draw = random.Random(seed)
    asked = small.problem(seed, 3)
    few = asked.hosts[: draw.choice((1, 1, 2))]
    hosts = tuple(replace(kind, available=draw.choice((1, 1, 2))) for kind in few)
    requests = tuple(replace(r, priority=draw.choice((0, 1, 2))) for r in asked.requests)
    return replace(asked, hosts=hosts, requests=requests)


def key(asked: Problem, result: Result) -> tuple[small.Left, int, int]:
    """GPUs without a place by rank, the cost, and GPUs that somebody has."""
    left = dict.fromkeys(small.RANKS, Fraction())
    counted, requests = small.gpus_of(asked), {r.name: r for r in asked.requests}
    for told in result.refused:
        for number in told.numbers:
            mine = counted.get((told.request, number), Fraction())
            left[small.rank(requests[told.request], number)] += mine
    gpus = {(p.host_type, p.host, gpu) for p in result.placed for gpu in p.gpus}
    return tuple(left.values()), result.cost, len(gpus)


@pytest.mark.parametrize("seed", sorted({*range(240)} - LARGE))
def test_no_other_packing_leaves_less_costs_less_or_takes_fewer_gpus(seed: int) -> None:
    asked = tiny(seed)
    result = pack(asked)
    assert faults(asked, result) == []
    least = small.least_left(asked)
    assert key(asked, result) == least
    if not any(least[0]):
        assert result.bound <= least[1]
    again = pack(replace(asked, kept=result.placed, move_cost=10**12))
    assert again.moved == ()
    assert again.cost == result.cost
    assert {replace(p, cards=()) for p in result.placed} <= {
        replace(p, cards=()) for p in again.placed
    }


@pytest.mark.parametrize("seed", range(60))
def test_who_wants_more_than_before_stays_only_where_that_is_there(seed: int) -> None:
    """Twice the cores, the memory or the functions: of what stood some has no room any more."""
    asked = tiny(seed)
    stood = pack(asked)
    for more in ("cores", "memory_bytes", "functions"):
        requests = tuple(
            replace(r, options=tuple(replace(o, **{more: 2 * getattr(o, more)}) for o in r.options))
            for r in asked.requests
        )
        grown = replace(asked, requests=requests, kept=stood.placed)
        assert faults(grown, pack(grown)) == []


@pytest.mark.parametrize("free", [1, 2], ids=["one", "all"])
@pytest.mark.parametrize("seed", range(24))
def test_hosts_that_cost_nothing_are_not_proven_to_cost_something(seed: int, free: int) -> None:
    """Nor less than nothing, beside one that costs something."""
    asked = tiny(seed)
    result = pack(
        replace(
            asked, hosts=(*(replace(k, cost=0) for k in asked.hosts[:free]), *asked.hosts[free:])
        )
    )
    assert 0 <= result.bound <= result.cost
    assert result.bound_hosts <= sum(number for _, number in result.hosts)
