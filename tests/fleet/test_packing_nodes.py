"""Contents of whole nodes, and how they are seated on hosts."""

from __future__ import annotations

from itertools import permutations

import pytest

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
from gpuplan.fleet.solver.nodes.seat import seat
from gpuplan.fleet.solver.run import pack
from gpuplan.fleet.solver.state import State
from tests.fleet.test_packing_core import ask, host, whole
from tests.fleet.test_packing_core import problem as of
from tests.support.packing_check import faults

GIB = 2**30


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few steps of ruin and recreate: the contents have to do the work."""
    monkeypatch.setattr("gpuplan.fleet.solver.run.effort", lambda _: 5_000)


def checked(problem: Problem) -> Result:
    result = pack(problem)
    assert faults(problem, result) == []
    assert not result.refused
    return result


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
    result = checked(problem)
    assert sum(n for _, n in result.hosts) == 120
    assert result.cost == result.bound == 120_000_000


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
