"""The sets of GPUs that a workload on several may take, against all sets there are."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations

import pytest

from gpuplan.fleet.problem import HostType
from gpuplan.fleet.solver.chassis import Chassis
from tests.support.packing_problems import hosts

Set = tuple[int, ...]


def legal(host: HostType, k: int) -> list[Set]:
    """Islands where there are some, groups as a whole, one node where any could hold so many."""
    gpus = sorted(g for node in host.nodes for g in node.gpus)
    nodes = [set(node.gpus) for node in host.nodes]
    if host.islands and k > 1:
        sets = [tuple(sorted(i)) for i in host.islands if len(i) == k]
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
    return list(seen.values())


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
        room = (len(node.gpus), node.cores, node.memory_bytes)
        assert (kind.gpus, kind.cores, kind.memory) == room
        assert kind.functions == sum(card.functions for card in node.cards)
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
