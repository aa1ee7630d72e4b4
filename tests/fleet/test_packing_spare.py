"""Of packings of one cost, the one on fewer GPUs."""

from __future__ import annotations

from dataclasses import replace

from gpuplan.fleet.problem import HostType, NumaCapacity, Option, Problem, Request
from gpuplan.fleet.solver.classes import compile_fleet
from gpuplan.fleet.solver.improve import Packer
from gpuplan.fleet.solver.insert import insert, open_for
from gpuplan.fleet.solver.spare import spare, wasteful
from gpuplan.fleet.solver.state import State
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
        wholes = [c for c in choices if c[0].geometry < 0]
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
