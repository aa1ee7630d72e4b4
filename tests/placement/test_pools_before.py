"""Pools over those of the stack that is there: what stays as it is cut, and what that may cost."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from gpuplan.diagnostics import Severity
from gpuplan.placement.api import Placement
from gpuplan.placement.place import place
from gpuplan.placement.pools.former import cuts
from gpuplan.plan.model import HostResources, NodePool, Workload
from gpuplan.units import GIB
from tests.support.placement_samples import gpu, offer, workload
from tests.support.samples import training_plan

NAMES = ("n1", "n2", "n3", "n4")
POOL = "h100-sxm-80gb"


def work(name: str, size: str | None, replicas: int) -> Workload:
    return workload(
        name,
        isolation="shared",
        partition=size,
        replicas=replicas,
        gpus_per_node=1,
        resources=HostResources(
            cpu_cores=1, host_memory_bytes=4 * GIB, shared_memory_bytes=0, scratch_bytes=0
        ),
    )


def placed(works: list[Workload], former: Placement | None = None, gpus: int = 2) -> Placement:
    offers = [offer(gpu(), gpus_per_node=gpus, node_count=len(NAMES), node_names=NAMES)]
    there = former.node_pools if former else ()
    return place("x", "kubernetes", works, offers, pools_there=there)


def drawn(draw: random.Random) -> list[Workload]:
    """Up to three sizes, for which the eight GPUs suffice."""
    on_gpu = {"1g.10gb": 7, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1, None: 1}
    while True:
        sizes = draw.sample(list(on_gpu), draw.randint(1, 3))
        replicas = [draw.randint(1, 6) for _ in sizes]
        if sum(-(-n // on_gpu[s]) for s, n in zip(sizes, replicas, strict=True)) <= 8:
            pairs = enumerate(zip(sizes, replicas, strict=True))
            return [work(f"w{n}", size, count) for n, (size, count) in pairs]


def right(placement: Placement, works: list[Workload]) -> NodePool:
    """The pool, which has all that is asked, on nodes of the inventory in its order."""
    assert not any(d.severity is Severity.ERROR for d in placement.diagnostics)
    (pool,) = placement.node_pools
    assert pool.node_names == tuple(n for n in NAMES if n in pool.node_names)
    assert len(pool.node_names) == pool.node_count
    there = {p.name: p.count for p in pool.partitions}
    asked = Counter({w.partition: w.replicas for w in works})
    whole = asked.pop(None, 0)
    assert all(there[name] >= n for name, n in asked.items() if name is not None)
    cut = sum(n.node_count * len(g.gpus) for n in pool.layouts for g in n.gpus)
    assert pool.idle_gpus == 2 * pool.node_count - cut - whole
    instances = Counter[str]()
    for own in cuts(pool).values():
        for each in own:
            instances.update({p: n * len(each.gpus) for p, n in each.counts.items()})
    assert there == instances
    return pool


@pytest.mark.parametrize("seed", range(40))
def test_what_is_there_stays_as_it_is_cut_and_no_more_nodes_than_that_takes(seed: int) -> None:
    draw = random.Random(seed)
    first, then = drawn(draw), drawn(draw)
    before, fresh = right(placed(first), first), right(placed(then), then)
    over = placed(then, placed(first))
    pool = right(over, then)
    was, now = cuts(before), cuts(pool)
    stay = {n for n, gpus in was.items() if gpus and now.get(n) == gpus}
    told = [d for d in over.diagnostics if d.rule == "GP023"]
    if told:
        (note,) = told
        said = {n for n in NAMES if f" {n}" in note.message.partition(", and ")[0]}
        assert said <= stay
        assert note.message.startswith(f"pool {POOL}: node{'s' * (len(said) > 1)} ")
        assert pool.node_count <= fresh.node_count + len(said)
    else:
        assert pool.node_count == fresh.node_count
    taken = set(pool.node_names) - set(before.node_names)
    left = set(before.node_names) - set(pool.node_names)
    kinds = Counter(now.values())
    assert not (taken and any(was[n] and was[n] in kinds for n in left)), "those alike are kept"


def test_a_node_whose_instances_nobody_takes_any_more_is_given_back() -> None:
    """Halves on two nodes, on one of them a seventh too."""
    halves, small = work("halves", "3g.40gb", 6), work("small", "1g.10gb", 1)
    before = placed([halves, small])
    pool = right(before, [halves, small])
    assert pool.node_count == 2
    alone = right(placed([small], before), [small])
    assert alone.node_count == 1
    (kept,) = alone.node_names
    assert cuts(alone)[kept] == cuts(pool)[kept]
    again = right(placed([halves, small], before), [halves, small])
    assert cuts(again) == cuts(pool)
    other = work("other", "2g.20gb", 1)
    beside = right(placed([small, other], before), [small, other])
    assert beside.node_count == 2
    assert cuts(beside)[kept] == cuts(pool)[kept], "where the small one is"


@pytest.mark.parametrize("count", [1, 2])
def test_where_no_other_node_is_the_one_that_is_there_is_cut_anew(count: int) -> None:
    offers = [offer(gpu(), gpus_per_node=1, node_count=count, node_names=NAMES[:count])]
    first, then = [work("a", "1g.10gb", 1)], [work("a", "1g.10gb", 1), work("b", "3g.40gb", 1)]
    before = place("x", "kubernetes", first, offers)
    over = place("x", "kubernetes", then, offers, pools_there=before.node_pools)
    (pool,) = over.node_pools
    assert pool.node_names == NAMES[:count]
    assert bool([d for d in over.diagnostics if d.rule == "GP023"]) == (count == 2)


def test_a_pool_that_grows_takes_no_node_that_another_one_has() -> None:
    """Though it is the first to choose, and the other's node comes first in the inventory."""

    def pools(first: int, second: int, former: Placement | None = None) -> Placement:
        own = [
            workload(name, isolation="node", tenant=name, gpus_per_node=8) for name in ("a", "b")
        ]
        works = [replace(w, replicas=n) for w, n in zip(own, (first, second), strict=True)]
        offers = [offer(gpu(), node_count=len(NAMES), node_names=NAMES)]
        there = former.node_pools if former else ()
        return place("x", "kubernetes", works, offers, pools_there=there)

    before = pools(1, 1)
    assert [p.node_names for p in before.node_pools] == [("n1",), ("n2",)]
    assert [p.node_names for p in pools(2, 1).node_pools] == [("n1", "n2"), ("n3",)]
    after = pools(2, 1, before)
    assert [p.node_names for p in after.node_pools] == [("n1", "n3"), ("n2",)]
    more = pools(3, 1, before)
    assert [p.node_names for p in more.node_pools] == [("n1", "n3", "n4"), ("n2",)]


def test_of_a_nodes_gpus_those_that_are_cut_as_most_are_come_first() -> None:
    """After those that stay whole; of as many the one whose sizes come first by name."""
    offers = [offer(gpu())]
    works = [
        work("halves", "3g.40gb", 6),
        work("fours", "4g.40gb", 1),
        work("sevenths", "1g.10gb", 14),
    ]
    (pool,) = place("x", "kubernetes", works, offers).node_pools
    (node,) = pool.layouts
    numbers = [len(each.gpus) for each in node.gpus]
    assert numbers == sorted(numbers, reverse=True)
    assert len(set(numbers)) > 1
    every = [g for each in node.gpus for g in each.gpus]
    assert every == list(range(8 - len(every), 8))


def test_nodes_that_are_lacking_have_no_name() -> None:
    """Five nodes of halves, and four there are."""
    placement = placed([work("halves", "3g.40gb", 18)])
    assert any("nodes" in d.message for d in placement.diagnostics if d.severity is Severity.ERROR)
    (pool,) = placement.node_pools
    assert pool.node_count == 5
    assert sum(n.node_count for n in pool.layouts) == 5
    assert {name for n in pool.layouts for name in n.node_names} == {*NAMES}


def test_nobody_who_works_there_is_stopped_where_another_node_takes_what_is_new() -> None:
    halves, sevenths = work("halves", "3g.40gb", 4), work("sevenths", "1g.10gb", 3)
    before = placed([halves])
    (name,) = right(before, [halves]).node_names
    over = placed([work("halves", "3g.40gb", 2), sevenths], before)
    pool = right(over, [work("halves", "3g.40gb", 2), sevenths])
    assert cuts(pool)[name] == cuts(before.node_pools[0])[name]
    assert pool.node_count == 2
    (note,) = [d for d in over.diagnostics if d.rule == "GP023"]
    (more,) = set(pool.node_names) - {name}
    assert note.message == (
        f"pool {POOL}: node {name} stays cut as it is, and {more} takes what is new"
    )


def test_a_node_is_not_kept_for_one_whose_part_another_node_has_beside_what_is_new() -> None:
    """The second half takes a GPU of its own, which has two: the first has room there too."""
    alone = workload("alone", isolation="node", tenant="other", gpus_per_node=1)
    half, large = work("half", "3g.40gb", 1), work("large", "4g.40gb", 1)
    before = placed([alone, half, large], gpus=1)
    assert [p.node_names for p in before.node_pools] == [("n1",), ("n2",)]
    over = placed([work("half", "3g.40gb", 2)], before, gpus=1)
    assert [p.node_names for p in over.node_pools] == [("n2",)]
    assert [(p.name, p.count) for p in over.node_pools[0].partitions] == [("3g.40gb", 2)]
    assert over.diagnostics == ()


def test_a_pool_gives_back_nodes_of_whole_gpus_before_those_that_are_cut() -> None:
    """A whole GPU serves anybody as it is."""
    whole, sevenths = work("whole", None, 2), work("sevenths", "1g.10gb", 7)
    before = right(placed([whole, sevenths]), [whole, sevenths])
    assert [name for name, gpus in cuts(before).items() if gpus] == ["n2"]
    halves = [work("halves", "3g.40gb", 2)]
    assert right(placed(halves, placed([whole, sevenths])), halves).node_names == ("n2",)


@pytest.mark.parametrize(("gpus", "nodes", "kept"), [(2, 3, True), (3, 4, True), (5, 4, False)])
def test_nodes_that_stand_by_for_a_run_stay_beside_those_that_are_kept(
    gpus: int, nodes: int, kept: bool
) -> None:
    """As the last case would take a fifth node, one that is there is cut anew."""
    settings = training_plan().workloads[0].training
    assert settings is not None
    run = replace(work("run", None, gpus), training=replace(settings, spare_nodes=1))
    small, half = work("small", "1g.10gb", 3), work("half", "3g.40gb", 1)
    before = placed([small])
    over = placed([small, half, run], before)
    (pool,) = over.node_pools
    assert pool.node_names == NAMES[:nodes]
    assert cuts(pool)[NAMES[nodes - 1]] == (), "the one that stands by"
    assert (cuts(pool)["n1"] == cuts(before.node_pools[0])["n1"]) == kept
    others = ", ".join(NAMES[1:nodes])
    told = f"pool {POOL}: node n1 stays cut as it is, and {others} take what is new"
    assert [d.message for d in over.diagnostics] == ([told] if kept else [])
    assert placed([small, half, run], over).node_pools == over.node_pools
