"""The way to an answer: the hardest items first, no move without a gain, and why each one is."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from gpuplan.fleet.problem import HostType, Placed, Request
from gpuplan.fleet.solver import pack
from gpuplan.fleet.solver.classes import compile_fleet
from gpuplan.fleet.solver.improve import Packer, open_all
from gpuplan.fleet.solver.state import State
from tests.fleet.test_packing_core import (
    SEVEN,
    SLICES,
    USD,
    ask,
    host,
    number,
    problem,
    share,
    solved,
    whole,
)


def stands(request: str, number: int, host: int, *gpus: int, **more: object) -> Placed:
    return Placed(request=request, number=number, host_type="h", host=host, gpus=gpus, **more)  # type: ignore[arg-type]


def opened(kind: HostType, *requests: Request) -> int:
    """The hosts that items take which are only put into the first hole there is."""
    packer = Packer(State(compile_fleet(problem(kind, *requests))))
    open_all(packer, list(range(len(packer.state.where))))
    return len(packer.state.hosts)


SIZES = {
    "GPUs": (host(nodes=(4,)), (whole(1), whole(2), whole(3)), 2),
    "cores": (host(nodes=(8,), cores=10), (whole(1, cores=3), whole(1, cores=7)), 1),
    "parts": (host(), (share("1g"), share("2g"), share("4g")), 1),
}


@pytest.mark.parametrize("name", SIZES)
def test_the_hardest_items_come_first_whatever_the_order_of_the_list(name: str) -> None:
    kind, options, hosts = SIZES[name]
    requests = [ask(f"r{n}", 2, option) for n, option in enumerate(options)]
    assert {opened(kind, *order) for order in permutations(requests)} == {2 * hosts - hosts // 2}


def test_nobody_moves_where_that_gains_nothing_even_if_moves_cost_nothing() -> None:
    """On two GPUs of a host that one would do for, and on two hosts that both stay in use."""
    parts = [{"mode": "mig", "part": "1g", "start": 0}] * 2
    kept = tuple(stands("a", n, 0, n, **more) for n, more in enumerate(parts))
    asked = problem(host(nodes=(2,)), ask("a", 2, share("1g")), kept=kept)
    assert (pack(asked).placed, pack(asked).moved) == (kept, ())
    full = tuple(stands("b", n, n // 2, n % 2) for n in range(3))
    asked = problem(host(nodes=(2,)), ask("b", 3, whole(1)), kept=full)
    assert (pack(asked).placed, pack(asked).moved) == (full, ())


def test_a_move_is_told_by_what_becomes_of_the_host() -> None:
    """Who is on a dear host goes where another one makes room, which fits beside a third."""
    kinds = (host(nodes=(4,), available=2), host("dear", nodes=(4,), cost=3 * USD))
    asked = (ask("dear", 1, whole(2)), ask("pair", 1, whole(2)), ask("one", 1, whole(1)))
    asked += (ask("three", 1, whole(3)),)
    kept = (
        replace(stands("dear", 0, 0, 0, 1), host_type="dear"),
        stands("pair", 0, 0, 0, 1),
        stands("one", 0, 0, 2),
        stands("three", 0, 1, 0, 1, 2),
    )
    result = pack(problem(kinds, *asked, kept=kept))
    assert dict(result.hosts) == {"h": 2}
    told = {move.before.request: move.why for move in result.moved}
    assert (told["dear"], told["one"]) == ("dear 0 is given back", "makes room on h 0")
    assert "three" not in told


def test_a_place_that_is_none_any_more_is_told_as_such() -> None:
    kept = (stands("a", 0, 0, 0), stands("a", 1, 0, 0))
    (move,) = pack(problem(host(nodes=(2,)), ask("a", 2, whole(1)), kept=kept)).moved
    assert move.before == kept[1]
    assert move.why == "its place on h 0 does not suit it any more"


def test_of_two_that_stand_in_two_modes_on_one_gpu_one_stays() -> None:
    kept = (
        stands("mig", 0, 0, 0, mode="mig", part="1g", start=0),
        stands("slice", 0, 0, 0, mode="time-slice", part="quarter"),
    )
    slices = replace(SLICES, name="time-slice")
    asked = (ask("mig", 1, share("1g")), ask("slice", 1, share("quarter", mode="time-slice")))
    result = pack(problem(host(nodes=(2,)), *asked, modes=(SEVEN, slices), kept=kept))
    assert [m.before for m in result.moved] == [kept[1]]
    assert kept[0] in result.placed


def test_of_a_part_and_a_whole_gpu_on_one_gpu_one_stays() -> None:
    kept = (stands("whole", 0, 0, 0), stands("part", 0, 0, 0, mode="mig", part="1g", start=0))
    asked = (ask("whole", 1, whole(1)), ask("part", 1, share("1g")))
    for order in (kept, kept[::-1]):
        result = pack(problem(host(nodes=(2,)), *asked, kept=order))
        assert [m.before for m in result.moved] == [order[1]]
        assert {p.gpus for p in result.placed} == {(0,), (1,)}


def test_of_a_group_that_stands_on_one_host_one_stays() -> None:
    kept = (stands("a", 0, 0, 0), stands("a", 1, 0, 1))
    result = pack(problem(host(nodes=(2,)), ask("a", 2, whole(1), spread="s"), kept=kept))
    assert [m.before for m in result.moved] == [kept[1]]
    assert {p.host for p in result.placed} == {0, 1}


def test_hosts_that_cost_nothing_are_packed_too() -> None:
    result = solved(host(nodes=(2,), cost=0), ask("a", 3, whole(1)))
    assert (number(result), result.cost, result.bound) == (2, 0, 0)
    mixed = (host("free", cost=0, available=1), host("paid"))
    assert dict(solved(mixed, ask("a", 2, whole(1))).hosts) == {"free": 1, "paid": 1}


def test_a_host_without_a_core_left_is_no_place(capfd: pytest.CaptureFixture[str]) -> None:
    kinds = (host("none", cores=0), host("some", cost=2 * USD))
    asked = (ask("a", 2, whole(1)), ask("b", 2, share("1g")), ask("c", 1, whole(1, cores=0)))
    result = solved(kinds, *asked)
    assert dict(result.hosts) == {"none": 1, "some": 3}
    (refused,) = solved(host(cores=0), ask("a", 1, whole(1))).refused
    assert (refused.resource, refused.requested, refused.available) == ("cpu_cores", 1, 0)
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("", ""), "no log of a solver"


def test_moves_that_have_a_price_are_forty_in_one_answer_and_the_next_goes_on() -> None:
    """A hundred items, each alone on a host that has room for two."""
    kept = tuple(stands("a", n, n, 0) for n in range(100))
    asked = problem(host(nodes=(2,)), ask("a", 100, whole(1)), kept=kept)
    free = pack(asked)
    assert (len(free.moved), free.hosts) == (50, (("h", 50),))
    first = pack(replace(asked, move_cost=1))
    assert (len(first.moved), first.hosts) == (40, (("h", 60),))
    second = pack(replace(asked, move_cost=1, kept=first.placed))
    assert (len(second.moved), second.hosts) == (10, (("h", 50),))


def test_who_must_move_does_not_count_against_those_that_save_money() -> None:
    """None of a hundred may stay where they are: the place is gone."""
    kept = tuple(stands("a", n, n, 7) for n in range(100))
    asked = problem(host(nodes=(2,)), ask("a", 100, whole(1)), kept=kept, move_cost=1)
    assert not pack(asked).refused
    assert pack(asked).hosts == (("h", 50),)


@pytest.mark.parametrize(("stand", "most"), [(100, 40), (10_000, 40), (15_000, 60)])
def test_of_many_that_stand_four_in_a_thousand_may_move_to_save_money(
    stand: int, most: int
) -> None:
    kept = tuple(stands("a", n, n, 0) for n in range(stand))
    asked = problem(host(), ask("a", 1, whole(1)), kept=kept)
    assert Packer(State(compile_fleet(asked))).most_moves == most


def test_a_whole_workload_has_no_place_within_a_gpu_however_it_came_to_its_host() -> None:
    """On a node or on several, dealt, or beside one that stands."""
    four = host(nodes=(2, 2), available=1)
    stood = solved(four, ask("one", 1, whole(1))).placed
    for gpus in (1, 2, 3):
        beside = solved(four, ask("one", 1, whole(1)), ask("b", 1, whole(gpus)), kept=stood)
        alone = solved(four, ask("b", 1, whole(gpus)))
        places = [p for p in (*beside.placed, *alone.placed) if p.request == "b"]
        assert [len(p.gpus) for p in places] == [gpus, gpus]
        assert {(p.host, p.mode, p.part, p.start) for p in places} == {(0, None, None, None)}


@pytest.mark.parametrize("gone", [1, 2])
def test_who_stands_on_a_host_that_is_gone_has_no_place_there(gone: int) -> None:
    """The hosts with the highest numbers are gone."""
    asked = ask("one", 3, whole(1))
    stood = solved(host(available=3), asked).placed
    assert [p.host for p in stood] == [0, 1, 2]
    result = solved(host(available=3 - gone), asked, kept=stood)
    assert [p.host for p in result.placed] == [*range(3 - gone)]
    assert [r.numbers for r in result.refused] == [(*range(3 - gone, 3),)]
