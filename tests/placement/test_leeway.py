"""Whose pods may lie so that another one of the pool finds no node, though all fit together."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from gpuplan.placement.place import place
from gpuplan.plan.model import HostResources, Workload
from gpuplan.units import GIB
from tests.support.placement_samples import gpu, offer, workload

Pods = tuple[int, int]  # GPUs of each, and how many
FREE_CORES = 110  # of 112, of which the node keeps some


def served(name: str, gpus: int, replicas: int, cores: int = 4, **changes: object) -> Workload:
    resources = HostResources(
        cpu_cores=cores, host_memory_bytes=8 * GIB, shared_memory_bytes=0, scratch_bytes=0
    )
    work = workload(name, isolation="shared", gpus_per_node=gpus, replicas=replicas)
    return replace(work, resources=resources, **changes)  # type: ignore[arg-type]


def packed(*works: Workload, target: str = "kubernetes") -> list[str]:
    placement = place("x", target, works, [offer(gpu())])
    return [w.name for w in placement.workloads if w.packed]


@pytest.mark.parametrize(
    ("pods", "crowding"),
    [
        ([(2, 4), (8, 1)], [0]),
        ([(2, 3), (8, 1)], [0]),  # one on each node is enough
        ([(2, 1), (8, 1)], []),  # a node is whole wherever it lies
        ([(2, 9), (8, 1)], [0]),
        ([(1, 4), (2, 2), (4, 1), (8, 1)], [0, 1, 2]),
        ([(4, 3), (2, 2)], [0, 1]),
        ([(2, 8)], []),
        ([(2, 4), (2, 3)], []),  # as large, as if they were of one workload
        ([(8, 2), (8, 1)], []),
        ([(1, 1), (4, 2)], []),  # 9 GPUs on two nodes
    ],
)
def test_small_pods_that_may_begin_every_node_are_packed(
    pods: list[Pods], crowding: list[int]
) -> None:
    works = [served(f"w{n}", gpus, count) for n, (gpus, count) in enumerate(pods)]
    assert packed(*works) == [f"w{n}" for n in crowding]


def test_whole_gpus_leave_the_nodes_that_are_not_cut_to_those_that_need_them() -> None:
    desks = served("desks", 1, 4, partition="1g.10gb")
    assert packed(desks, served("four", 4, 1), served("big", 8, 1)) == ["four"]
    assert packed(desks, served("big", 8, 1)) == []


def test_cores_may_be_what_is_short() -> None:
    """Each node has GPUs for all of them; two of the small ones leave one of the cores too few."""
    works = [served("busy", 1, 1, cores=100), served("idle", 1, 4, cores=12)]
    assert packed(*works) == ["idle"]
    assert packed(works[0], replace(works[1], replicas=1)) == []


def test_parts_of_runs_are_pods_too() -> None:
    run = served("run", 8, 1, nodes_per_replica=2)
    assert packed(served("small", 2, 2), run) == ["small"]


def test_where_no_pods_are_bound_nothing_is_packed() -> None:
    works = [served("small", 2, 4), served("big", 8, 1)]
    assert packed(*works, target="kubernetes") == ["small"]
    assert packed(*works, target="slurm") == []


def ends(pods: Sequence[int], nodes: int, most: int = 8) -> bool:
    """Whether all pods are bound however they come and whichever node takes each."""
    seen: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()
    open_ = [(tuple(sorted(pods)), (most,) * nodes)]
    while open_:
        state = open_.pop()
        if state in seen:
            continue
        seen.add(state)
        left, free = state
        for pod in set(left):
            rest = list(left)
            rest.remove(pod)
            able = {n for n in free if n >= pod}
            if not able:
                return False
            for room in able:
                now = list(free)
                now.remove(room)
                open_.append((tuple(rest), tuple(sorted([*now, room - pod]))))
    return True


@pytest.mark.parametrize("seed", range(40))
def test_no_order_leaves_a_pod_waiting_where_nothing_is_packed(seed: int) -> None:
    """And where something is, there is such an order: of GPUs alone the answer is exact."""
    chance = random.Random(seed)
    sizes = chance.sample((1, 2, 4, 8), k=chance.choice((2, 3)))
    pods = [(gpus, chance.randint(1, 3)) for gpus in sizes]
    works = [served(f"w{n}", gpus, count, cores=1) for n, (gpus, count) in enumerate(pods)]
    placement = place("x", "kubernetes", works, [offer(gpu())])
    (pool,) = placement.node_pools
    each = [gpus for gpus, count in pods for _ in range(count)]
    found = [w.gpus_per_node for w in placement.workloads if w.packed]
    assert bool(found) is not ends(each, pool.node_count)
    assert 8 not in found
