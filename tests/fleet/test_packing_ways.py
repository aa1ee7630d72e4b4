"""Workloads that may run in several ways: the best of all is packed, and its bound holds of all."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import pytest

from gpuplan.fleet.problem import Problem, Request, Ways
from gpuplan.fleet.solver import pack, pack_ways
from gpuplan.fleet.solver.ways import chosen, standing
from tests.fleet.test_packing_core import USD, ask, host, problem, share, whole

SMALL, BIG = host("small", cost=3 * USD), host("large", "big", nodes=(4,), cost=8 * USD)


def of(hosts: object, *workloads: tuple[Request, ...], **more: object) -> Problem:
    first = [way[0] for way in workloads]
    ways = tuple(Ways(ways=tuple((r,) for r in way)) for way in workloads)
    return replace(problem(hosts, *first, **more), ways=ways)


def test_a_way_is_taken_that_is_dearer_alone() -> None:
    """One GPU of the small type costs 3 for each alone; on the large host four share 8."""
    four = tuple(
        (ask(f"w{n}", 1, whole(1)), ask(f"w{n}", 1, whole(1, gpu="big"))) for n in range(4)
    )
    settled, result = pack_ways(of((SMALL, BIG), *four))
    assert (result.cost, result.bound) == (8 * USD, 8 * USD)
    assert {o.gpu for r in settled.requests for o in r.options} == {"big"}
    _, one = pack_ways(of((SMALL, BIG), four[0]))
    assert one.cost == 3 * USD


def test_no_way_is_on_fewer_hosts_than_is_proven() -> None:
    """Four small hosts are cheaper than one large, and one is the fewest."""
    cheap = replace(SMALL, cost=USD)
    apart = (ask("w", 4, whole(1)), ask("w", 4, whole(1, gpu="big")))
    _, result = pack_ways(of((cheap, BIG), apart))
    assert (result.hosts, result.cost, result.bound) == ((("small", 4),), 4 * USD, 4 * USD)
    assert result.bound_hosts == 1


@pytest.mark.parametrize("seed", range(12))
def test_no_selection_costs_less_than_the_bound_nor_less_than_the_answer(seed: int) -> None:
    chance = random.Random(seed)
    cheap = replace(SMALL, cost=chance.randint(1, 5) * USD)
    large = replace(BIG, cost=chance.randint(4, 12) * USD)
    options = (whole(1), whole(1, gpu="big"), whole(2, gpu="big"), share("3g"), share("1g"))
    workloads = [
        tuple(ask(f"w{n}", chance.randint(1, 4), option) for option in chance.sample(options, k=3))
        for n in range(3)
    ]
    every = of((cheap, large), *workloads)
    settled, result = pack_ways(every)
    assert not result.refused
    assert result.cost == pack(settled).cost
    costs = [pack(chosen(every, s)).cost for s in product(range(3), repeat=3)]
    assert result.bound <= min(costs)
    assert result.cost == min(costs)


def test_a_way_of_two_requests_and_one_of_one_stand_for_each_other() -> None:
    """Prompts and answers apart on two small hosts, or together on a large one."""
    apart = (ask("w", 1, whole(1)), ask("w-answers", 1, whole(1)))
    together = (ask("w", 1, whole(2, gpu="big")),)
    other = ask("other", 1, whole(1))
    for first, second in ((apart, together), (together, apart)):
        asked = replace(problem((SMALL, BIG), *first, other), ways=(Ways(ways=(first, second)),))
        assert chosen(asked, (0,)).requests == (*first, other)
        assert chosen(asked, (1,)).requests == (*second, other)
        settled, result = pack_ways(asked)
        assert settled.requests == (*apart, other)
        assert (result.cost, result.bound) == (9 * USD, 9 * USD)
        assert not result.refused


def test_what_stands_keeps_its_way() -> None:
    dear = replace(BIG, cost=20 * USD)
    ways = (ask("w", 2, whole(1)), ask("w", 1, whole(2, gpu="big")))
    on_large = pack(problem((SMALL, dear), ways[1])).placed
    settled, result = pack_ways(of((SMALL, dear), ways, kept=on_large))
    assert settled.requests == (ways[1],)
    assert not result.moved


def test_an_option_is_for_hosts_of_its_number_of_gpus() -> None:
    four = host("four", nodes=(4,), cost=USD)
    only = replace(whole(1), host_gpus=1)
    result = pack(problem((four, SMALL), ask("w", 1, only)))
    assert result.hosts == (("small", 1),)


def test_of_ways_in_which_all_that_stands_stays_the_one_with_least_beside_it_is_kept() -> None:
    """Two stand. Of two, three and five, two need nothing new; of five and three, three add one."""
    wide = host(nodes=(8,))
    two, three, five = (ask("w", n, whole(1)) for n in (2, 3, 5))
    kept = pack(problem(wide, two)).placed
    for ways, least in (((five, two, three), 1), ((five, three), 1), ((three, five), 0)):
        assert standing(of(wide, ways, kept=kept)) == (least,)
