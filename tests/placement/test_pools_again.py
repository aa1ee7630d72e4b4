"""Every plan of node pools, counted again from what was asked and what was offered."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal

import pytest

from gpuplan.diagnostics import Diagnostic, Severity
from gpuplan.placement.api import Placement
from gpuplan.placement.place import place
from gpuplan.placement.pools.bins import Node, capacity, more
from gpuplan.placement.pools.packing import Packing
from gpuplan.placement.pools.pools import _ask
from gpuplan.plan.model import HostResources, NodePool, Workload
from gpuplan.sizing.hardware.offers import GpuOffer
from gpuplan.units import GIB
from tests.support.placement_samples import gpu, l40s, offer, workload

SEEDS = range(40)
SIZES = (None, None, "1g.10gb", "2g.20gb", "3g.40gb", "L40S-12C")


SMALL = HostResources(cpu_cores=1, host_memory_bytes=GIB, shared_memory_bytes=0, scratch_bytes=0)


def asked(draw: random.Random, name: str) -> Workload:
    size = draw.choice(SIZES)
    card = size == "L40S-12C" or (size is None and draw.random() < 0.3)
    per = draw.choice((1, 2, 4)) if size is None else 1
    return workload(
        name,
        gpu="l40s" if card else "h100-sxm-80gb",
        node_pool=f"l40s-{size}".lower()
        if card and size
        else ("l40s" if card else "h100-sxm-80gb"),
        tenant=draw.choice(("red", "blue")),
        isolation=draw.choice(("shared", "shared", "gpu", "node")),
        partition=size,
        replicas=draw.randint(1, 5),
        nodes_per_replica=draw.choice((1, 1, 1, 2)),
        gpus_per_node=per,
        resources=HostResources(
            cpu_cores=draw.randint(1, 24),
            host_memory_bytes=draw.randint(8, 300) * GIB,
            shared_memory_bytes=0,
            scratch_bytes=0,
        ),
    )


def offered(draw: random.Random) -> list[GpuOffer]:
    more = {"node_count": draw.choice((None, None, 2, 5))}
    cards = {"gpus_per_node": 4, "cpu_cores_per_node": 64, "memory_bytes_per_node": 512 * GIB}
    return [offer(gpu(), **more), offer(l40s(), usd_per_gpu_hour=None, **cards)]


def case(seed: int) -> tuple[list[Workload], list[GpuOffer], Placement]:
    draw = random.Random(seed)
    wanted = [asked(draw, f"w{n}") for n in range(draw.randint(1, 5))]
    offers = offered(draw)
    return wanted, offers, place("x", "kubernetes", wanted, offers, budget=Decimal(5))


def members(placement: Placement, pool: NodePool) -> list[Workload]:
    return [w for w in placement.workloads if w.node_pool == pool.name]


def own(work: Workload) -> str | None:
    """Whose its pool is."""
    alone = work.isolation == "node" or (work.isolation == "gpu" and work.partition)
    return work.tenant if alone else None


@pytest.mark.parametrize("seed", SEEDS)
def test_pools_have_room_for_all_that_is_on_them(seed: int) -> None:
    wanted, offers, placement = case(seed)
    by_gpu = {o.gpu.identifier: o for o in offers}
    assert [w.name for w in placement.workloads] == [w.name for w in wanted]
    assert {w.node_pool for w in placement.workloads} == {p.name for p in placement.node_pools}
    refused = {
        w.name
        for w in wanted
        if any(f"'{w.name}' on a node" in d.message for d in placement.diagnostics)
    }
    for pool in placement.node_pools:
        works, room = members(placement, pool), capacity(by_gpu[pool.gpu], 1)
        assert len({(own(w), w.gpu) for w in works}) == 1
        assert room.cores is not None
        assert room.memory_bytes is not None
        on = [w for w in works if w.name not in refused]
        parts = [(w, w.replicas * w.nodes_per_replica) for w in on]
        assert pool.node_count * room.cores >= sum(n * w.resources.cpu_cores for w, n in parts)
        memory = sum(n * w.resources.host_memory_bytes for w, n in parts)
        assert pool.node_count * room.memory_bytes >= memory
        whole = sum(n * w.gpus_per_node for w, n in parts if w.partition is None)
        asked = Counter[str]()
        for w, n in parts:
            asked[w.partition or ""] += n * w.gpus_per_node
        del asked[""]
        there = {p.name: p.count for p in pool.partitions}
        assert set(there) == set(asked)
        assert all(there[name] >= n for name, n in asked.items())
        gpus = pool.node_count * pool.gpus_per_node
        cut = sum(n.node_count * len(g.gpus) for n in pool.layouts for g in n.gpus)
        if pool.gpu == "h100-sxm-80gb":
            instances = Counter[str]()
            for node in pool.layouts:
                for each in node.gpus:
                    for name, number in each.counts.items():
                        instances[name] += node.node_count * len(each.gpus) * number
            assert there == instances
            assert pool.idle_gpus == gpus - whole - cut
        else:
            shared = sum(asked.values())
            assert cut == 0
            assert gpus - whole - shared <= pool.idle_gpus <= gpus - whole - -(-shared // 4)
        assert bool(pool.room) == bool(pool.idle_gpus)
        assert [r.workload for r in pool.room] in ([], [w.name for w in works])


@pytest.mark.parametrize("seed", SEEDS)
def test_money_power_and_quotas_are_those_of_all_pools(seed: int) -> None:
    wanted, offers, placement = case(seed)
    pools = placement.node_pools
    nodes = {
        gpu: sum(p.node_count for p in pools if p.gpu == gpu) for gpu in ("l40s", "h100-sxm-80gb")
    }
    usd = Decimal("23.60") * nodes["h100-sxm-80gb"]
    assert placement.cost.usd_per_hour == (usd if nodes["h100-sxm-80gb"] else None)
    assert placement.cost.unpriced == tuple(p.name for p in pools if p.gpu == "l40s")
    assert placement.cost.watts == 8 * 700 * nodes["h100-sxm-80gb"] + 4 * 350 * nodes["l40s"]
    assert (placement.cost.runs_usd_per_hour, placement.cost.usd_of_runs) == (0, None)
    assert placement.cost.budget_usd_per_hour == 5
    short = nodes["h100-sxm-80gb"] - (offers[0].node_count or 10**6)
    lacking = [s for s in placement.shortfalls if s.resource == "nodes with h100-sxm-80gb"]
    assert bool(lacking) == (short > 0)
    if lacking:
        last = lacking[-1]
        assert last.requested + last.used - last.capacity <= short
        assert last.capacity == offers[0].node_count
        assert any(d.severity is Severity.ERROR for d in placement.diagnostics)
    assert [t.name for t in placement.tenants] == list(dict.fromkeys(w.tenant for w in wanted))
    for tenant in placement.tenants:
        mine = [w for w in wanted if w.tenant == tenant.name]
        devices = [(w, w.replicas * w.nodes_per_replica * w.gpus_per_node) for w in mine]
        assert tenant.gpu_quota == sum(n for w, n in devices if w.partition is None)
        parts = sum(n for w, n in devices if w.partition is not None)
        assert sum(n for _, n in tenant.partition_quota) == parts
        order = ("vm", "node", "gpu", "shared")
        assert tenant.isolation == min((w.isolation for w in mine), key=order.index)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_room_of_a_node_is_what_its_instances_cores_and_memory_leave(seed: int) -> None:
    """Of pools of one node: instances that are cut and nobody has, and idle GPUs that may be."""
    _, offers, placement = case(seed)
    maximum = {str(p.name): p.maximum for p in gpu().mig_profiles}
    for pool in (p for p in placement.node_pools if p.node_count == 1 and p.gpu != "l40s"):
        works, left = members(placement, pool), capacity(offers[0], 1)
        parts = [(w, w.replicas * w.nodes_per_replica) for w in works]
        cores = (left.cores or 0) - sum(n * w.resources.cpu_cores for w, n in parts)
        memory = sum(n * w.resources.host_memory_bytes for w, n in parts)
        memory = (left.memory_bytes or 0) - memory
        instances = Counter({str(p.name): p.count for p in pool.partitions})
        for w, n in parts:
            instances[w.partition or ""] -= n
        for room, w in zip(pool.room, works, strict=False):
            devices = pool.idle_gpus // w.gpus_per_node
            if w.partition is not None:
                devices = instances[w.partition] + pool.idle_gpus * maximum[w.partition]
            limits = (
                devices,
                cores // w.resources.cpu_cores,
                memory // w.resources.host_memory_bytes,
            )
            more = min(limits) if w.nodes_per_replica == 1 else 0
            assert (room.workload, room.replicas) == (w.name, more)


@pytest.mark.parametrize("teams", [1, 2, 3])
def test_so_many_nodes_are_asked_for_as_all_pools_take(teams: int) -> None:
    """Two of each team, and two there are."""
    works = [
        workload(
            f"w{n}", isolation="node", tenant=f"t{n}", gpus_per_node=8, replicas=2, gpu_count=16
        )
        for n in range(teams)
    ]

    def problems(count: int) -> list[Diagnostic]:
        placement = place("x", "kubernetes", works, [offer(gpu(), node_count=count)])
        return [d for d in placement.diagnostics if d.severity is Severity.ERROR]

    assert problems(2 * teams) == []
    told = problems(2)
    assert len(told) == teams - 1
    for problem in told:
        assert problem.help is not None
        assert f"`platform.node.count: {2 * teams}` instead of 2" in problem.help


def times(node: Node, gpus: int, sizes: tuple[int, int], instances: tuple[str, int] | None) -> int:
    """Parts that still go onto a node, one after the other."""
    cores, memory = sizes
    free = node.gpus
    if instances is not None:
        free = node.slots[instances[0]] + node.gpus * instances[1]
    left = [free, node.cores or 0, node.memory_bytes or 0]
    count = 0
    while left[0] >= gpus and left[1] >= cores and left[2] >= memory:
        left = [left[0] - gpus, left[1] - cores, left[2] - memory]
        count += 1
    return count


@pytest.mark.parametrize("seed", SEEDS)
def test_room_is_for_so_many_more_and_no_more(seed: int) -> None:
    """As the nodes are filled: on each as often as GPUs, cores and memory allow; what lies on two
    nodes takes one place of each."""
    wanted, offers, placement = case(seed)
    asks = [
        _ask(w, own_pool.node_pool) for w, own_pool in zip(placement.workloads, wanted, strict=True)
    ]
    maximum = {p.name: p.maximum for p in gpu().mig_profiles}
    for on_pool, need in Packing(offers).pools(asks):
        assert need is not None
        for ask in on_pool:
            part = ask.partition if ask.partition in maximum else None
            instances = None if part is None else (part, maximum[part])
            sizes = (ask.cores, ask.memory_bytes)
            counts = [times(n, ask.gpus, sizes, instances) for n in need.filled]
            held = sum(counts) if ask.nodes == 1 else sum(c > 0 for c in counts) // ask.nodes
            assert more(need.filled, ask, need.offer.gpu) == held


@pytest.mark.parametrize("partition", [None, "3g.40gb"])
@pytest.mark.parametrize("field", ["cpu_cores", "host_memory_bytes"])
def test_a_node_is_filled_to_its_last_core_and_byte(field: str, partition: str | None) -> None:
    """Two parts share all that a node has; where each asks one more, they have a node each."""
    room = capacity(offer(gpu()), 1)
    each = {"cpu_cores": 1, "host_memory_bytes": GIB}
    most = {"cpu_cores": room.cores or 0, "host_memory_bytes": room.memory_bytes or 0}
    for beyond in (0, 1):
        each[field] = most[field] // 2 + beyond
        size = HostResources(shared_memory_bytes=0, scratch_bytes=0, **each)
        work = workload(
            isolation="shared", replicas=2, gpus_per_node=1, partition=partition, resources=size
        )
        (pool,) = place("x", "kubernetes", [work], [offer(gpu())]).node_pools
        assert pool.node_count == 1 + beyond


@pytest.mark.parametrize(
    ("sizes", "nodes"), [(((2, 3), (5, 3), (1, 3)), 3), (((6, 1), (4, 2), (2, 1)), 2)]
)
def test_small_parts_fill_what_large_ones_leave_of_every_node(
    sizes: tuple[tuple[int, int], ...], nodes: int
) -> None:
    works = [
        workload(f"w{gpus}", isolation="shared", replicas=n, gpus_per_node=gpus, resources=SMALL)
        for gpus, n in sizes
    ]
    (pool,) = place("x", "kubernetes", works, [offer(gpu())]).node_pools
    assert (pool.node_count, pool.idle_gpus) == (nodes, 0)
