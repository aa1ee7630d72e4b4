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
    monkeypatch.setattr("gpuplan.fleet.solver.run.effort", lambda _: 3_000)


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
