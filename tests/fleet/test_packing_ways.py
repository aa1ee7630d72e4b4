"""Workloads that may run in several ways: the best of all is packed, and its bound holds of all."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import pytest

from gpuplan.fleet.problem import Problem, Request, Result, Ways
from gpuplan.fleet.solver import pack, pack_ways
from gpuplan.fleet.solver.ways import chosen, standing
from tests.fleet.test_packing_core import USD, ask, host, problem, share, whole
from tests.support.packing_check import faults

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


def mixed(seed: int) -> Problem:
    """Equal workloads, others in ways of one request or two, requests that have no choice, one of
    them too wide for any host; on few or many hosts of three types."""
    draw = random.Random(seed)
    hosts = tuple(
        replace(kind, cost=draw.randint(2, 12) * USD, available=draw.choice((None, None, 2)))
        for kind in (host("wide", nodes=(8,)), host("small"), host("large", "big", nodes=(4,)))
    )
    options = (whole(1), whole(2), whole(1, gpu="big"), share("3g"), share("1g"))

    def way(name: str) -> tuple[Request, ...]:
        first, *rest = draw.sample(options, k=draw.choice((1, 1, 2)))
        more = {"tenant": "red", "isolation": draw.choice(("shared", "shared", "node"))}
        own = ask(name, draw.randint(1, 3), first, growth=draw.choice((0, 0, 1)), **more)
        return (own, *(ask(f"{name}-more", 1, o, **more) for o in rest))

    def named(ways: Ways, name: str) -> Ways:
        old = ways.ways[0][0].name
        return Ways(
            ways=tuple(
                tuple(replace(r, name=r.name.replace(old, name)) for r in each)
                for each in ways.ways
            )
        )

    two, other = (Ways(ways=tuple(way(name) for _ in range(2))) for name in ("a", "b"))
    many = (two, named(two, "c"), other)
    plain = [ask("plain", draw.randint(1, 3), draw.choice(options), tenant="blue")]
    plain += [ask("never", 2, whole(9))] if draw.random() < 0.5 else []
    requests = (*plain, *(r for each in many for r in each.ways[0]))
    return replace(problem(hosts, *requests), ways=many)


def cored(seed: int) -> Problem:
    """Three workloads in two ways, where cores are short."""
    draw = random.Random(seed)
    hosts = (
        host("small", nodes=(2,), cores=10, cost=2 * USD),
        host("large", nodes=(8,), cores=31, cost=5 * USD),
        host("other", "big", nodes=(4,), cores=17, cost=4 * USD),
    )

    def way(name: str) -> Request:
        count, gpus, cores = draw.randint(1, 5), draw.randint(1, 3), draw.randint(2, 9)
        return ask(name, count, whole(gpus, cores=cores, gpu=draw.choice(("g", "big"))))

    return of(hosts, *(tuple(way(f"w{n}") for _ in range(2)) for n in range(3)))


@pytest.mark.parametrize("seed", [18, 30, 33])  # where neither the model's nor the first ways do
def test_single_changes_are_tried_where_the_model_proves_nothing(seed: int) -> None:
    asked = cored(seed)
    settled, result = pack_ways(asked)
    assert faults(settled, result) == []
    assert result.cost == min(pack(chosen(asked, s)).cost for s in product(range(2), repeat=3))


@pytest.mark.parametrize("seed", range(40))
def test_no_selection_places_more_or_costs_less(seed: int) -> None:
    """And where all find a place, the bounds are those of every selection, and that of the cost
    proves that none costs less."""
    asked = mixed(seed)
    settled, result = pack_ways(asked)
    assert faults(settled, result) == []

    def key(result: Result) -> tuple[int, int]:
        return sum(len(r.numbers) for r in result.refused if r.request != "never"), result.cost

    every = [pack(chosen(asked, s)) for s in product(range(2), repeat=3)]
    assert key(result) == min(map(key, every))
    assert settled in [chosen(asked, s) for s in product(range(2), repeat=3)]
    if not result.refused:
        assert result.bound == result.cost
        placing = [e for e in every if not e.refused]
        assert result.bound_hosts <= min(sum(n for _, n in e.hosts) for e in placing)


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
