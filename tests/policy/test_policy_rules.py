"""Each rule fires on its mistake and on nothing else, at its threshold and not before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gpuplan.findings import Verdict
from gpuplan.plan.model import (
    ClusterJoin,
    Estimate,
    Evidence,
    Flip,
    GuestCell,
    Metric,
    Parallelism,
    Partition,
    Plan,
)
from gpuplan.plan.outside.cloud import Cloud, Release
from gpuplan.plan.read import read_plan
from gpuplan.policy.document import sections
from gpuplan.policy.engine import EVERY
from gpuplan.policy.packs import builtin_pack
from gpuplan.policy.rules.spare import used_gpus
from gpuplan.units import GB, GIB, KIB, TIB
from tests.support.policy_samples import (
    TODAY,
    alternative,
    fired,
    judge,
    rules,
    with_cell,
    with_cost,
    with_machine,
    with_memory,
    with_pool,
    with_workload,
)
from tests.support.samples import (
    estimate,
    libvirt_plan,
    sample_vm,
    serving_plan,
    serving_workload,
    training_plan,
)

PLANS: dict[str, Callable[[], Plan]] = {
    "serving": serving_plan,
    "training": training_plan,
    "libvirt": libvirt_plan,
}

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", PLANS)
def test_a_sound_plan_passes(name: str) -> None:
    assert fired(PLANS[name]()) == []


def per_request(plan: Plan, size: float) -> Plan:
    """A request holds `size` bytes of cache: 1,000 tokens of a thousandth each."""
    values = {"kv_cache_bytes": size * 8, "kv_cache_tokens": 8000, "tokens_per_request": 1000}
    needed = (
        Evidence(quantity=f"assistant.{name}", value=value, unit="1", formula="", source="")
        for name, value in values.items()
    )
    return replace(plan, evidence=(*plan.evidence, *needed))


def two_hosts_nodes(plan: Plan) -> Plan:
    """The VM's second half of memory on the other socket, away from its GPUs."""
    first = replace(plan.virtual_machines[0].cells[0], memory_bytes=256 * GIB)
    second = GuestCell(
        cell=1, host_node=1, pins=(), memory_bytes=256 * GIB, emulator_cpus=(), iothread_cpus=()
    )
    return with_machine(plan, cells=(first, second))


def on_node(plan: Plan, node: int) -> Plan:
    """The first GPU of the host is behind another socket than the inventory says."""
    host = plan.hosts[0]
    gpu = replace(host.devices[0], numa_node=node)
    return replace(plan, hosts=(replace(host, devices=(gpu, *host.devices[1:])),))


def with_cards(plan: Plan, functions: int) -> Plan:
    """A card of `functions` functions on each node; two GPUs of the guest have one of their own
    node's card, the third has the other's."""
    (host,), (machine,) = plan.hosts, plan.virtual_machines
    cards = [
        replace(
            host.devices[0],
            kind="nic",
            model="connectx-7",
            address=f"0000:f{node}:00.0",
            numa_node=node,
            iommu_group=None,
            switch=None,
            virtual_functions=functions,
        )
        for node in (0, 1)
    ]
    gpus = [d for d in machine.devices if d.kind == "gpu"]
    nics = [
        replace(
            gpu,
            name=f"nic{gpu.group}",
            kind="nic",
            address=f"0000:f{node}:00.{number + 1}",
            parent=cards[node].address,
        )
        for number, (gpu, node) in enumerate(zip(gpus, (0, 0, 1), strict=False))
    ]
    host = replace(host, devices=(*host.devices, *cards))
    return with_machine(replace(plan, hosts=(host,)), devices=(*machine.devices, *nics))


def far_card(plan: Plan) -> Plan:
    return with_cards(plan, 3)


def test_a_far_card_that_was_not_avoidable_is_no_finding() -> None:
    assert "GP305" not in fired(with_cards(PLANS["libvirt"](), 2))


def with_pages(plan: Plan, pages: int) -> Plan:
    host = plan.hosts[0]
    nodes = (replace(host.numa_nodes[0], hugepages=pages), host.numa_nodes[1])
    return replace(plan, hosts=(replace(host, numa_nodes=nodes),))


def with_component(plan: Plan, version: str) -> Plan:
    return replace(plan, components=(replace(plan.components[0], version=version),))


def with_image(plan: Plan, image: str) -> Plan:
    return with_workload(plan, engine=replace(plan.workloads[0].engine, image=image))


def one_replica(plan: Plan, low: float) -> Plan:
    """One replica that serves at least `low` tenths of what is asked, on all GPUs of its node."""
    rate = Metric(
        name="requests_per_second",
        unit="1/s",
        estimate=Estimate(value=low, low=low / 10, high=low, basis="derived"),
        limit=1.0,
        sense="at_least",
    )
    plan = with_workload(plan, replicas=1, gpus_per_node=8, metrics=(rate,), concurrency=1)
    return with_pool(plan, node_count=1)


def with_first_token(plan: Plan, *, accepted: bool) -> Plan:
    """A time to first token that misses its limit."""
    metric = Metric(
        name="time_to_first_token",
        statistic="p95",
        unit="s",
        estimate=Estimate(value=1.4, low=1.1, high=1.9, basis="extrapolated"),
        limit=1.0,
        probability=0.02,
        accepted_miss=True if accepted else None,
    )
    return with_workload(plan, metrics=(metric,))


def with_join(plan: Plan) -> Plan:
    """Another host with a guest of the same workload, which becomes a node."""
    host, guest = plan.hosts[0], plan.virtual_machines[0]
    join = ClusterJoin(kind="slurm", server="slurm-01:6817")
    hosts = (*plan.hosts, replace(host, name="hv-9", join=join))
    guests = (*plan.virtual_machines, replace(guest, name="tune-9", host="hv-9"))
    return replace(plan, hosts=hosts, virtual_machines=guests)


def with_gpus(plan: Plan, used: int) -> Plan:
    return with_workload(plan, replicas=1, gpus_per_node=used, parallelism=Parallelism())


def with_cloud(plan: Plan, days: int) -> Plan:
    """On a cluster whose release is in standard support for so many days more."""
    until = TODAY + timedelta(days=days)
    release = Release(
        version="1.35",
        standard_until=until.isoformat(),
        extended_until="2099-01-01",
        source="sample",
    )
    cloud = Cloud(
        provider="aws",
        zones=("us-east-1a", "us-east-1b"),
        scaling="fixed",
        release=release,
        driver_on_nodes=True,
        groups=(),
    )
    return replace(plan, cloud=cloud)


MUTATIONS: dict[str, tuple[Callable[[Plan], Plan], str, set[str]]] = {
    "a guest that joins beside one that does not": (with_join, "libvirt", {"GP312"}),
    "a run that counts on one rack's NVLink": (
        lambda p: with_workload(p, one_domain=True),
        "training",
        {"GP313"},
    ),
    "a release near its end": (lambda p: with_cloud(p, 30), "serving", {"GP607"}),
    "a smaller GPU": (lambda p: with_pool(p, gpu_memory_bytes=24 * GIB), "serving", {"GP101"}),
    "heavier weights": (lambda p: with_memory(p, weights_bytes=46 * GIB), "serving", {"GP101"}),
    "over the engine's share": (
        lambda p: with_memory(p, weights_bytes=37 * GIB),
        "serving",
        {"GP101", "GP102"},
    ),
    "a greedy engine": (
        lambda p: with_memory(p, usable_bytes=76 * GIB),
        "serving",
        {"GP102"},
    ),
    "a GPU for a tenth of its work": (lambda p: one_replica(p, 99), "serving", {"GP202"}),
    "one GPU of eight": (lambda p: with_gpus(p, 1), "serving", {"GP203"}),
    "a full training step": (
        lambda p: with_memory(p, activations_bytes=57 * GIB),
        "training",
        {"GP102"},
    ),
    "more requests than the engine admits": (
        lambda p: with_workload(p, concurrency=385),
        "serving",
        {"GP103"},
    ),
    "a cache that is too small": (lambda p: per_request(p, 1 * GIB), "serving", {"GP103"}),
    "layers split over two nodes": (
        lambda p: with_workload(
            p, parallelism=Parallelism(tensor_parallel_size=16), gpus_per_node=8
        ),
        "serving",
        {"GP105"},
    ),
    "layers split over PCIe": (
        lambda p: with_pool(
            with_workload(p, parallelism=Parallelism(tensor_parallel_size=8), gpus_per_node=8),
            interconnect="pcie",
            interconnect_bytes_per_s=64 * GB,
        ),
        "serving",
        {"GP105"},
    ),
    "a cheaper GPU does it": (
        lambda p: with_workload(p, alternatives=(alternative("9.00"),)),
        "serving",
        {"GP201"},
    ),
    "half the budget": (
        lambda p: with_cost(p, budget_usd_per_hour=Decimal(30)),
        "serving",
        {"GP204"},
    ),
    "no price": (
        lambda p: with_cost(p, usd_per_hour=None, unpriced=("h100-sxm-80gb",)),
        "serving",
        {"GP204"},
    ),
    "an old price": (
        lambda p: with_cost(p, price_date="2025-01-31"),
        "serving",
        {"GP206"},
    ),
    "an accepted miss": (lambda p: with_first_token(p, accepted=True), "serving", {"GP205"}),
    "few cores": (lambda p: with_pool(p, cpu_cores=24), "serving", {"GP301"}),
    "a core a GPU": (lambda p: with_pool(p, cpu_cores=8), "serving", {"GP301"}),
    "a VM with half its cores": (
        lambda p: with_cell(p, pins=p.virtual_machines[0].cells[0].pins[:24]),
        "libvirt",
        {"GP301"},
    ),
    "many cores and a cheaper shape": (
        lambda p: with_workload(p, alternatives=(alternative("17.00", gpu="h100-sxm-80gb"),)),
        "serving",
        {"GP302"},
    ),
    "a VM with one GPU of four": (
        lambda p: with_machine(p, devices=p.virtual_machines[0].devices[:1]),
        "libvirt",
        {"GP302"},
    ),
    "little host memory": (
        lambda p: with_pool(p, memory_bytes=100 * GB),
        "training",
        {"GP303", "GP304"},
    ),
    "less host memory than GPU memory": (
        lambda p: with_pool(p, memory_bytes=500 * GIB),
        "training",
        {"GP304"},
    ),
    "a GPU on the other socket": (lambda p: on_node(p, 1), "libvirt", {"GP305"}),
    "an avoidable card on the other socket": (far_card, "libvirt", {"GP305"}),
    "memory on the other socket": (two_hosts_nodes, "libvirt", {"GP305"}),
    "vCPUs on the other socket": (
        lambda p: with_cell(p, emulator_cpus=(56,)),
        "libvirt",
        {"GP305"},
    ),
    "too few huge pages": (lambda p: with_pages(p, 511), "libvirt", {"GP307"}),
    "no huge pages": (lambda p: with_machine(p, hugepage_bytes=4 * KIB), "libvirt", {"GP307"}),
    "other huge pages": (
        lambda p: with_machine(p, hugepage_bytes=2 * 1024 * KIB),
        "libvirt",
        {"GP307"},
    ),
    "a page cut in two": (
        lambda p: with_cell(
            with_machine(p, memory_bytes=512 * GIB - 1), memory_bytes=512 * GIB - 1
        ),
        "libvirt",
        {"GP307"},
    ),
    "cells that do not add up": (
        lambda p: with_machine(p, memory_bytes=511 * GIB),
        "libvirt",
        {"GP307"},
    ),
    "a chart range": (lambda p: with_component(p, "^26.3"), "serving", {"GP601"}),
    "an untested version": (
        lambda p: replace(p, components=(replace(p.components[0], untested="no other there"),)),
        "serving",
        {"GP605"},
    ),
    "a moving image": (lambda p: with_image(p, "vllm/vllm-openai"), "serving", {"GP602"}),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mistake_fires_its_rule_only(name: str) -> None:
    mutate, plan, expected = MUTATIONS[name]
    assert rules(judge(mutate(PLANS[plan]()))) == expected


def test_every_rule_over_the_plan_has_a_mutation() -> None:
    over_files = {"GP306", "GP310", "GP311", "GP606", "GP701", "GP702", "GP904"}
    tested = set[str]().union(*(expected for _, _, expected in MUTATIONS.values()))
    assert tested | over_files == {r.identifier for r in EVERY} - {"GP901", "GP902", "GP903"}


@pytest.mark.parametrize("name", MUTATIONS)
def test_order_and_neighbours_do_not_matter(name: str) -> None:
    mutate, base, _ = MUTATIONS[name]
    plan = mutate(PLANS[base]())
    pool = replace(plan.node_pools[0], name="other", cpu_cores=48, memory_bytes=2 * TIB)
    neighbour = serving_workload(name="neighbour", node_pool="other")
    desk = replace(neighbour, name="desk", task="notebook", serving=None, usd_per_hour=None)
    plain = replace(sample_vm(), name="plain", workload="desk", host="elsewhere", devices=())
    sound = {"cpu_cores": 48, "interconnect_bytes_per_s": 450 * GB, "gpu_memory_bytes": 79 * GIB}
    more = replace(
        plan,
        workloads=(desk, neighbour, *reversed(plan.workloads)),
        node_pools=(replace(pool, **sound), *reversed(plan.node_pools)),
        virtual_machines=(plain, *reversed(plan.virtual_machines)),
        hosts=tuple(reversed(plan.hosts)),
        evidence=tuple(reversed(plan.evidence)),
    )
    assert {v.fingerprint for v in judge(more)} == {v.fingerprint for v in judge(plan)}


def headroom(task: str, free: int) -> Plan:
    """1,000 GiB of which `free` are free."""
    plan = serving_plan() if task == "inference" else training_plan()
    memory = replace(
        plan.workloads[0].memory,
        weights_bytes=(1000 - free) * GIB,
        gradients_bytes=0,
        optimizer_bytes=0,
        activations_bytes=0,
        kv_cache_bytes=0,
        overhead_bytes=0,
        capacity_bytes=1000 * GIB,
        usable_bytes=(1000 - free) * GIB,
    )
    roomy = with_pool(plan, gpu_memory_bytes=1000 * GIB, memory_bytes=9 * TIB)
    return with_workload(roomy, memory=memory)


def machine_cores(cores: int) -> Plan:
    plan = libvirt_plan()
    pins = plan.virtual_machines[0].cells[0].pins
    extra = tuple(replace(p, vcpu=p.vcpu + 64) for p in pins)
    return with_cell(plan, pins=(*pins, *extra)[: 2 * cores])


def machine_memory(gigabytes: int) -> Plan:
    """Four GPUs of 4 GiB, so that only the floor counts; pages of 1 GB."""
    plan = with_pool(libvirt_plan(), gpu_memory_bytes=4 * GIB)
    small = replace(
        plan.workloads[0].memory,
        **dict.fromkeys(("weights_bytes", "optimizer_bytes", "activations_bytes"), 0),
    )
    plan = with_workload(plan, memory=small)
    size = 4 * gigabytes * GB
    return with_cell(
        with_machine(plan, memory_bytes=size, hugepage_bytes=4 * KIB), memory_bytes=size
    )


def tensor_parallel(size: int, link: int) -> Plan:
    plan = with_workload(
        serving_plan(), parallelism=Parallelism(tensor_parallel_size=size), gpus_per_node=size
    )
    return with_pool(plan, interconnect_bytes_per_s=link)


BOUNDARIES: list[tuple[str, Callable[[int], Plan], tuple[tuple[int, str | None], ...]]] = [
    (
        "GP607",
        lambda n: with_cloud(serving_plan(), n),
        ((-1, "error"), (0, "warning"), (89, "warning"), (90, None), (91, None)),
    ),
    ("GP102", lambda n: headroom("inference", n), ((99, "error"), (100, None), (101, None))),
    ("GP102", lambda n: headroom("training", n), ((149, "error"), (150, None), (151, None))),
    (
        "GP101",
        lambda n: with_memory(serving_plan(), weights_bytes=36 * GIB + n),
        ((-1, None), (0, None), (1, "error")),
    ),
    (
        "GP103",
        lambda n: with_workload(serving_plan(), concurrency=n),
        ((383, None), (384, None), (385, "warning")),
    ),
    (
        "GP103",
        lambda n: per_request(serving_plan(), 30 * GIB // 43 + n),
        ((-1, None), (0, None), (1, "warning")),
    ),
    (
        "GP105",
        lambda n: tensor_parallel(4, 100 * GB + n),
        ((-1, "warning"), (0, None), (1, None)),
    ),
    (
        "GP313",
        lambda n: with_pool(
            with_workload(training_plan(), one_domain=True, nodes_per_replica=3), nvlink_nodes=n
        ),
        ((2, "error"), (3, None), (4, None)),
    ),
    ("GP105", lambda n: tensor_parallel(n, 32 * GB), ((1, None), (2, None), (3, "warning"))),
    (
        "GP105",
        lambda n: with_workload(
            serving_plan(), parallelism=Parallelism(tensor_parallel_size=n), gpus_per_node=8
        ),
        ((7, None), (8, None), (9, "error")),
    ),
    (  # 17.70 an hour; 30 % of it are 5.31
        "GP201",
        lambda n: with_workload(
            serving_plan(),
            alternatives=(alternative(f"12.{39 - n:02}"),),
            usd_per_hour=Decimal("17.70"),
        ),
        ((-1, None), (0, None), (1, "error")),
    ),
    (
        "GP204",
        lambda n: with_cost(serving_plan(), budget_usd_per_hour=Decimal(4720 + n) / 100),
        ((-1, "error"), (0, None), (1, None)),
    ),
    (
        "GP206",
        lambda n: with_cost(
            serving_plan(), price_date=(TODAY - timedelta(days=180 + n)).isoformat()
        ),
        ((-1, None), (0, None), (1, "info")),
    ),
    (
        "GP301",
        lambda n: with_pool(serving_plan(), cpu_cores=n),
        ((15, "error"), (16, "warning"), (17, "warning"), (31, "warning"), (32, None), (33, None)),
    ),
    ("GP301", machine_cores, ((15, "error"), (16, None), (17, None))),
    ("GP302", machine_cores, ((31, None), (32, None), (33, "error"))),
    (
        "GP302",
        lambda n: with_pool(
            with_workload(serving_plan(), alternatives=(alternative("17", gpu="h100-sxm-80gb"),)),
            cpu_cores=n,
        ),
        ((63, None), (64, None), (65, "info")),
    ),
    (
        "GP303",
        lambda n: with_pool(serving_plan(), memory_bytes=8 * 16 * GB + n),
        ((-1, "error"), (0, "warning"), (1, "warning")),
    ),
    (
        "GP303",
        lambda n: with_pool(serving_plan(), memory_bytes=8 * 32 * GB + n),
        ((-1, "warning"), (0, None), (1, None)),
    ),
    ("GP303", machine_memory, ((15, "error"), (16, "warning"), (31, "warning"), (32, None))),
    (
        "GP304",
        lambda n: with_pool(training_plan(), memory_bytes=8 * 79 * GIB + n),
        ((-1, "warning"), (0, None), (1, None)),
    ),
    (
        "GP304",
        lambda n: with_pool(serving_plan(), memory_bytes=8 * 79 * GIB + n),
        ((-1, "info"), (0, None), (1, None)),
    ),
    (
        "GP202",
        lambda n: one_replica(serving_plan(), n),
        ((39, None), (40, None), (41, "warning")),
    ),
    (
        "GP203",
        lambda n: with_gpus(serving_plan(), n),
        ((6, None), (5, None), (4, "warning")),
    ),
    ("GP307", lambda n: with_pages(libvirt_plan(), n), ((511, "error"), (512, None), (513, None))),
    (
        "GP307",
        lambda n: with_cell(
            with_machine(libvirt_plan(), memory_bytes=64 * GIB + n, hugepage_bytes=4 * KIB),
            memory_bytes=64 * GIB + n,
        ),
        ((-1, None), (0, "error"), (1, "error")),
    ),
]


@pytest.mark.parametrize(
    ("rule", "make", "value", "severity"),
    [(r, make, v, s) for r, make, points in BOUNDARIES for v, s in points],
)
def test_boundaries(
    rule: str, make: Callable[[int], Plan], value: int, severity: str | None
) -> None:
    found = [v.severity.value for v in judge(make(value)) if v.rule == rule]
    assert found == ([severity] if severity else [])


def test_a_cheaper_candidate_that_failed_a_gate_is_no_alternative() -> None:
    rejected = alternative("1.00", gate="time_per_output_token")
    unpriced = alternative(None)
    dearer = alternative("99.00")
    assert fired(with_workload(serving_plan(), alternatives=(rejected, unpriced, dearer))) == []


def test_runs_that_end_are_compared_by_their_whole_cost() -> None:
    """A candidate that costs half an hour but takes thrice as long is dearer."""

    def flip(needed: float) -> Flip:
        return Flip(quantity="usd_per_gpu_hour", now=2.0, needed=needed, unit="USD/h")

    plan = with_workload(training_plan(), usd_per_hour=Decimal(40))
    slow = alternative("20", flip=flip(1.0))
    assert fired(with_workload(plan, alternatives=(slow,))) == []
    assert fired(with_workload(plan, alternatives=(alternative("20"),))) == []
    (verdict,) = judge(with_workload(plan, alternatives=(slow, alternative("50", flip=flip(5.0)))))
    assert (verdict.rule, verdict.usd_per_hour) == ("GP201", 24.0)
    assert "saves $17,520 a month (60 %)" in verdict.message


def test_what_a_run_saves_is_of_the_run_and_not_of_a_month() -> None:
    """Ten hours at $40, of which a candidate saves 60 %."""
    finish = Metric(name="time_to_finish", unit="s", estimate=estimate(36_000))
    flip = Flip(quantity="usd_per_gpu_hour", now=2.0, needed=5.0, unit="USD/h")
    plan = with_workload(training_plan(), usd_per_hour=Decimal(40), metrics=(finish,))
    (verdict,) = judge(with_workload(plan, alternatives=(alternative("50", flip=flip),)))
    assert "saves $240 of the run (60 %)" in verdict.message
    assert verdict.usd_per_hour is not None
    assert verdict.usd_per_hour * 730 == pytest.approx(240), "as reports show it, of a month"


def test_the_saving_is_against_the_cheapest() -> None:
    candidates = (alternative("9.00"), alternative("7.70", gpu="a10"), alternative("8.00"))
    (verdict,) = judge(with_workload(serving_plan(), alternatives=candidates))
    assert verdict.usd_per_hour == 10.0
    assert "4 × a10 meets the same objectives and saves $7,300 a month (56 %)" in verdict.message


def test_an_unpriced_workload_is_not_called_over_provisioned() -> None:
    plan = with_workload(serving_plan(), alternatives=(alternative("9.00"),), usd_per_hour=None)
    assert fired(plan) == []


@pytest.mark.parametrize(
    ("cost", "severity", "words"),
    [
        ({"usd_per_hour": None, "unpriced": ("b",)}, "warning", "an unknown amount plus b"),
        ({"usd_per_hour": None}, "warning", "plus all node pools, which is unpriced"),
        ({"unpriced": ("b", "c")}, "warning", "$34,456 a month plus b, c, which is unpriced"),
        (
            {"usd_per_hour": Decimal(61), "unpriced": ("b",)},
            "error",
            "$44,530 a month; the budget is $43,800 a month, and b is not even priced",
        ),
    ],
)
def test_unpriced_is_never_within_the_budget(
    cost: dict[str, Any], severity: str, words: str
) -> None:
    (verdict,) = judge(with_cost(serving_plan(), **cost))
    assert (verdict.rule, verdict.severity.value) == ("GP204", severity)
    assert words in verdict.message
    assert "$0" not in verdict.message


def test_an_accepted_miss_is_told_and_fails_nothing() -> None:
    (verdict,) = judge(with_first_token(serving_plan(), accepted=True))
    assert (verdict.rule, verdict.severity.value) == ("GP205", "info")
    assert "accepted miss: time to first token p95 1.4 s of 1 s" in verdict.message
    assert not list(judge(with_first_token(serving_plan(), accepted=False)))


@pytest.mark.parametrize(
    ("cost", "over", "remedy"),
    [
        ({"usd_per_hour": Decimal("61.5")}, 1.5, "shrink the plan or raise the budget"),
        ({"usd_per_hour": Decimal("61.5"), "unpriced": ("b",)}, 1.5, "set a price"),
        ({"unpriced": ("b",)}, None, "set a price"),
        ({"usd_per_hour": None}, None, "set a price"),
    ],
)
def test_what_is_over_the_budget_is_counted_and_what_is_unknown_is_not(
    cost: dict[str, Any], over: float | None, remedy: str
) -> None:
    (verdict,) = judge(with_cost(serving_plan(), **cost))
    assert (verdict.usd_per_hour, verdict.capacity) == (over, 60.0)
    assert verdict.help.startswith(remedy)


def test_a_shape_without_a_saving_does_not_make_cores_too_many() -> None:
    same = {"gpu": "h100-sxm-80gb"}
    for candidate in (
        alternative(None, **same),
        alternative("99", **same),
        alternative("17", gate="replicas", **same),
    ):
        assert "GP302" not in rules(judge(with_workload(serving_plan(), alternatives=(candidate,))))


def test_without_a_budget_nothing_is_said_about_cost() -> None:
    plan = with_cost(serving_plan(), usd_per_hour=None, unpriced=("b",), budget_usd_per_hour=None)
    assert fired(plan) == []


def test_unknown_host_facts_are_not_judged() -> None:
    assert fired(with_pool(serving_plan(), cpu_cores=None, memory_bytes=None)) == []
    assert fired(replace(libvirt_plan(), hosts=())) == []


def test_a_vgpu_counts_as_its_share() -> None:
    """A VM with one of four vGPUs of an 80 GB GPU needs a quarter of what a GPU needs."""
    layout = Partition(
        kind="vgpu",
        name="quarter",
        count=32,
        per_gpu=4,
        memory_bytes=20 * GIB,
        resource="vgpu",
    )
    plan = with_pool(libvirt_plan(), partitions=(layout,))
    budget = replace(
        plan.workloads[0].memory,
        weights_bytes=10 * GIB,
        activations_bytes=0,
        optimizer_bytes=0,
        capacity_bytes=20 * GIB,
        usable_bytes=18 * GIB,
    )
    plan = with_workload(plan, partition="quarter", memory=budget, parallelism=Parallelism())
    vgpu = replace(sample_vm().devices[0], kind="vgpu")
    pins = sample_vm().cells[0].pins

    def machine(cores: int, memory: int) -> Plan:
        shaped = with_machine(plan, devices=(vgpu,), memory_bytes=memory)
        return with_cell(shaped, pins=pins[: 2 * cores], memory_bytes=memory)

    assert fired(machine(4, 32 * GIB)) == []
    assert fired(machine(1, 20 * GIB)) == []
    assert rules(judge(machine(0, 20 * GIB))) == {"GP301"}
    assert rules(judge(machine(1, 3 * GIB))) == {"GP303", "GP304"}
    # Hosts that are cut in several ways leave the pool without a layout of its own.
    unlike = with_pool(machine(4, 32 * GIB), partitions=())
    assert fired(unlike) == []
    assert rules(judge(with_cell(unlike, pins=()))) == {"GP301"}
    small = with_pool(plan, partitions=(replace(layout, memory_bytes=6 * GIB),))
    small = with_memory(small, weights_bytes=GIB, overhead_bytes=0)

    def guest(memory: int) -> Plan:
        shaped = with_machine(small, devices=(vgpu,), memory_bytes=memory)
        return with_cell(shaped, pins=pins[:2], memory_bytes=memory)

    assert fired(guest(8 * GIB)) == []  # a quarter of 32 GB, as a guest of whole pages has it
    assert rules(judge(guest(7 * GIB))) == {"GP303"}


@pytest.mark.parametrize("rule", EVERY, ids=lambda r: r.identifier)
def test_each_rule_documents_itself(rule: Any) -> None:
    names = [name for name, text in sections(rule.documentation) if text]
    assert names == ["Why", "Looks at", "Threshold", "Fix", "Silent"]
    for threshold in builtin_pack()[rule.identifier].thresholds:
        assert f"`{threshold}`" in rule.documentation


def test_a_notebook_may_fill_the_memory_that_was_asked_for() -> None:
    full = replace(serving_workload().memory, kv_cache_bytes=37 * GIB, usable_bytes=79 * GIB)
    plan = serving_plan(workloads=(serving_workload(serving=None, memory=full),))
    assert rules(judge(plan)) == {"GP102"}
    notebook = serving_workload(task="notebook", serving=None, memory=full)
    assert fired(serving_plan(workloads=(notebook,))) == []


def idle(plan: Plan) -> Verdict:
    [verdict] = [v for v in judge(plan).verdicts if v.rule == "GP203"]
    return verdict


def test_idle_gpus_cost_their_part_of_the_pool() -> None:
    plan = with_pool(with_gpus(serving_plan(), 1), usd_per_hour=Decimal(16), node_count=1)
    found = idle(plan)
    assert found.message == "7 of 8 GPUs of pool h100-sxm-80gb are idle, $14.00/h of $16.00/h"
    assert found.usd_per_hour == 14
    unpriced = idle(with_pool(plan, usd_per_hour=None))
    assert unpriced.message == "7 of 8 GPUs of pool h100-sxm-80gb are idle"
    assert unpriced.usd_per_hour is None


def test_a_pool_that_nobody_uses_costs_all_of_its_price() -> None:
    plan = with_pool(serving_plan(), usd_per_hour=Decimal(16), node_count=2)
    unused = replace(plan.node_pools[0], name="unused")
    [found] = [
        v
        for v in judge(replace(plan, node_pools=(*plan.node_pools, unused))).verdicts
        if v.resource == "node_pool/unused"
    ]
    assert found.message.startswith("16 of 16 GPUs of pool unused are idle, $32.00/h of $32.00/h")
    assert found.usd_per_hour == 32


def test_idle_gpus_of_a_run_cost_as_long_as_it_lasts() -> None:
    plan = with_pool(with_gpus(serving_plan(), 1), usd_per_hour=Decimal(16), node_count=1)
    hours = 73  # a tenth of a month
    end = replace(
        plan.workloads[0].metrics[0],
        name="time_to_finish",
        unit="s",
        estimate=Estimate(value=hours * 3600, low=1, high=1e9, basis="derived"),
    )
    run = with_workload(plan, task="batch", metrics=(end,))
    assert idle(run).usd_per_hour == pytest.approx(1.4)


def test_gpus_that_are_cut_have_work() -> None:
    """Seven of a node's eight are cut for notebooks; others are whole, for a batch."""
    plan = read_plan(ROOT / "stacks" / "slurm")
    [pool] = [p for p in plan.node_pools if p.name == "a100-sxm-80gb"]
    (batch,) = (w for w in plan.workloads if w.node_pool == pool.name and w.partition is None)
    assert used_gpus(plan, pool) == 7 + batch.gpu_count


def test_the_objective_with_the_least_room_is_the_headroom() -> None:
    """Requests are asked in full, images in hundredths: of those there is plenty."""
    plan = one_replica(serving_plan(), 99)
    [requests] = plan.workloads[0].metrics
    images = replace(requests, name="images_per_second", limit=0.01)
    [found] = [
        v
        for v in judge(with_workload(plan, metrics=(images, requests))).verdicts
        if v.rule == "GP202"
    ]
    assert "has 9.9 × headroom" in found.message
    assert found.path.endswith("[requests_per_second]")


def test_support_that_has_ended_is_said_to_have() -> None:
    def said(days: int) -> str:
        [found] = [v for v in judge(with_cloud(serving_plan(), days)).verdicts if v.rule == "GP607"]
        return found.message

    assert "support of Kubernetes 1.35 ends on 2026-11-01" in said(0)
    assert "support of Kubernetes 1.35 ended on 2026-10-31" in said(-1)
