"""The packer's books: hosts in use, what is free on them, and the way back."""

from __future__ import annotations

import random
from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations, permutations
from typing import Any

import pytest

from gpuplan.fleet.solver.chassis import NodeKind
from gpuplan.fleet.solver.classes import compile_fleet
from gpuplan.fleet.solver.improve import Packer
from gpuplan.fleet.solver.insert import insert, on_host, open_for
from gpuplan.fleet.solver.outline.formulate import takes_nodes
from gpuplan.fleet.solver.outline.tighten import Limit
from gpuplan.fleet.solver.patterns import Geometry
from gpuplan.fleet.solver.shares import _round
from gpuplan.fleet.solver.state import OpenHost, State
from gpuplan.sharing.geometry import reachable
from gpuplan.sharing.modes import Mode
from tests.fleet.test_packing_core import (
    FOUR,
    MIXED,
    SEVEN,
    UNIFORM,
    USD,
    ask,
    share,
    whole,
)
from tests.fleet.test_packing_core import host as kind_of
from tests.fleet.test_packing_core import problem as of
from tests.support.packing_problems import problem


def packed(seed: int) -> tuple[Packer, random.Random]:
    """Items of a small problem with every rule, each in the first place that is found."""
    packer = Packer(State(compile_fleet(problem(seed, 6))))
    for item in range(len(packer.state.where)):
        if packer.fleet.class_of[item] >= 0 and not packer.insert(item):
            packer.open_for(item)
    return packer, random.Random(seed)


def books(state: State) -> dict[str, Any]:
    """Everything that a packing is; indices without their empty entries and their order."""
    hosts = {
        number: {name: getattr(host, name) for name in OpenHost.__slots__ if name != "chassis"}
        for number, host in state.hosts.items()
    }
    shared = {
        (key, now): sorted(gpus)
        for key, bucket in state.shared.items()
        for now, gpus in bucket.items()
        if gpus
    }
    nodes = {
        (key, free): sorted(listed)
        for key, bucket in state.nodes.items()
        for free, listed in bucket.items()
        if listed
    }
    standing = {kind: sorted(items) for kind, items in state.standing.items() if items}
    copied = {n: {k: repr(v) for k, v in host.items() if k != "items"} for n, host in hosts.items()}
    seated = {n: sorted(host["items"]) for n, host in hosts.items()}
    numbers = (state.cost, state.gpus, state.moved)
    rest = (shared, nodes, standing, [dict(labels) for labels in state.labels], list(state.where))
    return {"hosts": copied, "seated": seated, "numbers": numbers, "rest": rest}


def _shared_rightly(state: State, host: OpenHost) -> None:
    """A GPU is of one whole-GPU workload, or of parts of one geometry that fit it."""
    for gpu in range(host.chassis.gpus):
        users = [w for w in (state.where[i] for i in host.items) if w and w[2] >> gpu & 1]
        whole = any(w[0].whole for w in users)
        assert len(users) <= 1 or not whole, "a whole GPU is nobody else's"
        if users and not whole:
            parts = state.fleet.geometries[users[0][0].geometry]
            assert sum(parts.fractions[w[0].part] for w in users) <= 1 + 1e-9
            assert {w[0].geometry for w in users} == {host.gpu_mode[gpu]}
        else:
            assert (host.gpu_mode[gpu], host.gpu_state[gpu]) == (None, 0)
            assert host.gpu_owner[gpu] is None


def counted(state: State) -> None:
    """What is free of each host is what its items leave, counted anew."""
    fleet = state.fleet
    gpus = 0
    for host in state.hosts.values():
        chassis = host.chassis
        left = [[*room] for room in chassis.room]
        taken, groups, size = 0, set(), 0
        for item in host.items:
            where = state.where[item]
            assert where is not None
            assert where[1] == host.id
            choice, mask = where[0], where[2]
            for node, number in chassis.parts_of(mask):
                part = number / choice.gpus if choice.whole else 1
                for n, amount in enumerate(choice.wanted):
                    left[node][n] -= -(-amount * part // 1)
            taken |= mask
            groups |= {fleet.spread[item]} - {-1}
            size += state.size[fleet.class_of[item]]
        assert host.left == [tuple(each) for each in left]
        assert host.free == (1 << chassis.gpus) - 1 - taken
        assert (host.groups, host.content) == (groups, size)
        assert min(map(min, left)) >= 0
        _shared_rightly(state, host)
        gpus += taken.bit_count()
        listed = state.nodes[chassis.index, host.owner]
        for node, mask in enumerate(chassis.masks):
            assert (host.id, node) in listed[(host.free & mask).bit_count()]
        assert state.labels[chassis.index][host.label] == host.id
    assert state.gpus == gpus
    assert state.cost == sum(host.chassis.cost for host in state.hosts.values())
    assert sum(map(len, state.labels)) == len(state.hosts)
    there = [c.available for c in fleet.chassis]
    used = [len(labels) for labels in state.labels]
    expected = [None if a is None else a - u for a, u in zip(there, used, strict=True)]
    assert state.remaining() == expected
    for chassis in fleet.chassis:
        assert state.can_open(chassis.index) == (expected[chassis.index] != 0)


@pytest.mark.parametrize("seed", range(25))
def test_what_is_free_is_what_the_items_leave(seed: int) -> None:
    packer, draw = packed(seed)
    state = packer.state
    counted(state)
    standing = [i for i, where in enumerate(state.where) if where is not None]
    for item in draw.sample(standing, len(standing) // 2):
        state.remove(item)
        counted(state)
    state.close_empty()
    assert all(host.items for host in state.hosts.values())
    counted(state)


@pytest.mark.parametrize("seed", range(25))
def test_undo_brings_everything_back_and_commit_does_not(seed: int) -> None:
    packer, draw = packed(seed)
    state = packer.state
    standing = [i for i, where in enumerate(state.where) if where is not None]
    state.kept = {i: spot for i in standing if (spot := state.spot(i)) is not None}
    before = books(state)
    state.begin()
    for item in draw.sample(standing, len(standing)):
        state.remove(item)
    state.close_empty()
    assert (state.hosts, state.cost, state.gpus, state.moved) == ({}, 0, 0, 0)
    for item in sorted(standing, reverse=True):
        if not packer.insert(item):
            packer.open_for(item)
    counted(state)
    stand = {i: state.spot(i) for i in standing if state.where[i] is not None}
    assert state.moved == sum(spot != state.kept[i] for i, spot in stand.items())
    state.undo()
    assert books(state) == before
    counted(state)
    if standing:
        state.begin()
        state.remove(standing[0])
        state.commit()
        state.undo()
        assert state.where[standing[0]] is None


@pytest.mark.parametrize("seed", range(25))
def test_a_place_on_one_host_is_there_exactly_where_a_host_alone_would_have_it(seed: int) -> None:
    """`on_host` and the search over all hosts agree, and a new host takes the lowest label."""
    packer, _ = packed(seed)
    state = packer.state
    for item, where in enumerate(list(state.where)):
        if packer.fleet.class_of[item] < 0 or where is None:
            continue
        state.remove(item)
        choices = packer.choices[packer.fleet.class_of[item]]
        places = [
            (host.id, choice, pool)
            for choice, pool in choices
            for host in state.hosts.values()
            if host.chassis.index == choice.chassis and host.owner == pool[0]
            if state.may_stand(item, host)
            if on_host(state, host, choice, pool) is not None
        ]
        assert insert(state, item, choices) == bool(places)
        state.remove(item)
        count = len(state.hosts)
        if open_for(state, item, choices):
            put = state.where[item]
            assert put is not None
            opened = state.hosts[put[1]]
            labels = set(state.labels[opened.chassis.index]) - {opened.label}
            assert opened.label == min(set(range(len(labels) + 1)) - labels)
            assert len(state.hosts) == count + 1
            state.remove(item)
            state.close(opened)
        state.put(item, where)
        counted(state)


@pytest.mark.parametrize("seed", range(25))
def test_parts_go_back_as_they_came(seed: int) -> None:
    """A layout has a part more, and one less after it is dropped; what fits is worth less then."""
    draw = random.Random(seed)
    for geometry in compile_fleet(problem(seed, 8)).geometries:
        now, trail = 0, []
        for _ in range(20):
            part = draw.randrange(len(geometry.parts))
            added = geometry.add(now, part)
            if added is None:
                continue
            assert geometry.at(now, part, added[1]) == added[0]
            assert geometry.value(added[0]) < geometry.value(now)
            trail.append((now, part, added[1]))
            now = added[0]
        for before, part, start in reversed(trail):
            now = geometry.drop(now, part, start)
            assert now == before
        assert now == 0


@pytest.mark.parametrize("mode", [SEVEN, FOUR, MIXED, UNIFORM], ids=lambda mode: mode.name)
def test_layouts_hold_all_that_a_gpu_can_and_none_holds_another(mode: Mode) -> None:
    """For each choice of three sizes that somebody uses."""
    for parts in combinations(mode.parts[:5], min(3, len(mode.parts))):
        listed = Geometry("g", mode, parts).layouts
        assert listed is not None
        counts = [tuple(sum(p == n for p, _ in each) for n in range(len(parts))) for each in listed]
        assert len(set(counts)) == len(counts)
        for one, other in permutations(counts, 2):
            assert any(a > b for a, b in zip(one, other, strict=True))
        every: Iterable[tuple[int, ...]] = reachable(parts, mode.units) or {}
        if mode.uniform:
            alone = range(len(parts))
            every = [tuple(p.maximum * (n == m) for m in alone) for n, p in enumerate(parts)]
        for there in every:
            assert any(all(a <= b for a, b in zip(there, c, strict=True)) for c in counts)


def test_a_workload_that_fills_its_nodes_takes_them_and_others_leave_room() -> None:
    kind = NodeKind(gpus=4, room=(32, 1, 0), count=2, most=(4, 4, 2, 1, 1))
    assert [takes_nodes(kind, n, spans=False) for n in (1, 3, 4)] == [0, 0, 1]
    assert [takes_nodes(kind, n, spans=True) for n in (2, 4, 6, 8)] == [0, 0, 0, 2]


@pytest.mark.parametrize(
    ("values", "wanted", "numbers"),
    [
        ([1.5, 2.5], 4, [2, 2]),
        ([1.2, 2.7], 4, [1, 3]),
        ([1.2, 2.7], 3, [1, 2]),
        ([0.9999999, 2.0], 3, [1, 2]),
        ([1.0, 2.0], 9, [1, 2]),
        ([0.3, 0.3, 0.4], 1, [0, 0, 1]),
    ],
)
def test_the_largest_remainders_are_rounded_up(
    values: list[float], wanted: int, numbers: list[int]
) -> None:
    assert _round(values, wanted) == numbers


def test_a_spread_group_has_one_item_a_host() -> None:
    limit = Limit([], [], alone=2, sizes=[1, 3, 3])
    assert [limit.most(hosts) for hosts in range(5)] == [2, 5, 7, 9, 9]
    assert [limit.slope(hosts) for hosts in range(4)] == [3, 2, 2, 0]


def test_a_node_holds_what_is_left_of_each_resource() -> None:
    fleet = compile_fleet(problem(1, 2))
    host = OpenHost(0, fleet.chassis[0], None, 0)
    host.left[0] = (4, 8, 2)
    assert host.holds(0, (4, 8, 2))
    assert not any(host.holds(0, w) for w in ((5, 8, 2), (4, 9, 2), (4, 8, 3)))
    host.take(0, (1, 2, 1))
    assert host.left[0] == (3, 6, 1)
    host.give(0, (1, 2, 1))
    assert host.holds(0, (4, 8, 2))


def test_a_part_costs_its_share_of_its_host() -> None:
    """Of a host of four GPUs for 28 USD an hour: a seventh of one is 1 USD, three are 21, and 56 of
    64 cores are 24.50."""
    kind = kind_of(nodes=(4,), cost=28 * USD)
    asked = {"1g": share("1g"), "3": whole(3), "cores": share("1g", cores=56)}
    fleet = compile_fleet(of(kind, *(ask(name, 1, option) for name, option in asked.items())))
    shares = {fleet.request[k.items[0]]: k.choices[0].share / USD for k in fleet.classes}
    assert shares == pytest.approx({0: 1.0, 1: 21.0, 2: 24.5})
    sizes = [kind.gpus for kind in fleet.classes]
    assert sizes == [Fraction(1, 7), 3, Fraction(1, 7)]
