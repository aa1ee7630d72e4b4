"""How long each node of a pool is paid, node by node."""

from __future__ import annotations

import random
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

import pytest

from gpuplan.placement.place import place
from gpuplan.placement.pools.bins import Ask
from gpuplan.placement.pools.packing import Packing
from gpuplan.placement.pools.stages import (
    MONTH,
    Stage,
    both,
    node_hours,
    passing_hours,
    stages,
    staying,
)
from tests.support.placement_samples import gpu, offer, workload

Work = list[tuple[Decimal | None, int]]  # hours, and the nodes that it adds


def needed(work: Work, until: Decimal | None) -> int:
    """Nodes for what stays and for what takes so long or longer."""
    return sum(n for hours, n in work if hours is None or (until is not None and hours >= until))


def made(work: Work) -> tuple[Stage, ...]:
    return stages((h for h, _ in work), lambda until: needed(work, until), sum(n for _, n in work))


def paid(work: Work) -> list[Decimal]:
    """The hours of each node that does not stay: of the longest work that needs as many."""
    first, total = needed(work, None), sum(n for _, n in work)
    lengths = [h for h, _ in work if h is not None]
    return [max(h for h in lengths if needed(work, h) > node) for node in range(first, total)]


def drawn(draw: random.Random, *, stays: int) -> Work:
    lengths = [draw.choice((1, 10, 50, 700, 730, 1000)) for _ in range(draw.randint(1, 4))]
    work: Work = [(Decimal(h), draw.randint(1, 3)) for h in lengths]
    return [*([(None, stays)] if stays else []), *work]


@pytest.mark.parametrize("seed", range(25))
def test_each_node_is_paid_as_long_as_something_needs_it(seed: int) -> None:
    draw = random.Random(seed)
    stays = draw.randint(0, 3)
    ending, again = drawn(draw, stays=stays), drawn(draw, stays=stays)
    first, second = made(ending), made(again)
    assert staying(first) == stays
    nodes = [stage.nodes for stage in first]
    assert nodes == sorted(nodes)
    assert nodes[-1] == sum(n for _, n in ending)
    assert passing_hours(first, recurs=False) == sum(paid(ending))
    assert passing_hours(first, recurs=True) == 0
    assert node_hours(first) == stays * MONTH + sum(paid(ending))
    total = max(nodes[-1], second[-1].nodes)
    every = both(first, second, total)
    assert staying(every) == stays
    assert passing_hours(every, recurs=False) == sum(paid(ending))
    assert passing_hours(every, recurs=True) == sum(paid(again))
    assert node_hours(every) == stays * MONTH + sum(paid(ending)) + sum(paid(again))
    for most in (Decimal(5), MONTH, 2 * MONTH):
        within = [sum(min(h, most) for h in paid(work)) for work in (ending, again)]
        hours = stays * min(MONTH, most)
        assert node_hours(first, most) == min(hours + within[0], nodes[-1] * most)
        assert node_hours(every, most) == min(hours + sum(within), total * most)


def test_a_pool_never_needs_more_nodes_for_less_work() -> None:
    """Packing is not monotonous: what is left out may leave a worse packing. Nor more than all."""
    by_length = {None: 2, Decimal(20): 5, Decimal(10): 3, Decimal(5): 9}
    assert [s.nodes for s in stages(by_length, by_length.__getitem__, 4)] == [2, 4, 4, 4]
    assert [s.hours for s in stages(by_length, by_length.__getitem__, 4)] == [None, 20, 10, 5]
    assert stages((), by_length.__getitem__, 4) == ()
    assert (node_hours(()), node_hours((), MONTH), staying(())) == (0, 0, 0)


@pytest.mark.parametrize("spares", [(0, 0), (1, 0), (2, 1)])
def test_nodes_that_stand_by_are_of_the_pool_and_of_its_stages(spares: tuple[int, int]) -> None:
    """Two runs of a node each, of twenty hours and of five."""
    asks = [
        Ask(
            workload=f"w{n}", pool="p", kind="h100-sxm-80gb", gpu="h100-sxm-80gb", partition=None,
            replicas=1, nodes=1, gpus=8, cores=1, memory_bytes=1, hours=hours, spares=spare,
        )
        for n, (hours, spare) in enumerate(zip((Decimal(20), Decimal(5)), spares, strict=True))
    ]  # fmt: skip
    first, total = 1 + spares[0], 2 + sum(spares)
    for count, short in ((total, 0), (total - 1, 1)):
        ((_, need),) = Packing([offer(gpu(), node_count=count)]).pools(asks)
        assert need is not None
        assert (need.nodes, need.spares, len(need.filled)) == (total, sum(spares), 2)
        assert [s.requested - s.capacity for s in need.lacking] == [short] * bool(short)
        assert [(s.hours, s.nodes) for s in need.stages] == [(20, first), (5, total)]


@pytest.mark.parametrize("joined", [1, 2, 18])
def test_a_pool_says_how_many_nodes_nvlink_joins(joined: int) -> None:
    works = [workload(isolation="shared")]
    (pool,) = place("x", "kubernetes", works, [offer(gpu(), nvlink_nodes=joined)]).node_pools
    assert pool.nvlink_nodes == (joined if joined > 1 else None)


@pytest.mark.parametrize("seed", range(25))
def test_a_pools_stages_are_of_the_nodes_that_its_work_takes_alone(seed: int) -> None:
    """What stays with what ends, and what stays with what recurs, each packed by itself."""
    draw = random.Random(seed)
    offers = [offer(gpu())]
    asks = []
    for n in range(draw.randint(1, 5)):
        hours = draw.choice((None, Decimal(5), Decimal(20), Decimal(900)))
        recurs = hours is not None and draw.random() < 0.5
        asks.append(
            Ask(
                workload=f"w{n}", pool="p", kind="h100-sxm-80gb", gpu="h100-sxm-80gb",
                partition=None, replicas=draw.randint(1, 4), nodes=1,
                gpus=draw.choice((2, 4, 8)), cores=1, memory_bytes=1, hours=hours, recurs=recurs,
            )
        )  # fmt: skip

    def nodes(some: list[Ask]) -> int:
        ((_, need),) = Packing(offers).pools([replace(a, hours=None, recurs=False) for a in some])
        assert need is not None
        return need.nodes

    def alone(kind: list[Ask]) -> Work:
        lengths = sorted({a.hours for a in kind if a.hours is not None}, reverse=True)
        until = [[a for a in kind if a.hours is None or a.hours >= h] for h in lengths]
        stay = [a for a in kind if a.hours is None]
        numbers = [nodes(some) if some else 0 for some in (stay, *until)]
        numbers = [max(numbers[: n + 1]) for n in range(len(numbers))]
        more = [b - a for a, b in pairwise(numbers)]
        return [(None, numbers[0]), *zip(lengths, more, strict=True)]

    ((_, need),) = Packing(offers).pools(asks)
    assert need is not None
    ending = alone([a for a in asks if not a.recurs])
    again = alone([a for a in asks if a.recurs or a.hours is None])
    assert need.nodes == nodes(asks)
    assert staying(need.stages) == ending[0][1]
    assert passing_hours(need.stages, recurs=False) == sum(paid(ending))
    assert passing_hours(need.stages, recurs=True) == sum(paid(again))
    assert max(stage.nodes for stage in need.stages) == need.nodes
