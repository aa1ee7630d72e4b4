"""GPU memory by hand: whose limit is the smallest, what is left free, what caches hold."""

from __future__ import annotations

import pytest

from gpuplan.findings import Verdict
from gpuplan.plan.model import Evidence, Partition, Plan
from gpuplan.units import GIB
from tests.support.policy_samples import judge, with_memory, with_pool, with_workload
from tests.support.samples import serving_plan, training_plan


def told(plan: Plan, rule: str) -> list[Verdict]:
    return [v for v in judge(plan) if v.rule == rule]


def sized(plan: Plan, used: int, **limits: int) -> Plan:
    """A GPU takes `used` GiB and nothing else."""
    parts = ("weights", "gradients", "optimizer", "activations", "kv_cache", "overhead")
    nothing = dict.fromkeys((f"{part}_bytes" for part in parts), 0)
    given = {f"{name}_bytes": size * GIB for name, size in limits.items()}
    return with_memory(plan, **(nothing | {"weights_bytes": used * GIB} | given))


@pytest.mark.parametrize(
    ("usable", "capacity", "gpu", "whose"),
    [
        (10, 20, 30, "the engine may take (10 GiB)"),
        (20, 10, 30, "the sizing counted on (10 GiB)"),
        (30, 20, 10, "the GPU has (10 GiB)"),
        (10, 10, 10, "the engine may take (10 GiB)"),
        (20, 10, 10, "the sizing counted on (10 GiB)"),
    ],
)
def test_memory_is_held_to_the_smallest_of_its_limits(
    usable: int, capacity: int, gpu: int, whose: str
) -> None:
    plan = with_pool(serving_plan(), gpu_memory_bytes=gpu * GIB)
    assert told(sized(plan, 10, usable=usable, capacity=capacity), "GP101") == []
    [found] = told(sized(plan, 13, usable=usable, capacity=capacity), "GP101")
    assert found.message.endswith(f"needs 13 GiB of GPU memory, 3 GiB more than {whose}")
    assert (found.requested, found.capacity) == (13 * GIB, 10 * GIB)


def test_a_partition_has_its_own_memory_where_its_pool_lists_it() -> None:
    plan = with_workload(sized(serving_plan(), 12, usable=30, capacity=30), partition="part")
    parts = [
        Partition(kind="mig", name=name, count=7, per_gpu=7, memory_bytes=size * GIB, resource="r")
        for name, size in (("other", 1), ("part", 10))
    ]
    [found] = told(with_pool(plan, partitions=tuple(parts)), "GP101")
    assert found.capacity == 10 * GIB
    assert told(with_pool(plan, partitions=tuple(parts[:1])), "GP101") == []


@pytest.mark.parametrize(
    ("plan", "percent"), [(serving_plan(), 10), (training_plan(), 15)], ids=["serves", "trains"]
)
@pytest.mark.parametrize("free", [-1, 0, 1, 9, 10, 14, 15, 16])
def test_some_of_a_gpu_is_left_free(plan: Plan, percent: int, free: int) -> None:
    """Of 100 GiB; less than nothing is another rule's."""
    plan = with_pool(plan, gpu_memory_bytes=100 * GIB)
    found = told(sized(plan, 100 - free, usable=100 - free, capacity=100), "GP102")
    assert len(found) == (0 <= free < percent)
    for verdict in found:
        assert (verdict.requested, verdict.capacity) == (percent * GIB, free * GIB)
        assert f"leaves {free}.0 % of GPU memory free" in verdict.message


@pytest.mark.parametrize(("used", "usable"), [(50, 95), (95, 50)])
def test_an_engine_that_serves_takes_what_it_may_and_a_run_what_it_needs(
    used: int, usable: int
) -> None:
    for plan, taken in ((serving_plan(), 95), (training_plan(), used)):
        large = with_pool(plan, gpu_memory_bytes=100 * GIB)
        found = told(sized(large, used, usable=usable, capacity=100), "GP102")
        assert [v.capacity for v in found] == ([5 * GIB] if taken == 95 else [])


def cached(room: int, each: float, replicas: int, concurrency: int) -> Plan:
    """Caches of `room` GiB, and requests of `each` GiB: 1,000 tokens of 8,000 in 8 GiB each."""
    names = ("kv_cache_bytes", "kv_cache_tokens", "tokens_per_request")
    told_of = (
        Evidence(quantity=f"assistant.{name}", value=value, unit="1", formula="", source="")
        for name, value in zip(names, (each * 8 * GIB, 8000, 1000), strict=True)
    )
    plan = sized(serving_plan(evidence=tuple(told_of)), 20, usable=20 + room, capacity=79)
    return with_workload(plan, replicas=replicas, concurrency=concurrency)


@pytest.mark.parametrize(
    ("room", "each", "replicas", "held"),
    [
        (10, 1.0, 1, 10),
        (10, 1.0, 4, 40),
        (10, 3.0, 1, 3),
        (10, 3.0, 4, 12),  # what is left over of each replica is nobody's
        (10, 2.5, 2, 8),
        (2, 4.0, 9, 0),
        (-3, 1.0, 2, 0),
    ],
)
def test_caches_hold_whole_requests_of_each_replica(
    room: int, each: float, replicas: int, held: int
) -> None:
    [found] = told(cached(room, each, replicas, held + 1), "GP103")
    assert (found.requested, found.capacity) == (held + 1, held)
    assert found.message.endswith(f"its KV caches hold {held}")
    if held:
        assert told(cached(room, each, replicas, held), "GP103") == []


def test_a_part_of_the_room_may_be_the_cache_already() -> None:
    plan = cached(10, 1.0, 1, 15)
    assert [v.capacity for v in told(plan, "GP103")] == [10]
    assert told(with_memory(plan, kv_cache_bytes=5 * GIB, weights_bytes=15 * GIB), "GP103") == []
    assert [
        v.capacity
        for v in told(with_memory(plan, kv_cache_bytes=4 * GIB, weights_bytes=16 * GIB), "GP103")
    ] == [14]


@pytest.mark.parametrize("zero", ["kv_cache_bytes", "kv_cache_tokens", "tokens_per_request"])
def test_evidence_of_nothing_says_nothing_of_a_cache(zero: str) -> None:
    plan = cached(1, 1.0, 1, 5)
    evidence = tuple(
        Evidence(
            quantity=e.quantity,
            value=0.0 if e.quantity.endswith(zero) else e.value,
            unit="1",
            formula="",
            source="",
        )
        for e in plan.evidence
    )
    assert len(told(plan, "GP103")) == 1
    assert told(serving_plan(workloads=plan.workloads, evidence=evidence), "GP103") == []


def test_what_is_not_served_has_no_requests_to_hold() -> None:
    assert told(with_workload(training_plan(), concurrency=10**6), "GP103") == []
