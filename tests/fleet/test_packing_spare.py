"""Of packings of one cost, the one on fewer GPUs, and on the cards that items had."""

from __future__ import annotations

from dataclasses import replace

from gpuplan.fleet.problem import Card, HostType, NumaCapacity, Option, Placed, Problem, Request
from gpuplan.fleet.solver import pack
from gpuplan.fleet.solver.classes import compile_fleet
from gpuplan.fleet.solver.improve import Packer
from gpuplan.fleet.solver.insert import insert, open_for
from gpuplan.fleet.solver.spare import share_all, spare, wasteful
from gpuplan.fleet.solver.state import State
from tests.support.packing_check import faults
from tests.support.packing_problems import GIB, MODELS


def host(name: str, gpu: str) -> HostType:
    node = NumaCapacity(gpus=(0, 1, 2, 3), cores=16, memory_bytes=256 * GIB)
    return HostType(name=name, gpu=gpu, nodes=(node,), cost=1_000_000, available=1)


def whole(gpu: str, gpus: int) -> Option:
    return Option(gpu=gpu, gpus=gpus, cores=1, memory_bytes=GIB)


def desktop() -> Option:
    return Option(gpu="cards", mode="vgpu", part="8C", cores=1, memory_bytes=GIB)


def stand_whole(problem: Problem) -> Packer:
    """Everybody on whole GPUs: the first request on the cards, the others where they can."""
    packer = Packer(State(compile_fleet(problem)))
    for item in range(len(packer.state.where)):
        choices = packer.choices[packer.fleet.class_of[item]]
        wholes = [c for c in choices if c[0].whole]
        assert insert(packer.state, item, wholes) or open_for(packer.state, item, wholes)
    return packer


def test_items_on_whole_gpus_share_one_where_a_part_would_do() -> None:
    request = Request(name="desktop", count=4, options=(desktop(), whole("cards", 1)))
    packer = stand_whole(Problem(gpus=MODELS, hosts=(host("a", "cards"),), requests=(request,)))
    assert packer.state.gpus == 4
    spare(packer, 1000)
    assert packer.state.gpus == 1
    assert packer.state.cost == 1_000_000


def test_others_change_places_to_let_them_share() -> None:
    job = Request(name="job", count=1, options=(whole("cards", 4), whole("four", 4)))
    desktops = Request(name="desktop", count=4, options=(desktop(), whole("four", 1)))
    hosts = (host("a", "cards"), host("b", "four"))
    packer = stand_whole(Problem(gpus=MODELS, hosts=hosts, requests=(job, desktops)))
    assert len(wasteful(packer.state)) == 4
    assert packer.state.gpus == 8
    spare(packer, 5000)
    assert packer.state.gpus == 5
    assert packer.state.cost == 2_000_000


def test_a_host_that_becomes_empty_is_given_back() -> None:
    request = Request(name="desktop", count=5, options=(desktop(), whole("cards", 1)))
    two = replace(host("a", "cards"), available=2)
    packer = stand_whole(Problem(gpus=MODELS, hosts=(two,), requests=(request,)))
    assert packer.state.cost == 2_000_000
    spare(packer, 1000)
    assert packer.state.cost == 1_000_000


def test_who_stays_keeps_its_cards_where_they_still_have_functions() -> None:
    """Of two cards with two functions each; a card that is gone, or asked too often, is none."""
    cards = (Card(functions=2), Card(functions=2))
    node = NumaCapacity(gpus=(0, 1, 2, 3), cores=16, memory_bytes=256 * GIB, cards=cards)
    kind = replace(host("a", "cards"), nodes=(node,))
    option = replace(whole("cards", 1), functions=1)
    asked = Problem(
        gpus=MODELS, hosts=(kind,), requests=(Request(name="job", count=3, options=(option,)),)
    )

    def cards_of(*kept: tuple[int, ...]) -> list[tuple[int, ...]]:
        stood = tuple(
            Placed(request="job", number=n, host_type="a", host=0, gpus=(n,), cards=numbers)
            for n, numbers in enumerate(kept)
        )
        result = pack(replace(asked, kept=stood))
        assert faults(asked, result) == []
        assert result.moved == ()
        return [p.cards for p in result.placed]

    assert cards_of((1,), (1,), (0,)) == [(1,), (1,), (0,)]
    assert cards_of((0,), (0,), (1,)) == [(0,), (0,), (1,)]
    assert cards_of((1,), (2,), (1,)) == [(1,), (0,), (1,)]
    assert cards_of((1,), (1,), (1,)) == [(1,), (1,), (0,)]
    assert cards_of((1,), (1, 1), ()) == [(1,), (0,), (0,)]


def test_a_gpu_that_is_less_than_half_full_is_emptied_and_a_fuller_one_is_not() -> None:
    """Two of six parts a GPU join the others on theirs; three and three stay as they are."""

    def gpus(*parts: int) -> int:
        one = Request(name="desktop", count=sum(parts), options=(desktop(),))
        packer = Packer(
            State(compile_fleet(Problem(gpus=MODELS, hosts=(host("a", "cards"),), requests=(one,))))
        )
        state = packer.state
        opened = state.open(0, None)
        choice, pool = packer.choices[0][0]
        item = 0
        for gpu, number in enumerate(parts):
            for _ in range(number):
                state.put(item, (choice, opened.id, 1 << gpu, None, pool))
                item += 1
        share_all(packer)
        return state.gpus

    assert gpus(4, 2) == 1
    assert gpus(3, 1, 2) == 1
    assert gpus(5, 2) == 2, "one does not fit"
    assert gpus(3, 3) == 2
