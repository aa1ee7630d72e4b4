"""Whether the NVLink domains of a pool hold all groups that count on one."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from gpuplan.diagnostics import Diagnostic
from gpuplan.placement.place import place
from gpuplan.placement.pools.domains import crowded
from gpuplan.plan.model import NodePool, Workload
from tests.support.placement_samples import gpu, offer, workload
from tests.support.samples import training_plan

PLACED = place("rack", "kubernetes", [workload()], [offer(gpu())])


def group(name: str, nodes: int, replicas: int = 1, *, near: bool = True) -> Workload:
    return replace(
        PLACED.workloads[0],
        name=name,
        nodes_per_replica=nodes,
        replicas=replicas,
        one_domain=near or None,
    )


def pool(nodes: int, joined: int = 18) -> NodePool:
    return replace(PLACED.node_pools[0], node_count=nodes, nvlink_nodes=joined)


def short(nodes: int, *work: Workload) -> list[str]:
    return [w.name for w in work if any(f"'{w.name}'" in d.message for d in _found(nodes, work))]


def _found(nodes: int, work: tuple[Workload, ...]) -> list[Diagnostic]:
    return list(crowded(work, (pool(nodes),), None))


@pytest.mark.parametrize(
    ("nodes", "work"),
    [
        (18, [group("a", 9), group("b", 5), group("c", 1, 4, near=False)]),  # one rack
        (36, [group("a", 9, 2), group("b", 9)]),
        (36, [group("a", 18), group("b", 9)]),  # whichever rack the small one takes
        (20, [group("a", 2), group("b", 1, 16, near=False)]),  # fills nodes that others began
        (24, [group("a", 6, 4)]),
    ],
)
def test_groups_that_find_place_however_the_others_lie(nodes: int, work: list[Workload]) -> None:
    assert short(nodes, *work) == []


@pytest.mark.parametrize(
    ("nodes", "work", "lacking"),
    [
        (36, [group("a", 18), group("b", 9, 2)], ["a"]),  # one small group in each rack
        (24, [group("a", 12), group("b", 12)], ["a", "b"]),
        (36, [group("a", 18), group("b", 6, 3, near=False)], ["a"]),  # which any nodes may have
    ],
)
def test_groups_that_others_may_leave_no_domain_are_refused(
    nodes: int, work: list[Workload], lacking: list[str]
) -> None:
    assert short(nodes, *work) == lacking


@pytest.mark.parametrize(("spares", "lacking"), [(2, []), (3, ["a"])])
def test_nodes_that_stand_by_for_a_run_are_in_its_domain(spares: int, lacking: list[str]) -> None:
    (tune,) = training_plan().workloads
    assert tune.training is not None
    run = replace(group("a", 16), training=replace(tune.training, spare_nodes=spares))
    assert short(36, run) == lacking


def left_at_worst(sizes: list[int], size: int, others: list[Workload]) -> int:
    """Places for groups of `size` nodes, where the others lie worst; by trying all."""
    lying = {tuple(sizes)}
    for work in others:
        nodes = work.nodes_per_replica
        steps = [nodes] if work.one_domain else [1] * nodes
        for step in steps * work.replicas:
            lying = {
                (*free[:n], left - step, *free[n + 1 :])
                for free in lying
                for n, left in enumerate(free)
                if left >= step
            }
    return min((sum(n // size for n in free) for free in lying), default=0)


def test_never_more_places_are_promised_than_are_left_however_the_others_lie() -> None:
    """And just as many where the others lie anywhere, or nobody else is there."""
    promised = 0
    for seed in range(400):
        draw = random.Random(seed)
        joined, domains = draw.randint(2, 6), draw.randint(1, 3)
        nodes = joined * domains - draw.randint(0, joined - 1)
        sizes = [joined] * (nodes // joined) + [nodes % joined] * (nodes % joined > 0)
        size = draw.randint(1, joined)
        work = group("a", size, 99)
        others = [
            group(f"b{n}", draw.randint(1, joined), draw.randint(1, 2), near=draw.random() < 0.5)
            for n in range(draw.randint(0, 2))
        ]
        several = [w for w in others if w.nodes_per_replica > 1]
        worst = left_at_worst(sizes, size, several)
        if sum(map(_nodes_of, several)) > nodes:
            continue
        (told, *_) = crowded((work, *others), (pool(nodes, joined),), None)
        places = int(told.message.partition(" may hold ")[2].split()[0])
        promised += places
        assert places <= worst, (seed, sizes, size, several)
        if all(not w.one_domain for w in several):
            assert places == worst, (seed, sizes, size, several)
    assert promised > 100


def _nodes_of(work: Workload) -> int:
    return work.nodes_per_replica * work.replicas


def test_a_refusal_says_what_finds_no_place() -> None:
    work = (group("a", 12), group("b", 12))
    first = next(iter(crowded(work, (pool(24),), None)))
    assert "may hold 0 of 1 group of 12 nodes that 'a' counts on" in first.message
    assert first.help is not None
    assert "nvlink_nodes" in first.help
