"""What a candidate takes and costs, and which one is best."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from gpuplan.plan.model import Flip, Shortfall
from gpuplan.sizing.candidates.choose import (
    Candidate,
    best,
    furthest,
    leading,
    nodes_gate,
    shortlist,
)
from gpuplan.sizing.candidates.gates import count_gate, memory_gate, stopped, uneven
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.hardware.devices import Device, partitions, whole
from tests.support.sizing_cases import offer, site


def device(gpu: str = "l4", *, usd: float | None = 1.5, **changes: Any) -> Device:
    """A GPU of nodes with four."""
    price = None if usd is None else Quantity(usd, "USD/h", "test")
    return whole(offer(gpu, gpus_per_node=4, usd_per_gpu_hour=price, **changes))


def half() -> Device:
    """A partition of which two fit a GPU."""
    where = site("a100-sxm-80gb", gpus_per_node=4)
    return next(d for d in partitions(where.gpus[0], where) if d.per_gpu == 2)


def candidate(gpus: int, replicas: int, on: Device | None = None, **changes: Any) -> Candidate:
    values = {"isolation": "none"} | changes
    return Candidate(device=on or device(), gpus=gpus, replicas=replicas, **values)


@pytest.mark.parametrize(
    ("gpus", "replicas", "nodes"),
    [(1, 4, 1), (1, 5, 2), (2, 3, 2), (3, 2, 2), (4, 2, 2), (5, 1, 2), (8, 3, 6), (9, 1, 3)],
)
def test_a_replica_lies_on_whole_nodes_or_inside_one(gpus: int, replicas: int, nodes: int) -> None:
    assert candidate(gpus, replicas).nodes == nodes


@pytest.mark.parametrize(
    ("replicas", "gpus", "nodes", "share"), [(1, 1, 1, "0.5"), (2, 1, 1, "1"), (9, 5, 2, "4.5")]
)
def test_a_partition_is_a_share_of_a_gpu(replicas: int, gpus: int, nodes: int, share: str) -> None:
    cut = candidate(1, replicas, half())
    assert (cut.gpu_count, cut.nodes, cut.asked_gpus) == (gpus, nodes, Decimal(share))


def test_nodes_that_are_bought_are_paid_whole_and_those_that_are_there_by_gpu() -> None:
    assert candidate(1, 5).paid_gpus == 8
    assert candidate(1, 5).usd_per_hour == Decimal("12.0")
    there = candidate(1, 5, device(node_count=9))
    assert (there.paid_gpus, there.usd_per_hour) == (5, Decimal("7.5"))
    assert candidate(1, 5, device(node_count=9), isolation="node").paid_gpus == 8
    # Its part of two nodes that hold 6 GPUs of its pool's workloads.
    shared = candidate(1, 3, pool=(2, Decimal(6)))
    assert shared.paid_gpus == 4
    assert candidate(1, 5, device(usd=None)).usd_per_hour is None


def test_what_nobody_else_can_have_is_taken() -> None:
    assert candidate(1, 5).taken_gpus == 5
    assert candidate(1, 5, isolation="node").taken_gpus == 8
    assert candidate(1, 3, half()).taken_gpus == Decimal("1.5")


def test_too_few_nodes_and_too_many_replicas_are_gates() -> None:
    two = device(node_count=2)
    assert nodes_gate(candidate(4, 2, two)) == ((), None)
    ((short,), flip) = nodes_gate(candidate(4, 3, two))
    assert short == Shortfall(resource="nodes", requested=3.0, used=0.0, capacity=2.0, unit="nodes")
    assert flip == Flip(quantity="node.count", now=2.0, needed=3.0, unit="nodes")
    assert nodes_gate(candidate(1, 10_000)) == ((), None)
    ((many,), nothing) = nodes_gate(candidate(1, 10_001))
    assert (many.resource, many.requested, many.capacity) == ("replicas", 10_001, 10_000)
    assert nothing is None


def test_the_cheapest_wins_and_a_price_before_none() -> None:
    dear, cheap, free = device(usd=2.0), device("a10", usd=1.9), device("l40s", usd=None)
    found = [candidate(4, 1, d) for d in (free, dear, cheap)]
    assert best(found) is found[2]
    assert best(found[:1]) is found[0]
    assert best([]) is None
    alike = [candidate(4, 1, device(name)) for name in ("l4", "a10")]
    assert best(alike) is alike[1]  # by name
    stop = stopped(found[2], (count_gate("x", 2, 1),), passed=1, flip=None)
    assert best([stop, found[1]]) is found[1]
    assert stopped(found[2], (), passed=1, flip=None) is found[2]


@pytest.mark.parametrize(
    ("hours", "gpus"),
    [(6.3, 4), (5.01, 4), (5.0, 4), (4.99, 8), (3.0, 8)],
)
def test_a_run_takes_the_gpus_on_which_all_of_it_costs_least(hours: float, gpus: int) -> None:
    """8 GPUs for `hours`, or 4, which are a node, for 10; of equals the fewest."""
    one = device()
    runs = [candidate(8, 1, one, hours=hours), candidate(4, 1, one, hours=10.0)]
    assert best(runs) is runs[0 if gpus == 8 else 1]


def test_the_best_alone_and_the_best_among_others_are_kept() -> None:
    """Alone, 3 GPUs pay the node of 4; among others they pay 3, fewer than 2 × 2."""
    one = device()
    alone, shared = candidate(2, 2, one), candidate(3, 1, one, hours=1.0)
    listed = shortlist([alone, shared])
    assert shared in listed
    assert len(shortlist([alone])) == 1
    both = [candidate(4, 1, one), candidate(4, 1, device("a10"))]
    assert len(shortlist(both)) == 2


def test_of_each_device_the_best_alone_and_the_best_among_others_lead() -> None:
    """A node of four for an hour is 4 GPU hours, and for 1.2 hours 4.8; three of its GPUs are 3.6
    for that time, where others have the fourth."""
    one, other = device(), device("a10")
    whole_node, three = candidate(4, 1, one, hours=1.0), candidate(3, 1, one, hours=1.2)
    dear, elsewhere = candidate(4, 1, one, hours=9.0), candidate(1, 1, other, hours=1.0)
    for group in ([whole_node, three, dear, elsewhere], [dear, three, elsewhere, whole_node]):
        assert {id(c) for c in leading(group)} == {id(whole_node), id(three), id(elsewhere)}
    assert leading([whole_node]) == [whole_node]
    short = Shortfall(resource="x", requested=2.0, used=0.0, capacity=1.0, unit="1")
    assert leading([candidate(1, 1, one, shortfalls=(short,))]) == []


def test_the_refused_one_that_came_furthest_is_shown() -> None:
    def refused(passed: int, requested: float, capacity: float, gpus: int = 1) -> Candidate:
        short = Shortfall(resource="x", requested=requested, used=0.0, capacity=capacity, unit="1")
        return candidate(gpus, 1, passed=passed, shortfalls=(short,))

    early, later = refused(1, 2, 1), refused(2, 9, 1)
    assert furthest([early, later]) is later
    near, far = refused(1, 3, 2), refused(1, 2, 1)
    assert furthest([far, near]) is near
    below = refused(1, 1, 1.4)  # what must be reached and is not
    assert furthest([near, below]) is below
    assert furthest([near, refused(1, 1, 4)]) is near
    nothing = refused(1, 1, 0)
    assert furthest([nothing, far]) is far
    assert furthest([refused(1, 2, 1, gpus=2), far]) is far
    assert furthest([candidate(1, 1)]) is None


def test_gates_say_their_numbers() -> None:
    split = uneven(6, 1000, "heads")
    assert split == Shortfall(
        resource="1,000 heads",
        requested=6.0,
        used=0.0,
        capacity=2.0,
        unit="GPUs",
        lack="uneven",
    )
    ((short,), flip) = memory_gate(device(), 90.0, 80.0, 100.0)
    assert (short.resource, short.requested, short.capacity) == ("gpu_memory", 90.0, 80.0)
    assert (flip.now, flip.needed) == (device().memory_bytes.value, 100.0)


@pytest.mark.parametrize(("watts", "fed"), [(288.0, True), (287.9, False), (None, True)])
def test_a_rack_may_feed_just_what_a_node_draws(watts: float | None, *, fed: bool) -> None:
    """Four boards of 72 W."""
    rack = None if watts is None else Quantity(watts, "W", "test")
    gates, flip = nodes_gate(candidate(1, 1, device(rack_watts=rack)))
    assert (gates == ()) == fed
    assert flip is None
    if not fed:
        (short,) = gates
        assert (short.resource, short.requested, short.capacity) == ("rack_power", 288.0, watts)
