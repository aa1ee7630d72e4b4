"""Whole GPUs and MIG instances of several sizes on the nodes of one pool."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.catalog.load import load_catalog
from gpuplan.catalog.model import Gpu
from gpuplan.diagnostics import Severity
from gpuplan.placement.api import Placement
from gpuplan.placement.place import place
from gpuplan.plan.model import HostResources, NodePool, Workload
from gpuplan.plan.partitions import PartitionName
from gpuplan.sharing.covering import cover
from gpuplan.sharing.mig import ProfileCounts, layout
from gpuplan.units import GIB
from tests.support.placement_samples import gpu, offer, workload


def asked(name: str, replicas: int, partition: str | None = None, **changes: Any) -> Workload:
    """One GPU or one instance a replica, with little else."""
    cores = changes.pop("cores", 1)
    resources = HostResources(
        cpu_cores=cores, host_memory_bytes=4 * GIB, shared_memory_bytes=0, scratch_bytes=0
    )
    values = {"isolation": "shared", "gpus_per_node": 1, "replicas": replicas, **changes}
    return workload(name, partition=partition, resources=resources, **values)


def placed(*workloads: Workload, **changes: Any) -> Placement:
    placement = place("lab", "kubernetes", workloads, [offer(gpu(), **changes)])
    assert [d.message for d in placement.diagnostics if d.severity is Severity.ERROR] == []
    return placement


def profiles(card: Gpu, *names: str) -> list[Any]:
    known = {p.name: p for p in card.mig_profiles}
    return [known[n] for n in names]


def instances(pool: NodePool) -> Counter[str]:
    found: Counter[str] = Counter()
    for node in pool.layouts:
        for cut in node.gpus:
            for instance in cut.instances:
                found[instance.profile] += node.node_count * len(cut.gpus)
    return found


def test_instances_of_several_sizes_share_a_gpu() -> None:
    desks, tests = asked("desks", 2, "2g.20gb"), asked("tests", 1, "3g.40gb")
    (pool,) = placed(desks, tests).node_pools
    (node,) = pool.layouts
    (cut,) = node.gpus
    assert cut.gpus == (7,), "one of eight GPUs is cut, the last"
    assert [(i.profile, i.start) for i in cut.instances] == [
        ("3g.40gb", 4),
        ("2g.20gb", 0),
        ("2g.20gb", 2),
    ]
    assert {p.name: (p.count, p.resource) for p in pool.partitions} == {
        "2g.20gb": (2, "nvidia.com/mig-2g.20gb"),
        "3g.40gb": (1, "nvidia.com/mig-3g.40gb"),
    }


def test_whole_gpus_and_cut_ones_share_a_node() -> None:
    service = asked("chat", 1, gpus_per_node=4)
    (pool,) = placed(service, asked("desks", 20, "1g.10gb")).node_pools
    assert pool.node_count == 1
    assert [cut.gpus for cut in pool.layouts[0].gpus] == [(5, 6, 7)]


def test_room_that_is_left_on_a_cut_gpu_is_cut_too() -> None:
    (pool,) = placed(asked("desks", 8, "1g.10gb")).node_pools
    assert instances(pool) == {"1g.10gb": 14}, "a GPU in MIG mode cannot be used as a whole"


def test_nodes_are_told_apart_by_name() -> None:
    names = ("n1", "n2", "n3")
    service = asked("chat", 2, gpus_per_node=8)
    (pool,) = placed(service, asked("desks", 7, "1g.10gb"), node_names=names).node_pools
    (node,) = pool.layouts
    assert (node.node_count, node.node_names) == (1, ("n3",))


def test_cores_that_are_short_cut_further_gpus() -> None:
    """Seven users fit a GPU's memory; a node's cores are enough for three."""
    desks = asked("desks", 7, "1g.10gb", cores=30)
    (pool,) = placed(desks, gpus_per_node=1, cpu_cores_per_node=100).node_pools
    assert pool.node_count == 3
    assert sum(n.node_count for n in pool.layouts) == 3
    assert instances(pool)["1g.10gb"] == 21


def test_what_each_tenant_owns_is_cut_apart() -> None:
    own = [
        asked(name, 1, "1g.10gb", isolation="gpu", tenant=name, node_pool="h100-sxm-80gb")
        for name in ("red", "blue")
    ]
    pools = placed(*own).node_pools
    assert [p.name for p in pools] == ["h100-sxm-80gb-red", "h100-sxm-80gb-blue"]


def counts(need: dict[str, int], card: Gpu) -> ProfileCounts:
    by_name = {p.name: p for p in card.mig_profiles}
    return tuple((by_name[PartitionName(name)], n) for name, n in need.items())


@pytest.mark.parametrize(
    ("need", "gpus"),
    [
        ({"3g.40gb": 1, "2g.20gb": 2}, 1),
        ({"3g.40gb": 2, "2g.20gb": 4}, 2),
        ({"3g.40gb": 3, "2g.20gb": 3}, 3),
        ({"4g.40gb": 3, "3g.40gb": 3}, 3),
        ({"1g.10gb": 8}, 2),
        ({"1g.20gb": 4, "1g.10gb": 1}, 2),
        ({"1g.10gb": 300, "3g.40gb": 1}, 44),
        # the fullest GPU first would take one more for each of these
        ({"4g.40gb": 2, "1g.20gb": 2, "1g.10gb": 4}, 2),
        ({"4g.40gb": 3, "1g.20gb": 4, "1g.10gb": 4}, 3),
        ({"3g.40gb": 2, "2g.20gb": 3, "1g.10gb": 2}, 2),
        ({"3g.40gb": 2, "2g.20gb": 2, "1g.10gb": 4}, 2),
        # and so would the fullest of those that hold the largest
        ({"4g.40gb": 4, "2g.20gb": 2, "1g.20gb": 4, "1g.10gb": 4}, 4),
    ],
)
def test_the_fewest_gpus_hold_them(need: dict[str, int], gpus: int) -> None:
    assert len(cover(counts(need, gpu()))) == gpus


@settings(max_examples=60)
@given(
    st.sampled_from(["h100-sxm-80gb", "a30", "rtx-pro-6000-server"]),
    st.lists(st.integers(0, 5), min_size=3, max_size=3),
)
def test_a_cover_is_legal_and_as_small_as_trying_everything_finds(
    name: str, asked_for: list[int]
) -> None:
    card = load_catalog().gpu(name)
    assert card is not None
    plain = sorted(
        (p for p in card.mig_profiles if "+" not in p.name and "-" not in p.name),
        key=lambda p: p.memory_slices,
    )[:3]
    need = {str(p.name): n for p, n in zip(plain, asked_for, strict=False) if n}
    cuts = cover(counts(need, card))
    held: Counter[str] = Counter()
    for cut in cuts:
        assert layout([p for p, n in cut for _ in range(n)]) is not None
        held.update({p.name: n for p, n in cut})
    assert held == need
    assert len(cuts) == smallest(tuple(need.get(p.name, 0) for p in plain), plain)


def smallest(left: tuple[int, ...], plain: list[Any]) -> int:
    """By layers: all counts that one more GPU can hold."""
    ranges = [range(p.maximum + 1) for p in plain]
    legal = [
        c
        for c in product(*ranges)
        if layout([p for p, n in zip(plain, c, strict=True) for _ in range(n)]) is not None
    ]
    layer, gpus = {left}, 0
    while tuple(0 for _ in left) not in layer:
        layer = {
            tuple(max(0, n - m) for n, m in zip(state, c, strict=True))
            for state in layer
            for c in legal
        }
        gpus += 1
    return gpus


@settings(max_examples=60)
@given(
    st.dictionaries(
        st.sampled_from(["1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "whole"]),
        st.tuples(st.integers(1, 12), st.integers(1, 20)),
        min_size=1,
    ),
    st.sampled_from([1, 2, 4, 8]),
)
def test_every_pod_has_its_instance(sizes: dict[str, tuple[int, int]], gpus: int) -> None:
    workloads = [
        asked(f"w{n}", replicas, None if name == "whole" else name, cores=cores)
        for n, (name, (replicas, cores)) in enumerate(sizes.items())
    ]
    (pool,) = placed(*workloads, gpus_per_node=gpus, cpu_cores_per_node=20 * gpus + 4).node_pools
    held = instances(pool)
    cut = sum(n.node_count * sum(len(c.gpus) for c in n.gpus) for n in pool.layouts)
    for name, (replicas, _) in sizes.items():
        room = pool.node_count * gpus - cut if name == "whole" else held[name]
        assert room >= replicas, name
    for node in pool.layouts:
        numbers = [g for c in node.gpus for g in c.gpus]
        assert sorted(set(numbers)) == sorted(numbers)
        assert set(numbers) <= set(range(gpus))
        for one in node.gpus:
            names = [i.profile for i in one.instances]
            assert layout(profiles(gpu(), *names)) == one.instances
