"""A fleet that is full: who has a place, and who leaves for whom."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from gpuplan.fleet.problem import Placed, Request, Result
from tests.fleet.test_packing_core import ask, host, share, solved, whole

LOW, NORMAL, HIGH = 0, 1, 2
NODE = host(nodes=(8,), available=1)


def placed(result: Result) -> Counter[str]:
    return Counter(p.request for p in result.placed)


def test_parts_do_not_outweigh_the_gpus_that_they_would_fill() -> None:
    """Four jobs of eight GPUs and a hundred parts of a seventh, on four nodes of eight."""
    four = host(nodes=(8,), available=4)
    result = solved(four, ask("jobs", 4, whole(8)), ask("parts", 100, share("1g")))
    assert placed(result) == {"jobs": 4}
    some = solved(four, ask("jobs", 3, whole(8)), ask("parts", 100, share("1g")))
    assert placed(some) == {"jobs": 3, "parts": 56}, "and parts where GPUs are left"


def test_the_higher_priority_has_the_place() -> None:
    """However much more the others are."""
    low, high = ask("low", 1, whole(8), priority=LOW), ask("high", 1, whole(1), priority=HIGH)
    assert placed(solved(NODE, low, high)) == {"high": 1}
    many = ask("many", 40, share("1g"), priority=LOW)
    both = solved(NODE, many, ask("high", 5, whole(1), priority=HIGH))
    assert placed(both)["high"] == 5
    assert placed(both)["many"] == 21, "three GPUs are left for parts"
    equal = solved(NODE, ask("one", 1, whole(8)), ask("other", 1, whole(1)))
    assert placed(equal) == {"one": 1}, "of one priority the most GPUs"


def test_room_for_growth_gives_way_to_what_runs_now() -> None:
    growing = ask("growing", 4, whole(1), growth=4, priority=HIGH)
    result = solved(NODE, growing, ask("now", 4, whole(1), priority=LOW))
    now = Counter(p.request for p in result.placed if p.request == "now" or p.number < 4)
    assert now == {"growing": 4, "now": 4}


def test_nobody_of_lower_priority_stands_where_one_of_higher_could() -> None:
    """Random full nodes of whole GPUs: by priority no more GPUs could have been placed, as a count
    of GPUs from the highest priority down says."""
    for seed in range(25):
        chance = random.Random(seed)
        asked: list[Request] = [
            ask(
                f"r{n}", chance.randint(1, 4), whole(1), priority=chance.choice((LOW, NORMAL, HIGH))
            )
            for n in range(6)
        ]
        result = solved(host(nodes=(8,), available=1), *asked)
        left, found = 8, placed(result)
        for priority in (HIGH, NORMAL, LOW):
            wanted = sum(r.count for r in asked if r.priority == priority)
            stand = sum(found[r.name] for r in asked if r.priority == priority)
            assert stand == min(wanted, left), seed
            left -= stand


def test_what_stands_stays() -> None:
    """A new workload of higher priority takes no place of one that runs."""
    first = solved(NODE, ask("low", 8, whole(1), priority=LOW))
    kept: tuple[Placed, ...] = first.placed
    high = ask("high", 1, whole(1), priority=HIGH)
    result = solved(NODE, ask("low", 8, whole(1), priority=LOW), high, kept=kept)
    assert placed(result) == {"low": 8}


def test_nobody_leaves_for_one_that_has_fewer_gpus_than_those_who_would() -> None:
    """Two of two GPUs fill a host that one of three would have alone."""
    for order in ((2, 3), (3, 2)):
        asked = [ask(f"on-{gpus}", 2 if gpus == 2 else 1, whole(gpus)) for gpus in order]
        result = solved(host(nodes=(4,), available=1), *asked)
        assert [(p.request, p.number) for p in result.placed] == [("on-2", 0), ("on-2", 1)]
        assert [(r.request, r.numbers) for r in result.refused] == [("on-3", (0,))]


def test_no_more_than_so_many_are_proposed_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of twelve that wait, on as many hosts where one of lower priority stands."""
    monkeypatch.setattr("gpuplan.fleet.solver.full.preempting.MOST_PROPOSALS", 10)
    hosts = host(nodes=(1,), available=12)
    low, high = ask("low", 12, whole(1), priority=LOW), ask("high", 12, whole(1), priority=HIGH)
    stood = solved(hosts, low).placed
    result = solved(hosts, low, high, kept=stood)
    assert len(result.preemptions) == 10
    assert {p.placed.request for p in result.preemptions} == {"high"}
