"""The sets of GPUs that a workload on several may take, against all sets there are."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, combinations, product

import pytest

from gpuplan.fleet.divisions import divisions, exactly, ways
from gpuplan.fleet.limits import MOST_ITEMS, beyond
from gpuplan.fleet.problem import HostType, NumaCapacity, Option, Request
from gpuplan.fleet.solver.chassis import Chassis
from gpuplan.units import GIB
from tests.support.packing_problems import hosts

Set = tuple[int, ...]


def legal(host: HostType, k: int) -> list[Set]:
    """Islands where there are some, groups as a whole, one node where any could hold so many; none
    with a GPU that is not passed."""
    nodes = [set(node.gpus) - set(host.unpassed) for node in host.nodes]
    gpus = sorted(g for node in nodes for g in node)
    if host.islands and k > 1:
        sets = [tuple(sorted(i)) for i in host.islands if len(i) == k and set(i) <= set(gpus)]
    else:
        roomy = any(len(node) >= k for node in nodes)
        sets = [
            chosen
            for chosen in combinations(gpus, k)
            if not roomy or any(set(chosen) <= node for node in nodes)
        ]
    return [s for s in sets if all(set(g) <= set(s) or not set(g) & set(s) for g in host.together)]


def numbers(chassis: Chassis, mask: int) -> Set:
    return tuple(sorted(n for g, n in enumerate(chassis.numbers) if mask >> g & 1))


def bits(chassis: Chassis, gpus: Sequence[int]) -> int:
    return sum(1 << chassis.numbers.index(n) for n in gpus)


def disjoint(sets: Sequence[Set]) -> int:
    """How many of them can be had at once."""
    return max(
        (
            1 + disjoint([b for b in sets[n + 1 :] if not set(a) & set(b)])
            for n, a in enumerate(sets)
        ),
        default=0,
    )


def kinds() -> list[HostType]:
    seen: dict[object, HostType] = {}
    for seed in range(60):
        for host in hosts(random.Random(seed)):
            widths = tuple(len(node.gpus) for node in host.nodes)
            seen.setdefault((widths, host.islands, host.together), host)
    held = [replace(h, unpassed=(len(h.nodes[0].gpus) - 1,)) for h in seen.values()]
    return [*seen.values(), *(h for h in held if h.unpassed[0] not in {*chain(*h.together)})]


KINDS = kinds()


@pytest.mark.parametrize("number", range(len(KINDS)))
def test_what_is_picked_is_legal_and_there_wherever_something_legal_is(number: int) -> None:
    host = KINDS[number]
    chassis = Chassis(0, host)
    nodes = [set(node.gpus) for node in host.nodes]
    for k in range(1, chassis.gpus + 1):
        sets = legal(host, k)
        inside = [s for s in sets if any(set(s) <= node for node in nodes)]
        for every in range(1, chassis.gpus + 1):
            for chosen in combinations(range(chassis.gpus), every):
                mask = sum(1 << g for g in chosen)
                free = set(numbers(chassis, mask))
                if every == k:
                    assert chassis.allows(mask) == (numbers(chassis, mask) in sets)
                for node, gpus in enumerate(chassis.masks):
                    there = [s for s in inside if set(s) <= free & nodes[node]]
                    picked = numbers(chassis, chassis.pick(mask & gpus, k))
                    assert bool(picked) == bool(there)
                    assert not there or picked in there
                spans = [numbers(chassis, m) for m in chassis.spans(mask, k)]
                across = [s for s in sets if s not in inside and set(s) <= free]
                assert set(spans) <= set(across)
                assert bool(spans) == bool(across) or host.together
                over = [sum(bool(set(s) & node) for node in nodes) for s in spans]
                assert over == sorted(over), "those on few nodes first"


@pytest.mark.parametrize("number", range(len(KINDS)))
def test_a_node_is_said_to_hold_no_fewer_than_it_does(number: int) -> None:
    host = KINDS[number]
    chassis = Chassis(0, host)
    assert sum(kind.count for kind in chassis.kinds) == len(host.nodes)
    for j, node in enumerate(host.nodes):
        kind = chassis.kinds[chassis.kind_of[j]]
        functions = sum(card.functions for card in node.cards)
        assert kind.gpus == len(node.gpus)
        assert kind.room == (node.cores, node.memory_bytes, functions)
        assert kind.count == chassis.kind_of.count(chassis.kind_of[j])
        for k in range(1, len(node.gpus) + 1):
            inside = [s for s in legal(host, k) if set(s) <= set(node.gpus)]
            at_once = disjoint(inside)
            assert kind.most[k] >= at_once
            assert (kind.most[k] > 0) == (at_once > 0)
            if not host.together:
                assert kind.most[k] == at_once


@pytest.mark.parametrize("number", range(len(KINDS)))
def test_shapes_are_those_of_the_legal_sets(number: int) -> None:
    host = KINDS[number]
    chassis = Chassis(0, host)
    for k in range(1, chassis.gpus + 1):
        expected = set()
        for gpus in legal(host, k):
            mask = bits(chassis, gpus)
            counts = [0] * len(chassis.kinds)
            for node, part in chassis.parts_of(mask):
                counts[chassis.kind_of[node]] += part
            expected.add((tuple(counts), len(chassis.parts_of(mask)) > 1))
        shapes = chassis.shapes(k)
        assert len(shapes) == len(set(shapes))
        assert set(shapes) <= expected
        assert set(shapes) == expected or host.together


def test_one_gpu_is_taken_where_it_breaks_up_least() -> None:
    host = next(h for h in KINDS if h.islands and len(h.nodes) > 1)
    chassis = Chassis(0, host)
    everything = (1 << chassis.gpus) - 1
    first = chassis.single(everything)
    assert first.bit_count() == 1
    pair = next(i for i in chassis.islands if i & first)
    assert chassis.single(everything & ~first) == pair & ~first, "the pair is broken already"
    assert chassis.damage(first, everything) == 1
    assert chassis.damage(pair & ~first, everything & ~first) == 0


def wide(nodes: int, gpus: int, *, unlike: bool = False) -> HostType:
    """A host with that many NUMA nodes of that many GPUs each."""
    capacities = tuple(
        NumaCapacity(
            gpus=tuple(range(j * gpus, (j + 1) * gpus)),
            cores=4,
            memory_bytes=(j if unlike else 1) * GIB,
        )
        for j in range(nodes)
    )
    return HostType(name="wide", gpu="g", nodes=capacities, cost=1, available=1)


def test_a_workload_stands_on_many_alike_nodes() -> None:
    chassis = Chassis(0, wide(64, 2))
    spans = chassis.spans((1 << 128) - 1, 32)
    assert spans
    assert all(len(chassis.parts_of(mask)) == 16 for mask in spans), "on the fewest nodes"
    assert chassis.shapes(32) == (((32,), True),)
    assert chassis.ways(32) == 1


def test_a_node_that_is_taken_is_passed_over() -> None:
    """Three nodes of two GPUs: four GPUs are those of the two nodes that are free."""
    chassis = Chassis(0, wide(3, 2))
    assert chassis.spans(0b111100, 4) == (0b111100,)
    assert chassis.spans(0b110011, 4) == (0b110011,)
    assert chassis.spans(0b001111, 4) == (0b001111,)


def test_where_islands_or_a_node_say_who_goes_together_nothing_has_to_be_divided() -> None:
    board = replace(wide(4, 2), islands=((0, 1, 2, 3), (4, 5, 6, 7)))
    assert Chassis(0, board).ways(4) == 1
    assert Chassis(0, wide(2, 4, unlike=True)).ways(4) == 1
    assert Chassis(0, wide(2, 4, unlike=True)).ways(5) == 4, "1 + 4, 2 + 3, 3 + 2, 4 + 1"


def test_ways_are_counted_as_they_are_listed() -> None:
    for rooms in ([2, 3, 0, 1], [1] * 6, [4], [], [3, 3, 3]):
        for k in range(1, sum(rooms) + 2):
            found = list(divisions(rooms, k))
            wanted = [d for d in product(*(range(r + 1) for r in rooms)) if sum(d) == k]
            assert sorted(found) == sorted(wanted)
            assert ways(rooms, k) == len(found)
            places = [sum(1 for share in d if share) for d in found]
            assert places == sorted(places)


def test_groups_make_up_a_number_or_not() -> None:
    assert exactly([0b111, 0b11000, 0b1100000], 4) == 0b1111000
    assert exactly([0b111, 0b11000], 4) == 0
    pairs = [0b11 << 2 * n for n in range(40)]
    assert exactly(pairs, 41) == 0
    assert exactly(pairs, 40) == (1 << 40) - 1


def test_more_ways_than_can_be_weighed_are_refused_before_any_work() -> None:
    options = (Option(gpu="g", gpus=16, cores=1, memory_bytes=1),)
    request = Request(name="wide/big", count=1, options=options)
    assert not list(beyond([request], [wide(32, 2)]))
    other = replace(request, options=(replace(options[0], gpu="other"),))
    assert not list(beyond([other], [wide(32, 2, unlike=True)])), "it never stands there"
    (problem,) = beyond([request], [wide(32, 2, unlike=True)])
    assert problem.rule == "GP072"
    assert "16 GPUs of a host 'wide' can be divided between its NUMA nodes" in problem.message


def test_as_many_items_as_can_be_packed_are_not_refused() -> None:
    def asked(growth: int) -> list[Request]:
        options = (Option(gpu="g", gpus=1, cores=1, memory_bytes=1),)
        small = Request(name="small", count=5, options=options)
        return [small, Request(name="large", count=1, options=options, growth=growth)]

    assert not list(beyond(asked(MOST_ITEMS - 6), [wide(1, 2)]))
    (problem,) = beyond(asked(MOST_ITEMS - 5), [wide(1, 2)])
    assert f"{MOST_ITEMS + 1:,} items" in problem.message
    assert problem.label == "'large' has the most"
