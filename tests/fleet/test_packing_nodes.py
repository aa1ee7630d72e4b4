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
from gpuplan.fleet.solver.model import Columns
from gpuplan.fleet.solver.nodes.contents import Content, Item
from gpuplan.fleet.solver.nodes.packing import by_nodes
from gpuplan.fleet.solver.nodes.seat import seat
from gpuplan.fleet.solver.nodes.spread import Spread
from gpuplan.fleet.solver.outline.master import whole_outline
from gpuplan.fleet.solver.run import construct, finished, pack
from gpuplan.fleet.solver.state import State
from tests.fleet.test_packing_core import ask, host, whole
from tests.fleet.test_packing_core import problem as of
from tests.support import packing_problems as small
from tests.support.packing_check import faults

GIB = 2**30


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few steps of ruin and recreate: the contents have to do the work."""
    monkeypatch.setattr("gpuplan.fleet.solver.run.ruin_work", lambda _: 5_000)


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


class Rows(Columns):
    """A program that keeps the rows that are added to it."""

    def add_row(self, low: float, high: float, terms: dict[int, float]) -> int:
        self.row(low, high, terms)
        return len(self.rows) - 1


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


def test_a_group_on_too_few_hosts_of_a_type_is_cut_by_what_stands_on_those_alone() -> None:
    """Three of a group are said to stand on one host of the first type, which holds one of them;
    on the second type they stand well."""
    types = host("first", nodes=(4,)), host("second", nodes=(4,))
    fleet = compile_fleet(of(types, ask("group", 3, whole(1), spread="s")))
    (kind,) = fleet.classes
    made, program = Columns(), Rows()
    columns = [made.column(1.0) for _ in range(4)]
    spread = Spread(fleet, made, {(0, None): columns[0], (1, None): columns[1]})
    contents = [
        Content((choice.chassis, None, 0), (Item(kind.index, choice, SHARED, 3),))
        for choice in sorted(kind.choices, key=lambda choice: choice.chassis)
    ]
    numbers = [(columns[2], contents[0], 1.0), (columns[3], contents[1], 0.0)]
    assert spread.cut(program, numbers, [1.0, 3.0, 1.0, 0.0]) == 1  # type: ignore[arg-type]
    ((_, high, terms),) = program.rows
    assert (high, terms) == (0, {columns[0]: -1, columns[2]: 3})
    assert [spread.terms(content) for content in contents] == [{0: 3}, {}]


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


def of_cores_and_memory(*wanted: tuple[int, int]) -> Problem:
    """Twenty workloads of each amount of cores and GiB, on nodes of four GPUs, 12 and 12."""
    node = NumaCapacity(gpus=(0, 1, 2, 3), cores=12, memory_bytes=12 * GIB, cards=())
    kind = HostType(name="host", gpu="gpu", nodes=(node,), cost=1_000_000, available=None)
    requests = tuple(
        Request(
            name=f"{cores}-{memory}",
            count=20,
            options=(Option(gpu="gpu", gpus=1, cores=cores, memory_bytes=memory * GIB),),
        )
        for cores, memory in wanted
    )
    return Problem(gpus=(GpuModel(name="gpu", memory_bytes=GIB),), hosts=(kind,), requests=requests)


@pytest.mark.parametrize(
    ("wanted", "hosts"),
    [
        (((3, 6), (6, 3), (4, 6)), 30),
        (((2, 6), (7, 7), (6, 3)), 40),
        (((6, 2), (4, 6), (6, 4)), 30),
        (((7, 5), (5, 7), (2, 2)), 25),
    ],
)
def test_what_neither_cores_nor_memory_alone_forbid_is_proven(
    wanted: tuple[tuple[int, int], ...], hosts: int
) -> None:
    """No node takes a mixture that fills it; the sums of cores and of memory would allow fewer."""
    problem = of_cores_and_memory(*wanted)
    result = checked(problem)
    assert whole_outline(compile_fleet(problem)).bound < result.bound
    assert result.bound == result.cost == hosts * 1_000_000


@pytest.mark.parametrize("seed", small.TRIED)
def test_no_packing_is_cheaper_than_the_bound_by_contents(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpuplan.fleet.solver.nodes.packing.ENOUGH", 0.0)
    asked = small.problem(seed, 3)
    least = small.least_cost(asked)
    assert least is not None
    fleet = compile_fleet(asked)
    outline = whole_outline(fleet)
    start = construct(fleet, outline)
    _, bound = by_nodes(fleet, outline, start, finished(outline))
    assert outline.bound <= bound <= least[0]
