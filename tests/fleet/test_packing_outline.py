"""The outline: what its rows prove of every packing, and that dealing places what it promises."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from random import Random

import pytest

from gpuplan.fleet.problem import HostType, Option, Problem, Request
from gpuplan.fleet.solver import pack
from gpuplan.fleet.solver.classes import compile_fleet
from gpuplan.fleet.solver.deal import deal
from gpuplan.fleet.solver.improve import Packer, open_all
from gpuplan.fleet.solver.model import CUT_SHORT, Columns, solve
from gpuplan.fleet.solver.nodes.packing import by_nodes
from gpuplan.fleet.solver.outline.master import fewest_hosts, whole_outline
from gpuplan.fleet.solver.patterns import Geometry
from gpuplan.fleet.solver.run import construct, settle
from gpuplan.fleet.solver.state import State
from tests.fleet.test_packing_core import (
    FOUR,
    GB,
    SEVEN,
    UNIFORM,
    USD,
    ask,
    host,
    problem,
    share,
    whole,
)

CHEAP = host("cheap", available=1)
DEAR = host("dear", cost=3 * USD)
RED = {"tenant": "red", "isolation": "node"}
BLUE = {"tenant": "blue", "isolation": "node"}

# Hosts, requests, and the least cost of hosts for them in dollars, by hand.
LEAST: dict[str, tuple[HostType | tuple[HostType, ...], tuple[Request, ...], int]] = {
    "one cheap host for two owners": (
        (CHEAP, DEAR), (ask("a", 1, whole(1), **RED), ask("b", 1, whole(1), **BLUE)), 4
    ),
    "one cheap host for two owners and all others": (
        (CHEAP, DEAR),
        (ask("a", 1, share("1g"), **RED), ask("b", 1, share("1g"), **BLUE),
         ask("c", 1, share("1g"))), 7,
    ),
    "cores of a node: two of three GPUs": (
        host(nodes=(3,), cores=8), (ask("a", 6, whole(1, cores=3)),), 3
    ),
    "cores of a node: one large beside two small": (
        host(nodes=(4,), cores=9),
        (ask("a", 3, whole(1, cores=5)), ask("b", 6, whole(1, cores=2))), 3,
    ),
    "cores of a node: the large ones stand alone": (
        host(nodes=(4,), cores=8),
        (ask("a", 3, whole(1, cores=6)), ask("b", 2, whole(1, cores=3))), 4,
    ),
    "functions of a node": (
        host(nodes=(4,), functions=3), (ask("a", 4, whole(1, vf=2)),), 4
    ),
    "a group on different hosts": (host(nodes=(8,)), (ask("a", 3, whole(1), spread="s"),), 3),
    "groups of two sizes": (
        host(nodes=(8,)),
        (ask("a", 4, share("1g"), spread="s"), ask("b", 2, share("1g"), spread="t")), 4,
    ),
    "a group beside one alone in its group": (
        host(nodes=(8,)),
        (ask("a", 4, whole(1), spread="s"), ask("b", 1, whole(1), spread="t")), 4,
    ),
    "pairs of nodes of three": (host(nodes=(3,)), (ask("a", 3, whole(2)),), 3),
    "islands": (
        host(nodes=(4,), islands=((0, 1), (2, 3))), (ask("a", 5, whole(2)),), 3
    ),
    "all of two nodes beside one of each": (
        host(nodes=(2, 2)), (ask("a", 1, whole(4)), ask("b", 2, whole(2))), 2
    ),
    "islands that overlap": (
        host(nodes=(3,), islands=((0, 1), (1, 2))), (ask("a", 3, whole(2)),), 3
    ),
    "five GPUs on two nodes: each gives its part of the cores": (
        host(nodes=(4, 2), cores=8), (ask("a", 2, whole(5, cores=10)), ask("b", 2, whole(1))), 2
    ),
    "functions of two nodes": (
        host(nodes=(2, 2), functions=2), (ask("a", 2, whole(3, vf=3)), ask("b", 2, whole(1, vf=2))),
        3,
    ),
    "pairs of two nodes that hold three each": (
        host(nodes=(3, 3)), (ask("a", 4, whole(2)), ask("b", 4, whole(1))), 2
    ),
    "parts beside a GPU, by cores": (
        host(nodes=(2,), cores=9), (ask("a", 2, whole(1, cores=8)), ask("b", 2, share("1g"))), 2
    ),
    "no host of a type is left": (
        (host("none", cost=USD // 2, available=0), host()), (ask("a", 2, whole(1)),), 2
    ),
    "vGPUs of one size a GPU": (
        host(), (ask("a", 7, share("8q", mode="vgpu")), ask("b", 1, share("16q", mode="vgpu"))), 3
    ),
    "layouts": (host(), (ask("a", 3, share("3g")), ask("b", 2, share("4g"))), 3),
    "parts, GPUs and a whole host": (
        host(nodes=(2, 2)),
        (ask("a", 1, whole(4)), ask("b", 7, share("1g")), ask("c", 3, whole(1))), 2,
    ),
    "each on the type that has enough cores": (
        (host("thin", nodes=(4,), cores=4, cost=2 * USD), host("fat", nodes=(4,), cost=3 * USD)),
        (ask("a", 4, whole(1)), ask("b", 4, whole(1, cores=8))), 5,
    ),
    "two of one GPU or of another": (
        (host("small", cost=3 * USD), host("large", "big", nodes=(2,), cost=4 * USD)),
        (ask("a", 2, whole(1), whole(1, gpu="big")),), 4,
    ),
    "groups where one host is cheap": (
        (host("cheap", nodes=(8,), available=1), host("dear", nodes=(2,), cost=3 * USD)),
        (ask("a", 3, share("1g"), spread="s"), ask("b", 2, share("1g"), spread="t")), 7,
    ),
    "cores here and functions there": (
        host(nodes=(2, 2), cores=8, functions=4),
        (ask("a", 4, whole(1, cores=6, vf=1)), ask("b", 4, whole(1, cores=2, vf=3))), 2,
    ),
    "a large group and two small ones on two types": (
        (host("few", nodes=(4,), available=3), host("more", nodes=(4,), cost=2 * USD)),
        (ask("a", 1, whole(1), spread="a"), ask("b", 1, whole(1), spread="b"),
         ask("c", 5, whole(1), spread="c")), 7,
    ),
    "GPUs of one's own beside shared ones": (
        host(nodes=(2,)),
        (ask("a", 1, share("1g"), tenant="red", isolation="gpu"), ask("b", 7, share("1g")),
         ask("c", 1, share("1g"), **BLUE)), 2,
    ),
}  # fmt: skip
# What contents of whole nodes do not reach alone: two rest on parts of several nodes, which are no
# contents; where three are rounded up the search mends it.
NOT_BY_CONTENTS = (
    "cores of a node: one large beside two small",
    "groups of two sizes",
    "a group beside one alone in its group",
    "a large group and two small ones on two types",
    "five GPUs on two nodes: each gives its part of the cores",
    "functions of two nodes",
)


@pytest.mark.parametrize("name", LEAST)
@pytest.mark.parametrize("small", [300, 0], ids=["all rows", "rows that are broken"])
def test_the_bound_is_what_hosts_cost_at_least(
    name: str, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound of a model with all rows, and with those that its answers break."""
    monkeypatch.setattr("gpuplan.fleet.solver.outline.tighten.CUT_SMALL", small)
    kinds, requests, least = LEAST[name]
    asked = problem(kinds, *requests, modes=(SEVEN, UNIFORM))
    result = pack(asked)
    assert not result.refused
    assert result.cost == least * USD
    assert result.bound == least * USD
    fleet = compile_fleet(asked)
    outlines = [whole_outline(fleet), whole_outline(fleet, whole=True)]
    assert max(each.bound for each in outlines) == least * USD


@pytest.mark.parametrize("other", [(), (host("paid", cost=3),)], ids=["alone", "beside others"])
def test_hosts_that_cost_nothing_are_bound_by_nothing(other: tuple[HostType, ...]) -> None:
    """Nor by less, where the others' cost is small."""
    free = host("free", nodes=(2,), cost=0)
    fleet = compile_fleet(problem((free, *other), ask("a", 9, whole(1)), ask("b", 40, share("1g"))))
    for each in (whole_outline(fleet), whole_outline(fleet, whole=True)):
        assert (each.bound, fewest_hosts(each)) == (0, 8)


def _all_stand(packer: Packer, least: int) -> bool:
    return None not in packer.state.where and packer.state.cost == least * USD


@pytest.mark.parametrize("name", LEAST)
def test_the_first_packing_costs_no_more_before_any_search(name: str) -> None:
    kinds, requests, least = LEAST[name]
    fleet = compile_fleet(problem(kinds, *requests, modes=(SEVEN, UNIFORM)))
    assert _all_stand(construct(fleet, whole_outline(fleet, whole=True)), least)


@pytest.mark.parametrize("name", [name for name in LEAST if name not in NOT_BY_CONTENTS])
def test_contents_of_whole_nodes_alone_cost_no_more(name: str) -> None:
    """From nothing, and without anybody who is placed afterwards."""
    kinds, requests, least = LEAST[name]
    fleet = compile_fleet(problem(kinds, *requests, modes=(SEVEN, UNIFORM)))
    outline, nothing = whole_outline(fleet, whole=True), Packer(State(fleet))
    packers, _ = by_nodes(fleet, outline, nothing, lambda packer: packer)
    assert packers
    assert all(_all_stand(packer, least) for packer in packers)


@pytest.mark.parametrize("name", LEAST)
def test_contents_of_whole_nodes_prove_no_more_than_hosts_cost(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor where some workloads stand on parts of several nodes, which no content says."""
    monkeypatch.setattr("gpuplan.fleet.solver.nodes.packing.ENOUGH", 0.0)
    kinds, requests, least = LEAST[name]
    fleet = compile_fleet(problem(kinds, *requests, modes=(SEVEN, UNIFORM)))
    outline = whole_outline(fleet)
    _, bound = by_nodes(fleet, outline, construct(fleet, outline), lambda packer: packer)
    assert outline.bound <= bound <= least * USD


def leftovers(seed: int) -> Problem:
    """Parts and GPUs with many cores, on small hosts and large ones."""
    draw = Random(seed)
    kinds = (
        host("small", nodes=(2,), cores=10, cost=2 * USD),
        host("large", nodes=(8,), cores=31, cost=5 * USD),
    )
    options = [whole(1, cores=draw.randint(2, 6)) for _ in range(3)]
    options += [share("1g", cores=1), share("3g", cores=2), whole(2, cores=draw.randint(4, 9))]
    asked = [ask(f"r{n}", draw.randint(2, 9), o) for n, o in enumerate(draw.sample(options, 4))]
    return problem(kinds, *asked)


@pytest.mark.parametrize("seed", [0, 2, 3, 4, 6, 7, 10, 12, 14, 16, 18, 19, 20, 21, 24])
def test_who_has_no_place_is_dealt_one_at_the_least_cost_of_all(seed: int) -> None:
    """From nothing; who takes the first hole there is pays more."""
    fleet = compile_fleet(leftovers(seed))
    packer, first = Packer(State(fleet)), Packer(State(fleet))
    settle(packer)
    assert None not in packer.state.where
    assert packer.state.cost == whole_outline(fleet, whole=True).bound
    open_all(first, list(range(len(fleet.request))))
    assert first.state.cost > packer.state.cost


def _dealt(asked: Problem) -> tuple[State, int]:
    """The hosts after dealing alone, and how many items found no place."""
    fleet = compile_fleet(asked)
    state = State(fleet)
    deal(state, whole_outline(fleet, whole=True), {k.index: k.items for k in fleet.classes})
    return state, sum(where is None for where in state.where)


@pytest.mark.parametrize("seed", range(6))
def test_units_are_dealt_to_the_least_loaded_nodes(seed: int) -> None:
    """Nodes of equal hosts differ in no resource by more than the largest unit takes."""
    draw = Random(seed)
    most = 0
    asked = []
    for n in range(16):
        cores = draw.randint(1, 6)
        most = max(most, cores)
        asked.append(ask(f"r{n}", 1, whole(1, cores=cores)))
    state, left = _dealt(problem(host(nodes=(4, 4), cores=40), *asked))
    assert left == 0
    used = [40 - left[0] for each in state.hosts.values() for left in each.left]
    assert len(used) == 4
    assert max(used) - min(used) <= most


@pytest.mark.parametrize("seed", range(8))
def test_everybody_is_dealt_a_place_where_gpus_alone_are_short(seed: int) -> None:
    """On nodes of two sizes, in two modes, for two teams of which one has hosts of its own."""
    draw = Random(seed)
    kinds = (
        replace(host("even", nodes=(1, 3), cost=4 * USD), available=draw.choice((None, 1))),
        host("other", nodes=(2,), cost=3 * USD),
    )
    options = [share(part, cores=0) for part in ("1g", "2g", "3g")]
    options += [replace(share(part, cores=0), mode="vgpu") for part in ("8q", "24q")]
    more = ({"tenant": "red"}, {"tenant": "red"}, {"tenant": "blue", "isolation": "node"})
    asked = [
        ask(f"r{n}", draw.randint(1, 9), replace(o, memory_bytes=0), **draw.choice(more))
        for n, o in enumerate(options)
    ]
    asked.append(ask("own", draw.randint(1, 4), whole(1, cores=0)))
    _, left = _dealt(problem(kinds, *asked, modes=(SEVEN, UNIFORM)))
    assert left == 0


@pytest.mark.parametrize("options", [*permutations((whole(3), whole(1), whole(2)))])
def test_of_ways_that_cost_as_much_the_one_on_fewest_gpus_is_outlined(
    options: tuple[Option, ...],
) -> None:
    fleet = compile_fleet(problem(host(nodes=(8,)), ask("a", 2, *options)))
    for each in (whole_outline(fleet), whole_outline(fleet, whole=True)):
        assert {load.choice.gpus for load, _ in each.loads} == {1}


def test_the_largest_units_are_dealt_first() -> None:
    """Two GPUs on each node would leave no room for three."""
    asked = (ask("two", 2, whole(2)), ask("three", 1, whole(3)), ask("one", 1, whole(1)))
    state, left = _dealt(problem(host(nodes=(4, 4)), *asked))
    assert (left, len(state.hosts)) == (0, 1)


@pytest.mark.parametrize("resource", range(3))
@pytest.mark.parametrize("option", [whole(1), share("1g")], ids=["GPUs", "slots"])
def test_of_each_resource_nodes_are_loaded_alike(resource: int, option: Option) -> None:
    """One large item on one node, all small ones on the other; those of nothing fill the slots."""
    width = 8 if option.gpus else 1
    room = host(nodes=(width, width), cores=40, functions=40)

    def items(name: str, count: int, amount: int) -> Request:
        cores, memory, functions = (amount if n == resource else 0 for n in range(3))
        size = {"cores": cores, "memory_bytes": memory * 10 * GB, "functions": functions}
        return ask(name, count, replace(option, **size))

    asked = (items("large", 1, 6), items("small", 6, 1), items("none", 7, 0))
    state, left = _dealt(problem(room, *asked))
    assert left == 0
    (only,) = state.hosts.values()
    pairs = zip(only.chassis.room, only.left, strict=True)
    first, second = (there[resource] - left[resource] for there, left in pairs)
    assert first == second > 0


def test_a_slot_that_one_item_cannot_have_is_kept_for_the_next() -> None:
    """Of one node the cores are taken, of the other the memory: who needs both finds no place."""

    def items(name: str, count: int, cores: int, memory: int) -> Request:
        return ask(name, count, replace(share("1g", cores=cores), memory_bytes=memory * 64 * GB))

    asked = (items("cores", 1, 6, 0), items("memory", 1, 0, 6), items("both", 1, 4, 4))
    asked += (items("none", 6, 0, 0), items("little", 5, 1, 0))
    state, left = _dealt(problem(host(nodes=(1, 1), cores=8), *asked))
    assert (left, state.where[2]) == (1, None)


def test_a_search_that_takes_too_long_is_stopped_and_says_so() -> None:
    """Sixty objects in five sacks: stopped at the first look, and at a later one."""
    draw, model = Random(1), Columns()
    sizes = [draw.randint(500, 1500) for _ in range(60)]
    columns = [model.column(-float(s + draw.randint(0, 60)), 1, whole=True) for s in sizes]
    for sack in range(5):
        terms = {c: float(s + draw.randint(0, 200)) for c, s in zip(columns, sizes, strict=True)}
        model.row(0, sum(sizes) / 3 + sack, terms)
    first, later = (solve(model, gap=0, looks=looks) for looks in (1, 100))
    assert {first.status, later.status} <= set(CUT_SHORT)
    assert first.objective > later.objective >= later.bound


OTHER = replace(FOUR, name="vgpu-mixed")
TOO_MANY: dict[str, tuple[tuple[Request, ...], int]] = {
    "units": ((ask("a", 3, share("1g.double")), ask("b", 1, share("3g"))), 2),
    "compute units": ((ask("a", 4, share("1g")), ask("b", 2, share("2g"))), 2),
    "a number": ((ask("a", 4, share("2g")),), 2),
    "each mode by its own": (
        (ask("a", 6, share("2g")), ask("b", 4, share("2g", mode="vgpu-mixed"))),
        4,
    ),
}


@pytest.mark.parametrize("name", TOO_MANY)
def test_where_layouts_are_too_many_to_list_units_and_numbers_bound_them(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests, hosts = TOO_MANY[name]
    asked = problem(host(), *requests, modes=(OTHER, SEVEN))
    listed = pack(asked)
    monkeypatch.setattr("gpuplan.fleet.solver.patterns.MOST_LAYOUTS", 0)
    assert {geometry.layouts for geometry in compile_fleet(asked).geometries} == {None}
    result = pack(asked)
    assert result.cost == listed.cost == hosts * USD
    assert result.bound == whole_outline(compile_fleet(asked)).bound == hosts * USD


@pytest.mark.parametrize("name", TOO_MANY)
def test_contents_prove_nothing_of_layouts_that_are_not_listed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a packing with a host for each item: its contents are all that is known of these."""
    monkeypatch.setattr("gpuplan.fleet.solver.nodes.packing.ENOUGH", 0.0)
    asked = problem(host(), *TOO_MANY[name][0], ask("whole", 1, whole(1)), modes=(OTHER, SEVEN))
    least = pack(asked).cost
    monkeypatch.setattr("gpuplan.fleet.solver.patterns.MOST_LAYOUTS", 0)
    fleet = compile_fleet(asked)
    outline = whole_outline(fleet)
    start = Packer(State(fleet))
    assert all(start.open_for(item) for item in range(len(fleet.request)))
    assert by_nodes(fleet, outline, start, lambda packer: packer)[1] <= least


@pytest.mark.parametrize("seed", range(6))
def test_items_are_dealt_to_slots_of_the_least_loaded_nodes(seed: int) -> None:
    draw = Random(seed)
    sizes = [draw.randint(1, 4) for _ in range(28)]
    asked = [ask(f"r{n}", 1, share("1g", cores=cores)) for n, cores in enumerate(sizes)]
    state, left = _dealt(problem(host(nodes=(1, 1), cores=40), *asked))
    assert left == 0
    used = [40 - left[0] for each in state.hosts.values() for left in each.left]
    assert max(used) - min(used) <= max(sizes)


@pytest.mark.parametrize(("more", "hosts"), [({}, 2), ({"spread": "s"}, 4)])
def test_workloads_that_fill_nodes_are_dealt_host_by_host(more: dict[str, str], hosts: int) -> None:
    """Side by side; of a group one on each host."""
    state, left = _dealt(problem(host(nodes=(2, 2)), ask("a", 4, whole(2), **more)))
    assert left == 0
    assert len(state.hosts) == hosts
    assert {len(each.items) for each in state.hosts.values()} == {4 // hosts}


def test_workloads_on_several_nodes_are_dealt_beside_those_on_one() -> None:
    asked = (ask("three", 2, whole(3)), ask("one", 2, whole(1)))
    state, left = _dealt(problem(host(nodes=(2, 2)), *asked))
    assert (left, len(state.hosts)) == (0, 2)
    assert {len(each.items) for each in state.hosts.values()} == {2}


def test_fewer_dear_hosts_are_a_bound_too() -> None:
    """Eight GPUs: one large host is the fewest, though four small ones cost less."""
    kinds = (host("small", nodes=(2,), cost=USD), host("large", nodes=(8,), cost=9 * USD))
    asked = problem(kinds, ask("a", 8, whole(1)))
    assert fewest_hosts(whole_outline(compile_fleet(asked))) == 1
    result = pack(asked)
    assert (result.cost, result.bound, result.bound_hosts) == (4 * USD, 4 * USD, 1)


def test_room_for_a_large_part_is_worth_more_than_its_quarters() -> None:
    """A GPU with two free quarters apart, and one with a free half."""
    geometry = Geometry("g", FOUR, tuple(p for p in FOUR.parts if p.name in ("1g", "2g")))
    first = geometry.at(0, 0, 0)
    assert first is not None
    apart, half = geometry.at(first, 0, 2), geometry.at(0, 1, 0)
    assert apart is not None
    assert half is not None
    quarters = geometry.value(apart)
    assert geometry.value(half) - quarters > quarters > 0
