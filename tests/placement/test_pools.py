"""Node pools, tenants, cost and MIG layouts."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.catalog.load import load_catalog
from gpuplan.catalog.model import Gpu, MigProfile
from gpuplan.diagnostics import Severity
from gpuplan.placement.api import Placement
from gpuplan.placement.place import place
from gpuplan.placement.pools.bins import Ask, Capacity, Item, filled, items
from gpuplan.placement.pools.packing import Packing
from gpuplan.plan.model import HostResources, NodePool, Workload
from gpuplan.sharing.mig import layout
from gpuplan.sizing.evidence.formula import evaluate
from gpuplan.units import GIB
from tests.support.placement_samples import gpu, offer, workload

LAYOUTS = Path(__file__).parents[3] / "shared/data/catalog/mig_layouts.csv"


def served(name: str = "chat", **changes: Any) -> Workload:
    """Two GPUs a replica, three replicas, shared nodes."""
    values: dict[str, Any] = {
        "isolation": "shared",
        "gpus_per_node": 2,
        "replicas": 3,
        "resources": HostResources(
            cpu_cores=12, host_memory_bytes=160 * GIB, shared_memory_bytes=0, scratch_bytes=0
        ),
    }
    return workload(name, **(values | changes))


KEPT = 4  # cores of a node of two NUMA nodes


def placed(*workloads: Workload, **changes: Any) -> Placement:
    return place("chat", "kubernetes", workloads, [offer(gpu(), **changes)])


def errors(placement: Placement) -> list[str]:
    return [d.message for d in placement.diagnostics if d.severity is Severity.ERROR]


def test_replicas_of_several_workloads_share_whole_nodes() -> None:
    placement = placed(served(), served("other", gpus_per_node=4, replicas=1))
    (pool,) = placement.node_pools
    assert (pool.name, pool.node_count) == ("h100-sxm-80gb", 2)
    assert (pool.interconnect, pool.interconnect_bytes_per_s) == ("nvlink", 450e9)
    assert placement.cost.usd_per_hour == Decimal("47.20")
    assert placement.cost.watts == 2 * 8 * 700


def test_price_and_power_of_a_node_have_evidence_that_computes_them() -> None:
    placement = placed(served())
    entries = {e.quantity: e for e in placement.evidence}
    for name, value in (("node_usd_per_hour", 23.6), ("node_watts", 5600)):
        entry = entries[f"h100-sxm-80gb.{name}"]
        assert evaluate(entry.formula, {i.name: i.value for i in entry.inputs}) == value
    price = entries["h100-sxm-80gb.node_usd_per_hour"].inputs
    assert {i.source for i in price if i.name == "usd_per_gpu_hour"} == {"catalog: sample"}


def test_nodes_of_one_replica_are_different_nodes() -> None:
    (pool,) = placed(served(replicas=1, nodes_per_replica=3, gpus_per_node=2)).node_pools
    assert pool.node_count == 3


@pytest.mark.parametrize(
    ("field", "value", "nodes"),
    [
        ("cpu_cores_per_node", 24 + KEPT, 2),
        ("cpu_cores_per_node", 23 + KEPT, 3),
        ("memory_bytes_per_node", 178 * GIB, 3),  # 160 GiB, and a tenth of all
    ],
)
def test_cores_and_memory_that_a_node_does_not_keep_limit_it_too(
    field: str, value: int, nodes: int
) -> None:
    (pool,) = placed(served(), **{field: value}).node_pools
    assert pool.node_count == nodes


def test_a_pod_never_gets_every_core_of_its_node() -> None:
    """The kubelet, the system and the daemons of the operator need some, so it would wait."""
    taken = served(gpus_per_node=8, replicas=1)
    resources = replace(taken.resources, cpu_cores=112)
    (message,) = errors(placed(replace(taken, resources=resources)))
    assert "cores of one node: 112 asked, 0 of 108 taken, 4 short" in message
    placement = placed(replace(taken, resources=replace(resources, cpu_cores=108)))
    assert errors(placement) == []


def test_a_small_node_has_a_core_for_its_gpu() -> None:
    resources = HostResources(
        cpu_cores=1, host_memory_bytes=16 * GIB, shared_memory_bytes=0, scratch_bytes=0
    )
    small = served(gpus_per_node=1, replicas=1, resources=resources)
    assert errors(placed(small, gpus_per_node=1, cpu_cores_per_node=2, numa_nodes=1)) == []


def test_unknown_cores_and_memory_limit_nothing() -> None:
    (pool,) = placed(served(), cpu_cores_per_node=None, memory_bytes_per_node=None).node_pools
    assert (pool.node_count, pool.cpu_cores, pool.memory_bytes) == (1, None, None)


def test_too_few_nodes_are_said_with_numbers() -> None:
    placement = placed(served(replicas=9), node_count=2)
    assert errors(placement) == [
        (
            "no room for 'chat' (4 GPUs) on the nodes there are: nodes with h100-sxm-80gb: "
            "3 asked, 0 of 2 taken, 1 short"
        )
    ]
    (short,) = placement.shortfalls
    assert (short.requested, short.capacity) == (3, 2)


def test_what_no_node_holds_is_said_with_every_number() -> None:
    big = served(
        gpus_per_node=16,
        resources=HostResources(
            cpu_cores=128, host_memory_bytes=160 * GIB, shared_memory_bytes=0, scratch_bytes=0
        ),
    )
    (message,) = errors(placed(big))
    assert message == (
        "no room for 'chat' on a node: h100-sxm-80gb of one node: 16 asked, 0 of 8 taken, 8 short; "
        "cores of one node: 128 asked, 0 of 108 taken, 20 short"
    )


def test_of_several_kinds_of_node_the_cheapest_that_fits_is_taken() -> None:
    small = offer(gpu(), node_type="small", gpus_per_node=4, node_count=1)
    large = offer(gpu(), node_type="large")
    four, eight = served(gpus_per_node=4, replicas=1), served(gpus_per_node=8, replicas=1)
    for wanted, kind in ((four, "small"), (eight, "large")):
        (pool,) = place("x", "kubernetes", [wanted], [large, small]).node_pools
        assert pool.node_type == kind


def test_of_kinds_of_node_without_a_price_the_fewest_are_taken() -> None:
    """Seven GPUs are on one node of eight, or on two of six."""
    six, eight = (
        offer(gpu(), node_type=f"{n} GPUs", gpus_per_node=n, usd_per_gpu_hour=None) for n in (6, 8)
    )
    for offers in ([six, eight], [eight, six]):
        (pool,) = place("x", "kubernetes", [served(gpus_per_node=1, replicas=7)], offers).node_pools
        assert (pool.node_type, pool.node_count) == ("8 GPUs", 1)


def test_a_pool_is_asked_for_whole_gpus_and_for_the_share_that_each_instance_is() -> None:
    parts = asked("cut", partition="3g.40gb", replicas=6)  # two on a GPU
    for asks, gpus in (
        ((parts,), 3),
        ((asked("whole", 4, replicas=3, nodes=2),), 24),
        ((parts, asked("whole", 4, replicas=3, nodes=2)), 27),
    ):
        ((_, need),) = Packing([offer(gpu())]).pools(asks)
        assert need is not None
        assert need.gpus == gpus


def test_isolated_nodes_are_pools_of_their_own() -> None:
    shared = served("a")
    alone = served("b", isolation="node", tenant="red")
    cut = served("c", partition="1g.10gb", gpus_per_node=1, replicas=10, resources=TINY)
    owned = served(
        "d", partition="1g.10gb", gpus_per_node=1, isolation="gpu", tenant="red", resources=TINY
    )
    placement = placed(shared, alone, cut, owned)
    everyone, red = "h100-sxm-80gb", "h100-sxm-80gb-red"
    assert [p.name for p in placement.node_pools] == [everyone, red]
    assert [w.node_pool for w in placement.workloads] == [everyone, red, everyone, red]


def test_nodes_of_a_vendor_without_product_names_are_known_by_their_device() -> None:
    """AMD's labeller writes the PCI device, which only machines that nobody cuts up have."""
    found = load_catalog().gpu("mi300x-192gb")
    assert found is not None
    (device,) = found.pci_ids
    wanted = served(gpu="mi300x-192gb")
    (pool,) = place("x", "kubernetes", [wanted], [offer(found)]).node_pools
    assert (pool.vendor, pool.gpu_product) == ("amd", device.partition(":")[2])


def test_another_workload_renames_no_pool() -> None:
    cut = served("c", partition="1g.10gb", gpus_per_node=1, resources=TINY)
    (alone,) = placed(cut).node_pools
    both = placed(cut, served()).node_pools
    assert alone.name in {p.name for p in both}


TINY = HostResources(cpu_cores=1, host_memory_bytes=4 * GIB, shared_memory_bytes=0, scratch_bytes=0)


def test_a_partitioned_pool_counts_instances() -> None:
    cut = served(partition="3g.40gb", gpus_per_node=1, replicas=17, resources=TINY)
    placement = placed(cut)
    (pool,) = placement.node_pools
    assert pool.node_count == 2, "sixteen halves fit eight GPUs"
    full, one = pool.layouts
    assert [g.gpus for g in full.gpus] == [(0, 1, 2, 3, 4, 5, 6, 7)]
    assert [g.gpus for g in one.gpus] == [(7,)], "the other GPUs of the second node stay whole"
    assert [(i.profile, i.start) for i in one.gpus[0].instances] == [("3g.40gb", 4), ("3g.40gb", 0)]
    (half,) = pool.partitions
    assert (half.resource, half.count) == ("nvidia.com/mig-3g.40gb", 18)
    (tenant,) = placement.tenants
    assert (tenant.gpu_quota, tenant.partition_quota) == (0, (("nvidia.com/mig-3g.40gb", 17),))


def test_a_node_that_stays_as_it_is_cut_is_paid_beside_the_new_one() -> None:
    """One GPU a node. The small instances would fit beside the large one if it were cut anew."""
    names = ("n1", "n2")
    nodes = offer(gpu(), gpus_per_node=1, node_count=2, node_names=names)
    small = served("a", partition="1g.10gb", gpus_per_node=1, resources=TINY)
    large = served("b", partition="3g.40gb", gpus_per_node=1, replicas=1, resources=TINY)
    before = place("chat", "kubernetes", [small], [nodes]).node_pools
    after = place("chat", "kubernetes", [small, large], [nodes], pools_there=before)
    anew = place("chat", "kubernetes", [small, large], [nodes])
    assert [p.node_names for p in (*before, *anew.node_pools)] == [("n1",), ("n1",)]
    (pool,) = after.node_pools
    assert pool.node_names == names
    assert pool.layouts[0] == before[0].layouts[0]
    assert after.cost.usd_per_hour == 2 * (anew.cost.usd_per_hour or 0)
    assert (after.cost.runs_usd_per_hour, after.cost.runs_usd_per_month) == (0, 0)


def test_an_unknown_profile_gets_a_suggestion() -> None:
    placement = placed(served(partition="3g.40g"))
    (problem,) = [d for d in placement.diagnostics if d.severity is Severity.ERROR]
    assert (problem.rule, problem.label) == ("GP042", "did you mean '3g.40gb'?")


@pytest.mark.parametrize("ids", [("1002:74a1",), ("1002:74a1", "1002:74b5"), ()])
def test_a_gpu_that_is_told_by_its_device_has_one_of_them(ids: tuple[str, ...]) -> None:
    """Of several nobody knows which the nodes have."""
    card = gpu("mi300x", vendor="amd", product=None, pci_ids=ids)
    work = served(gpu="mi300x", node_pool="mi300x")
    (pool,) = place("x", "kubernetes", [work], [offer(card)]).node_pools
    assert pool.gpu_product == ("74a1" if len(ids) == 1 else "")


def test_a_machine_of_an_inventory_is_in_one_pool() -> None:
    site = offer(gpu(), node_count=3, node_names=("n1", "n2", "n3"), threads_per_core=2)
    workloads = [served(replicas=5), served("desk", isolation="node", tenant="b")]
    first, second = place("x", "kubernetes", workloads, [site]).node_pools
    assert (first.node_names, second.node_names) == (("n1", "n2"), ("n3",))
    assert first.threads_per_core == 2
    alone = served("own", isolation="node", tenant="a")
    assert errors(place("x", "kubernetes", [*workloads, alone], [site])) == [
        (
            "no room for 'own' (4 GPUs) on the nodes there are: nodes with h100-sxm-80gb: "
            "1 asked, 3 of 3 taken, 1 short"
        )
    ]


def test_a_vm_for_each_workload_needs_a_target_with_vms() -> None:
    own = served(isolation="vm")
    (message,) = errors(placed(own))
    assert message == (
        "workload 'chat' asks for a virtual machine of its own (isolation 'vm'), which target "
        "'kubernetes' does not give"
    )
    assert errors(place("x", "kubevirt", [own], [offer(gpu())])) == []


def test_an_unpriced_pool_is_named_and_never_free() -> None:
    cost = placed(served(), usd_per_gpu_hour=None).cost
    assert (cost.usd_per_hour, cost.unpriced) == (None, ("h100-sxm-80gb",))


def test_tenants_may_use_what_their_workloads_need() -> None:
    first = served("a", tenant="red", replicas=3)
    second = served("b", tenant="red", isolation="node", replicas=1, nodes_per_replica=2)
    third = served("c", tenant="blue", gpus_per_node=1, replicas=1)
    red, blue = placed(first, second, third).tenants
    assert (red.name, red.gpu_quota, red.isolation) == ("red", 6 + 4, "node")
    assert (blue.name, blue.gpu_quota, blue.isolation) == ("blue", 1, "shared")


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(1, 8), st.integers(1, 40), st.integers(1, 500)), max_size=30))
def test_packing_is_sound_and_not_absurd(sizes: list[tuple[int, int, int]]) -> None:
    room = Capacity(gpus=8, cores=40, memory_bytes=500)
    wanted = [
        Item(workload="w", replica=n, part=0, gpus=g, cores=c, memory_bytes=m)
        for n, (g, c, m) in enumerate(sorted(sizes, reverse=True))
    ]
    nodes = len(filled(wanted, room))
    for whole, used in ((8, 0), (40, 1), (500, 2)):
        assert nodes * whole >= sum(s[used] for s in sizes)
    assert nodes <= len(sizes)


# --- MIG ---------------------------------------------------------------------------------------


def legal(instances: Any, gpu_: Gpu) -> bool:
    """The rules of the MIG User Guide, checked by themselves."""
    profiles = {p.name: p for p in gpu_.mig_profiles}
    used: set[int] = set()
    for instance in instances:
        profile = profiles[instance.profile]
        slices = set(range(instance.start, instance.start + instance.size))
        if instance.start not in profile.starts or instance.size != profile.memory_slices:
            return False
        if slices & used:
            return False
        used |= slices
    counts = Counter(i.profile for i in instances)
    return all(n <= profiles[name].maximum for name, n in counts.items())


def profiles_of(names: str, gpu_: Gpu) -> list[MigProfile] | None:
    known = {p.name: p for p in gpu_.mig_profiles}
    wanted = names.split(",")
    return [known[n] for n in wanted] if all(n in known for n in wanted) else None


TABLES = {
    "A100-40GB": "a100-sxm-40gb",
    "A100-80GB": "a100-sxm-80gb",
    "A30-24GB": "a30",
    "H100-80GB-SXM": "h100-sxm-80gb",
    "H100-80GB-PCIe": "h100-pcie-80gb",
    "B200-180GB": "b200-sxm-180gb",
}


def rows() -> Iterator[dict[str, str]]:
    if not LAYOUTS.is_file():
        pytest.skip("the table of legal layouts is not beside this checkout")
    with LAYOUTS.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


@pytest.mark.parametrize("table", TABLES)
def test_every_legal_layout_is_found(table: str) -> None:
    card = load_catalog().gpu(TABLES[table])
    assert card is not None
    listed = [profiles_of(r["layout"], card) for r in rows() if r["gpu"] == table]
    known = [p for p in listed if p is not None]
    assert len(known) >= 19
    for wanted in known:
        found = layout(wanted)
        assert found is not None, [p.name for p in wanted]
        assert legal(found, card)
        assert Counter(i.profile for i in found) == Counter(p.name for p in wanted)


@pytest.mark.parametrize("table", TABLES)
def test_nothing_else_is_legal(table: str) -> None:
    """One more instance of any profile on a maximal layout is refused."""
    card = load_catalog().gpu(TABLES[table])
    assert card is not None
    refused = 0
    for row in rows():
        wanted = profiles_of(row["layout"], card) if row["gpu"] == table else None
        if wanted is None or row["maximal"] != "yes":
            continue
        for extra in card.mig_profiles:
            if "+" not in extra.name:
                assert layout([*wanted, extra]) is None, (row["layout"], extra.name)
                refused += 1
    assert refused > 0


@pytest.mark.parametrize(
    ("names", "starts"),
    [
        ("3g.40gb", [4]),
        ("3g.40gb,3g.40gb", [4, 0]),
        ("1g.10gb,2g.20gb,1g.10gb,3g.40gb", [4, 0, 2, 3]),
        ("4g.40gb,1g.10gb,2g.20gb", [0, 4, 6]),
        ("4g.40gb,3g.40gb", [4, 0]),
        ("4g.40gb,4g.40gb", None),
        ("3g.40gb,4g.40gb,1g.10gb", None),
        ("1g.20gb,1g.20gb,1g.20gb,1g.20gb,1g.10gb", None),
    ],
)
def test_three_slice_instances_come_first_and_leave_the_first_half_whole(
    names: str, starts: list[int] | None
) -> None:
    wanted = profiles_of(names, gpu())
    assert wanted is not None
    found = layout(wanted)
    assert (None if found is None else [i.start for i in found]) == starts


def test_one_instance_a_gpu_has_media_extensions() -> None:
    plain = next(p for p in gpu().mig_profiles if p.name == "1g.10gb")
    extended = replace(plain, name="1g.10gb+me", maximum=1)
    assert layout([extended, plain]) is not None
    assert layout([extended, replace(extended, name="1g.20gb+me")]) is None
    every = replace(plain, name="1g.10gb+me.all", maximum=1)
    assert layout([every, plain]) is None
    assert layout([every, replace(plain, name="1g.10gb-me")]) is not None


def test_every_partition_of_the_catalogue_fills_a_gpu() -> None:
    cards = [load_catalog().gpu(name) for name in load_catalog().gpu_ids]
    profiles = [(card, p) for card in cards if card for p in card.mig_profiles]
    assert profiles
    for card, profile in profiles:
        instances = layout([profile] * profile.maximum)
        assert instances is not None
        assert legal(instances, card)
        assert len(instances) == profile.maximum


@given(
    replicas=st.integers(1, 9),
    gpus=st.sampled_from([1, 2, 4, 8]),
    cores=st.integers(1, 12),
    memory=st.integers(20, 200),
)
def test_what_idle_gpus_would_hold_is_held(
    replicas: int, gpus: int, cores: int, memory: int
) -> None:
    """So many more replicas take no further node, and one more does."""

    def pool(count: int) -> NodePool:
        need = HostResources(
            cpu_cores=cores * gpus,
            host_memory_bytes=memory * gpus * GIB,
            shared_memory_bytes=0,
            scratch_bytes=0,
        )
        work = served(gpus_per_node=gpus, replicas=count, resources=need)
        (made,) = placed(work, node_count=None).node_pools
        return made

    now = pool(replicas)
    assert now.idle_gpus == now.node_count * now.gpus_per_node - replicas * gpus
    if not now.idle_gpus:
        assert now.idle is None
        return
    (room,) = now.room
    assert pool(replicas + room.replicas).node_count == now.node_count
    assert pool(replicas + room.replicas + 1).node_count == now.node_count + 1
    assert now.idle is not None
    assert now.idle.startswith(f"{now.idle_gpus} of {8 * now.node_count} GPUs idle ($")
    assert (f"would hold {room.replicas} more of chat" in now.idle) == (room.replicas > 0)


def test_parts_of_a_gpu_leave_whole_ones_idle_and_hold_more_instances() -> None:
    cut = served(gpus_per_node=1, partition="1g.10gb", replicas=3)
    run = served("run", replicas=1, nodes_per_replica=2, gpus_per_node=4)
    (made,) = placed(cut, run, node_count=None).node_pools
    assert made.node_count == 2
    assert made.idle_gpus == 2 * 8 - 8 - 1
    room = {r.workload: r.replicas for r in made.room}
    assert room["run"] == 0, "GPUs of one node, cut, leave three"
    assert room["chat"] >= 4 + 7, "instances of the GPU that is cut, and of another"


# --- the order in which nodes are filled ---------------------------------------------------------


def asked(workload: str, gpus: int = 1, **changes: Any) -> Ask:
    values: dict[str, Any] = {
        "pool": "p", "kind": "p", "gpu": "h100-sxm-80gb", "partition": None, "replicas": 1,
        "nodes": 1, "cores": 4, "memory_bytes": 8 * GIB,
    }  # fmt: skip
    return Ask(workload=workload, gpus=gpus, **(values | changes))


def test_the_biggest_parts_come_first_and_whole_gpus_before_instances() -> None:
    """Of instances those with most memory, then most of them; else cores, memory, the name."""
    expected = [
        asked("eight", 8),
        asked("cores", cores=5),
        asked("memory", memory_bytes=9 * GIB),
        asked("a", replicas=2, nodes=2),
        asked("b"),
        asked("big", partition="7g.80gb"),
        asked("more", 2, partition="1g.10gb"),
        asked("one", partition="1g.10gb"),
    ]
    ordered = items(reversed(expected), gpu())
    names = ["eight", "cores", "memory", "a", "a", "a", "a", "b", "big", "more", "one"]
    assert [i.workload for i in ordered] == names
    assert [(i.replica, i.part) for i in ordered[3:7]] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [i.profile and i.profile.name for i in ordered[7:]] == [
        None, "7g.80gb", "1g.10gb", "1g.10gb",
    ]  # fmt: skip


def test_what_is_smaller_goes_to_the_first_node_that_still_holds_it() -> None:
    """Nodes of eight GPUs: two with six, of which one has no cores left; then twos and ones."""
    room = Capacity(gpus=8, cores=40, memory_bytes=64 * GIB)
    asks = [asked("six", 6, cores=36), asked("large", 6, cores=20, memory_bytes=40 * GIB)]
    asks += [asked("two", 2, cores=8, replicas=3), asked("one", 1, cores=4, replicas=2)]
    nodes = filled(items(asks, gpu()), room)
    held = [sorted(name for name, _ in node.replicas) for node in nodes]
    assert held == [["one", "six"], ["large", "two"], ["one", "two", "two"]]
    left = [(node.gpus, node.cores, node.memory_bytes) for node in nodes]
    assert left == [(1, 0, 48 * GIB), (0, 12, 16 * GIB), (3, 20, 40 * GIB)]
