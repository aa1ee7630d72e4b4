"""Guests on their hosts, counted by hand: NUMA nodes, cards, huge pages, shares of GPUs."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from gpuplan.findings import Verdict
from gpuplan.plan.model import GuestDevice, Partition, Plan
from gpuplan.policy.packs import Pack, builtin_pack
from gpuplan.units import GB, GIB, KIB, MIB
from tests.support.policy_samples import (
    alternative,
    judge,
    with_cell,
    with_machine,
    with_memory,
    with_pool,
    with_workload,
)
from tests.support.samples import (
    libvirt_plan,
    serving_plan,
    serving_pool,
    serving_workload,
    training_plan,
)

NEAR, FAR = "0000:f0:00.0", "0000:f1:00.0"  # a card on each node; the GPUs are on node 0


def told(plan: Plan, rule: str, pack: Pack | None = None) -> list[Verdict]:
    return [v for v in judge(plan, pack=pack) if v.rule == rule]


def without_gpus(name: str, host: str, *devices: GuestDevice) -> Plan:
    """The plan with another guest of the same work, that has these devices."""
    plan = libvirt_plan()
    guest = replace(plan.virtual_machines[0], name=name, host=host, devices=devices)
    return replace(plan, virtual_machines=(*plan.virtual_machines, guest))


def functions(card: str, count: int) -> tuple[GuestDevice, ...]:
    device = replace(libvirt_plan().virtual_machines[0].devices[0], kind="nic", parent=card)
    return tuple(
        replace(device, name=f"nic{9 + n}", group=9 + n, address=f"{card[:-1]}{n + 1}")
        for n in range(count)
    )


def with_card(plan: Plan, parent: str | None, near: int, far: int) -> Plan:
    """Cards of so many functions on host hv-01; gpu0 has a function of `parent` beside it."""
    host, machine = plan.hosts[0], plan.virtual_machines[0]
    cards = tuple(
        replace(
            host.devices[0],
            kind="nic",
            address=address,
            numa_node=node,
            virtual_functions=count,
        )
        for node, (address, count) in enumerate(((NEAR, near), (FAR, far)))
    )
    gpus = tuple(d for d in host.devices if d.kind == "gpu")
    own = replace(
        machine.devices[0], name="nic0", kind="nic", parent=parent, address="0000:f1:00.7"
    )
    return with_machine(
        replace(plan, hosts=(replace(host, devices=(*gpus, *cards)),)),
        devices=(*machine.devices, own),
    )


@pytest.mark.parametrize("near", range(4))
@pytest.mark.parametrize("taken", range(4))
def test_a_card_beside_the_gpu_is_better_where_guests_have_some_of_it_and_not_all(
    near: int, taken: int
) -> None:
    plan = with_card(without_gpus("other", "hv-01", *functions(NEAR, taken)), FAR, near, 9)
    found = told(plan, "GP305")
    assert len(found) == (0 < taken < near)
    for verdict in found:
        assert verdict.path == "virtual_machines[tune-0].devices[nic0]"
        assert verdict.message.endswith(
            f"nic0 is of a card on node 1, gpu0 on node 0, where {NEAR} has a function left"
        )


def test_what_guests_elsewhere_have_of_a_card_of_that_address_does_not_count() -> None:
    elsewhere = without_gpus("other", "hv-02", *functions(NEAR, 1))
    assert told(with_card(elsewhere, FAR, 2, 9), "GP305") == []


@pytest.mark.parametrize("parent", [NEAR, "0000:aa:00.0", None])
def test_a_card_beside_the_gpu_or_of_an_unknown_node_is_no_finding(parent: str | None) -> None:
    plan = with_card(without_gpus("other", "hv-01", *functions(NEAR, 1)), parent, 4, 4)
    assert told(plan, "GP305") == []


def test_a_vgpu_is_where_its_gpu_is() -> None:
    plan = libvirt_plan()
    (machine,) = plan.virtual_machines
    for bus, place in (("1b", None), ("9d", "gpu0 is on node 1")):
        part = replace(
            machine.devices[0],
            kind="vgpu",
            address=f"0000:{bus}:00.4",
            parent=f"0000:{bus}:00.0",
        )
        found = told(with_machine(plan, devices=(part, *machine.devices[1:])), "GP305")
        assert [place in v.message for v in found if place] == ([True] if place else [])
        assert bool(found) == bool(place)
    lost = replace(machine.devices[0], kind="vgpu", address="0000:1b:00.4", parent="0000:77:00.0")
    [found_lost] = told(with_machine(plan, devices=(lost,)), "GP305")
    assert found_lost.message.endswith("0000:1b:00.4 is not on hv-01")


def test_a_gpu_whose_cell_the_guest_does_not_have_is_told() -> None:
    plan = libvirt_plan()
    devices = tuple(replace(d, cell=3) for d in plan.virtual_machines[0].devices[:1])
    found = [
        v.message.partition(": ")[2] for v in told(with_machine(plan, devices=devices), "GP305")
    ]
    assert found == [
        "cell 0 is on node 0, where the VM has no GPU",
        "gpu0 is on node 0, its vCPUs and memory on no cell",
    ]


def test_the_cores_that_a_host_keeps_may_serve_and_no_others() -> None:
    """Node 0 keeps none: those that node 1 keeps serve its guests."""
    plan = libvirt_plan()
    (host,) = plan.hosts
    bare = replace(
        host, numa_nodes=(replace(host.numa_nodes[0], reserved_cores=()), host.numa_nodes[1])
    )
    kept = host.numa_nodes[1].reserved_cores[0].cpus[0]
    for numa, cpu, count in ((host, kept, 1), (bare, kept, 0), (bare, kept + 2, 1)):
        for role in ("emulator_cpus", "iothread_cpus"):
            made = with_cell(replace(plan, hosts=(numa,)), **{role: (cpu,)})
            assert len(told(made, "GP305")) == count, (role, cpu)
    pins = (replace(plan.virtual_machines[0].cells[0].pins[0], cpu=kept),)
    assert len(told(with_cell(replace(plan, hosts=(bare,)), pins=pins), "GP305")) == 1


@pytest.mark.parametrize(
    ("page", "huge"), [(4 * KIB, False), (64 * KIB, False), (MIB, False), (2 * MIB, True)]
)
def test_pages_are_huge_from_two_mebibytes_on(page: int, huge: bool) -> None:
    plan = libvirt_plan()
    numa = tuple(replace(n, hugepages=2**30) for n in plan.hosts[0].numa_nodes)
    host = replace(plan.hosts[0], hugepage_bytes=page, numa_nodes=numa)
    found = told(with_machine(replace(plan, hosts=(host,)), hugepage_bytes=page), "GP307")
    assert [v.message.endswith("but no huge pages") for v in found] == ([] if huge else [True])


def test_a_machine_without_passed_through_devices_needs_no_huge_pages() -> None:
    plan = with_machine(libvirt_plan(), hugepage_bytes=4 * KIB, devices=())
    assert told(plan, "GP307") == []
    nic = libvirt_plan().virtual_machines[0].devices[:1]
    assert len(told(with_machine(plan, devices=(replace(nic[0], kind="nic"),)), "GP307")) == 1


def test_pages_of_a_node_are_of_all_its_guests_of_that_size() -> None:
    """By node: 512 GiB of tune-0, 200 of b, 100 of a, which also has 50 on the other; what has
    small pages, or is on another host, takes none."""
    plan = libvirt_plan()
    (machine,), (host,) = plan.virtual_machines, plan.hosts

    def guest(name: str, sizes: dict[int, int], **changes: object) -> object:
        cells = tuple(
            replace(machine.cells[0], cell=n, host_node=n, memory_bytes=size * GIB)
            for n, size in sizes.items()
        )
        total = sum(sizes.values()) * GIB
        return replace(machine, name=name, cells=cells, memory_bytes=total, **changes)

    guests = (
        machine,
        guest("b", {0: 200}),
        guest("a", {0: 100, 1: 50}),
        guest("small", {0: 8}, hugepage_bytes=4 * KIB),
        guest("away", {0: 300}, host="hv-02"),
    )

    def said(first: int, second: int) -> list[tuple[str, float | None, float | None, str]]:
        numa = tuple(
            replace(n, hugepages=pages)
            for n, pages in zip(host.numa_nodes, (first, second), strict=True)
        )
        made = replace(plan, virtual_machines=guests, hosts=(replace(host, numa_nodes=numa),))
        found = [v for v in told(made, "GP307") if v.resource.startswith("host/")]
        return [
            (v.path.partition(".")[2], v.requested, v.capacity, v.message.partition("; ")[2])
            for v in found
        ]

    assert said(812, 50) == []
    assert said(811, 50) == [
        ("numa_nodes[0].hugepages", 812 * GIB, 811 * GIB, "a, b, tune-0 need 812 GiB")
    ]
    assert said(812, 49) == [("numa_nodes[1].hugepages", 50 * GIB, 49 * GIB, "a need 50 GiB")]


# --- shares of GPUs -------------------------------------------------------------------------------


def shared(count: int, *, whole: int = 0, listed: bool = True, size: int = 20 * GIB) -> Plan:
    """A guest with so many quarters of GPUs of 80 GiB, and so many whole ones."""
    layout = Partition(
        kind="vgpu", name="quarter", count=32, per_gpu=4, memory_bytes=size, resource="vgpu"
    )
    plan = with_pool(
        libvirt_plan(), gpu_memory_bytes=80 * GIB, partitions=(layout,) if listed else ()
    )
    plan = with_workload(plan, partition="quarter")
    plan = with_memory(
        plan,
        **dict.fromkeys(("weights_bytes", "activations_bytes", "optimizer_bytes"), GIB),
        capacity_bytes=size,
        usable_bytes=size,
    )
    device = plan.virtual_machines[0].devices[0]
    parts = tuple(replace(device, name=f"v{n}", kind="vgpu") for n in range(count))
    gpus = tuple(replace(device, name=f"g{n}", kind="gpu") for n in range(whole))
    return with_machine(plan, devices=(*gpus, *parts))


def with_cores(plan: Plan, cores: int) -> Plan:
    pins = libvirt_plan().virtual_machines[0].cells[0].pins
    extra = tuple(replace(p, vcpu=p.vcpu + 64) for p in pins)
    return with_cell(plan, pins=(*pins, *extra)[: 2 * cores])


def with_size(plan: Plan, size: int) -> Plan:
    return with_cell(with_machine(plan, memory_bytes=size), memory_bytes=size)


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize(
    ("count", "whole", "least", "most"),
    [
        (1, 0, 1, None),  # less than a GPU may have any number
        (2, 0, 2, None),
        (3, 0, 3, None),
        (4, 0, 4, 8),
        (5, 0, 5, 10),
        (0, 1, 4, 8),
        (1, 1, 5, 10),
        (3, 2, 11, 22),
    ],
)
def test_cores_of_a_guest_are_counted_by_its_whole_gpus_and_shares(
    listed: bool, count: int, whole: int, least: int, most: int | None
) -> None:
    plan = shared(count, whole=whole, listed=listed)
    for cores, few, many in (
        (least - 1, True, False),
        (least, False, False),
        (most or 30, False, False),
        ((most or 30) + 1, False, most is not None),
    ):
        made = with_cores(plan, cores)
        assert (bool(told(made, "GP301")), bool(told(made, "GP302"))) == (few, many), cores


def test_a_partition_as_large_as_a_gpu_is_one() -> None:
    """Where the pool lists none it is as large as what the workload counts on."""
    for size, least in ((41, 4), (40, 2), (80, 4), (79, 4), (90, 4)):
        plan = shared(1, listed=False, size=size * GIB)
        assert told(with_cores(plan, least), "GP301") == [], size
        assert len(told(with_cores(plan, least - 1), "GP301")) == 1, size


@pytest.mark.parametrize("listed", [True, False])
def test_host_memory_of_a_guest_is_held_to_that_of_its_gpus_and_shares(listed: bool) -> None:
    plan = shared(3, whole=1, listed=listed, size=20 * GIB)
    needed = (80 + 3 * 20) * GIB
    assert told(with_size(plan, needed), "GP304") == []
    [found] = told(with_size(plan, needed - GIB), "GP304")
    assert (found.requested, found.capacity) == (needed, needed - GIB)
    small = with_pool(plan, gpu_memory_bytes=GIB)
    least = -(-32 * GB * 7 // 4)  # of one GPU and three quarters
    if listed:
        [found] = told(with_size(small, least - 1), "GP303")
        assert (found.requested, found.capacity) == (least, least - 1)
        assert found.message.partition("; ")[2] == "32 GB is the floor"
        assert told(with_size(small, least), "GP303") == []


@pytest.mark.parametrize(
    ("tasks", "level"),
    [
        (("inference",), "info"),
        (("finetuning",), "warning"),
        (("training", "inference"), "warning"),
        (("batch", "notebook"), "info"),
        ((), "info"),
    ],
)
def test_memory_beside_gpus_matters_more_where_something_trains(
    tasks: tuple[str, ...], level: str
) -> None:
    """On the pool itself: what trains elsewhere does not count."""
    own = [serving_workload(name=task, task=task) for task in tasks]
    away = serving_workload(name="away", task="training", node_pool="away")
    pools = (serving_pool(memory_bytes=500 * GIB), serving_pool(name="away"))
    found = told(serving_plan(workloads=(*own, away), node_pools=pools), "GP304")
    assert [(v.resource, v.severity.value) for v in found] == [("node_pool/h100-sxm-80gb", level)]


def test_host_memory_is_held_to_the_part_of_the_gpus_that_a_pack_names() -> None:
    half = builtin_pack()
    setting = replace(half["GP304"], thresholds={"percent_of_gpu_memory": 50})
    half = Pack({**half.settings, "GP304": setting})
    needed = 4 * 79 * GIB
    assert told(with_pool(training_plan(), memory_bytes=needed), "GP304", half) == []
    [found] = told(with_pool(training_plan(), memory_bytes=needed - 1), "GP304", half)
    assert (found.requested, found.capacity) == (needed, needed - 1)


def test_a_cheaper_shape_is_one_of_the_pools_own_work_and_gpu() -> None:
    cheaper = alternative("17.00", gpu="h100-sxm-80gb")
    plan = serving_plan()
    assert len(told(with_workload(plan, alternatives=(cheaper,)), "GP302")) == 1
    other = with_workload(plan, alternatives=(alternative("17.00", gpu="l40s"),))
    assert told(other, "GP302") == []
    away = serving_workload(name="away", node_pool="away", alternatives=(cheaper,))
    pools = (*plan.node_pools, serving_pool(name="away", cpu_cores=64))
    plan = replace(plan, workloads=(*plan.workloads, away), node_pools=pools)
    assert told(plan, "GP302") == []
    equal = with_workload(serving_plan(), usd_per_hour=Decimal(17), alternatives=(cheaper,))
    assert told(equal, "GP302") == []


def test_only_gpus_make_a_guest_one_that_feeds_them() -> None:
    plan = libvirt_plan()
    nic = replace(plan.virtual_machines[0].devices[0], kind="nic")
    bare = with_cores(with_machine(plan, devices=(nic,)), 1)
    assert told(bare, "GP301") == []
