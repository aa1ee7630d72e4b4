"""Contents of whole nodes: packings that the other steps miss, and none that is dearer."""

from __future__ import annotations

from itertools import permutations

import pytest

from bench.fleets import MIXES, UNSEEN, fleet
from gpuplan.fleet.problem import (
    Card,
    GpuModel,
    HostType,
    NumaCapacity,
    Option,
    Problem,
    Request,
    Result,
)
from gpuplan.fleet.solver.classes import SHARED, compile_fleet
from gpuplan.fleet.solver.nodes.contents import Content, Item
from gpuplan.fleet.solver.nodes.packing import by_nodes
from gpuplan.fleet.solver.nodes.seat import seat
from gpuplan.fleet.solver.outline.master import whole_outline
from gpuplan.fleet.solver.run import construct, finished, pack
from gpuplan.fleet.solver.state import State
from tests.fleet.test_packing_core import ask, host, whole
from tests.fleet.test_packing_core import problem as of
from tests.support.packing_check import faults

GIB = 2**30


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few steps of ruin and recreate: the contents have to do the work."""
    monkeypatch.setattr("gpuplan.fleet.solver.run.effort", lambda _: 5_000)


def checked(problem: Problem, *, contents: bool) -> Result:
    result = pack(problem, contents=contents)
    assert faults(problem, result) == []
    assert not result.refused
    return result


@pytest.mark.parametrize("mix", sorted(MIXES | UNSEEN))
def test_contents_never_make_a_packing_dearer(mix: str) -> None:
    problem = fleet(mix, 250, 7)
    assert checked(problem, contents=True).cost <= checked(problem, contents=False).cost


def test_core_bound_fleets_lose_less_than_half_of_what_they_lost() -> None:
    """Where cores bind, what is left of single nodes is the loss: whole contents leave none."""
    problem = fleet("core-bound", 1000, 3)
    before, after = (checked(problem, contents=c) for c in (False, True))
    assert after.cost - after.bound < (before.cost - before.bound) / 2


def test_workloads_that_fill_nodes_exactly_do_so() -> None:
    """Cores of 7, 6, 5, 4, 3, 2: each node of 9 takes two that fill it (7+2, 6+3, 5+4)."""
    kind = HostType(
        name="host",
        gpu="gpu",
        nodes=(
            NumaCapacity(gpus=(0, 1, 2), cores=9, memory_bytes=GIB, cards=(Card(functions=8),)),
        ),
        cost=1_000_000,
        available=None,
    )
    requests = tuple(
        Request(
            name=f"of-{cores}",
            count=40,
            options=(Option(gpu="gpu", gpus=1, cores=cores, memory_bytes=0),),
        )
        for cores in (7, 6, 5, 4, 3, 2)
    )
    problem = Problem(
        gpus=(GpuModel(name="gpu", memory_bytes=GIB),), hosts=(kind,), requests=requests
    )
    result = checked(problem, contents=True)
    assert sum(n for _, n in result.hosts) == 120
    assert result.cost == result.bound == 120_000_000


def test_a_spread_group_has_a_host_for_each_item_in_a_packing_from_contents() -> None:
    problem = fleet("giants", 150, 8)
    compiled = compile_fleet(problem)
    least = whole_outline(compiled)
    start = construct(compiled, least)
    found = by_nodes(compiled, least, start, finished(least))
    assert found
    for packer in found:
        for each in packer.state.hosts.values():
            groups = [compiled.spread[i] for i in each.items if compiled.spread[i] >= 0]
            assert len(groups) == len(set(groups))


def test_beside_one_of_a_spread_group_others_are_seated() -> None:
    """Two hosts of two nodes; two of the group on one host would leave a node empty."""
    group, others = ask("group", 2, whole(1), spread="s"), ask("others", 2, whole(1, cores=2))
    compiled = compile_fleet(of(host(nodes=(1, 1)), group, others))
    state = State(compiled)
    contents = [
        (Content((0, None, 0), (Item(kind.index, kind.choices[0], SHARED, 1),)), 2)
        for kind in sorted(compiled.classes, key=lambda kind: kind.items)
    ]
    seat(state, contents, {kind.index: list(kind.items) for kind in compiled.classes})
    assert None not in state.where
    assert [len(each.items) for each in state.hosts.values()] == [2, 2]


def test_of_groups_the_one_with_most_left_is_seated_first() -> None:
    """Four, three and three fill five hosts of two GPUs only if the largest group comes first."""
    groups = [ask(name, n, whole(1), spread=name) for name, n in (("a", 4), ("b", 3), ("c", 3))]
    for order in permutations(groups):
        compiled = compile_fleet(of(host(nodes=(2,), available=5), *order))
        (kind,) = compiled.classes
        content = Content((0, None, 0), (Item(0, kind.choices[0], SHARED, 2),))
        state = State(compiled)
        seat(state, [(content, 5)], {0: list(kind.items)})
        assert None not in state.where
