"""What a finding says of each mistake: its sentence, and the numbers that tools read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuplan.plan.model import Evidence, Flip
from gpuplan.units import GB, GIB, MIB
from tests.policy.test_policy_rules import MUTATIONS, PLANS
from tests.support.policy_samples import (
    alternative,
    fired,
    judge,
    rules,
    with_cell,
    with_machine,
    with_workload,
)
from tests.support.samples import libvirt_plan, serving_plan

FLOOR = "of GPU memory free"
# By mistake: sentence, wanted, had, unit.
SAID: dict[str, tuple[tuple[str, float | None, float | None, str], ...]] = {
    "a smaller GPU": (
        (
            "assistant needs 71 GiB of GPU memory, 47 GiB more than the GPU has (24 GiB)",
            *(71 * GIB, 24 * GIB, "B"),
        ),
    ),
    "heavier weights": (
        (
            "assistant needs 81 GiB of GPU memory, 10 GiB more than the engine may take (71 GiB)",
            *(81 * GIB, 71 * GIB, "B"),
        ),
    ),
    "over the engine's share": (
        (
            "assistant needs 72 GiB of GPU memory, 1 GiB more than the engine may take (71 GiB)",
            *(72 * GIB, 71 * GIB, "B"),
        ),
        (
            f"assistant leaves 8.9 % {FLOOR} (7 GiB); 10 % is the floor for inference",
            *(7.9 * GIB, 7 * GIB, "B"),
        ),
    ),
    "a greedy engine": (
        (
            f"assistant leaves 3.8 % {FLOOR} (3 GiB); 10 % is the floor for inference",
            *(7.9 * GIB, 3 * GIB, "B"),
        ),
    ),
    "a full training step": (
        (
            f"tune leaves 13.9 % {FLOOR} (11 GiB); 15 % is the floor for training",
            *(11.85 * GIB, 11 * GIB, "B"),
        ),
    ),
    "more requests than the engine admits": (
        (
            "assistant is asked for 385 requests at once, its engines admit 384",
            *(385, 384, "requests"),
        ),
    ),
    "a cache that is too small": (  # 30 GiB of each of three replicas, a GiB a request
        (
            "assistant is asked for 128 requests at once, its KV caches hold 90",
            *(128, 90, "requests"),
        ),
    ),
    "layers split over two nodes": (
        (
            "assistant splits each layer over 16 GPUs, but one node has 8 of its GPUs",
            *(16, 8, "GPUs"),
        ),
    ),
    "layers split over PCIe": (
        (
            (
                "assistant splits each layer over 8 GPUs that share pcie (64 GB/s); below 100 GB/s "
                "every token waits for the link"
            ),
            *(100 * GB, 64 * GB, "B/s"),
        ),
    ),
    "a cheaper GPU does it": (  # of $17.70 an hour, 730 hours a month
        (
            (
                "assistant runs on 6 × h100-sxm-80gb; 4 × l40s meets the same objectives and saves "
                "$6,351 a month (49 %)"
            ),
            *(17.7, 9, "USD/h"),
        ),
    ),
    "half the budget": (
        ("the plan costs $34,456 a month; the budget is $21,900 a month", 47.2, 30, "USD/h"),
    ),
    "few cores": (
        (
            "a node of h100-sxm-80gb has 3 physical cores a GPU, fewer than 4",
            *(32, 24, "cores"),
        ),
    ),
    "a core a GPU": (
        ("a node of h100-sxm-80gb has 1 physical core a GPU, fewer than 4", 32, 8, "cores"),
    ),
    "a VM with half its cores": (
        ("VM tune-0 has 3 physical cores a GPU, fewer than 4", 16, 12, "cores"),
    ),
    "many cores and a cheaper shape": (
        ("a node of h100-sxm-80gb has 14 physical cores a GPU, more than 8", 64, 112, "cores"),
    ),
    "a VM with one GPU of four": (
        ("VM tune-0 has 32 physical cores a GPU, more than 8", 8, 32, "cores"),
    ),
    "little host memory": (
        (
            "a node of h100-sxm-80gb has 11.6 GiB of host memory a GPU; 16 GB is the floor",
            *(8 * 32 * GB, 100 * GB, "B"),
        ),
        (
            "a node of h100-sxm-80gb has 93.1 GiB of host memory for 632 GiB of GPU memory",
            *(632 * GIB, 100 * GB, "B"),
        ),
    ),
    "a GPU on the other socket": (
        (
            "VM tune-0 is split over NUMA nodes: gpu0 is on node 1, its vCPUs and memory on node 0",
            *(None, None, ""),
        ),
    ),
    "memory on the other socket": (
        (
            "VM tune-0 is split over NUMA nodes: cell 1 is on node 1, where the VM has no GPU",
            *(None, None, ""),
        ),
    ),
    "vCPUs on the other socket": (
        (
            (
                "VM tune-0 is split over NUMA nodes: cell 0 is on node 0, but uses host CPU 56 of "
                "another"
            ),
            *(None, None, ""),
        ),
    ),
    "too few huge pages": (
        (
            "node 0 of hv-01 reserves 511 GiB of huge pages; tune-0 need 512 GiB",
            *(512 * GIB, 511 * GIB, "B"),
        ),
    ),
    "no huge pages": (
        (
            "VM tune-0 has 512 GiB and a passed-through device, but no huge pages",
            *(None, None, ""),
        ),
    ),
    "other huge pages": (
        ("VM tune-0 wants 2 MiB pages, hv-01 reserves 1 GiB ones", None, None, ""),
    ),
    "a page cut in two": (
        (
            (
                "VM tune-0 has a cell of 549,755,813,887 bytes, which is no whole number of 1 GiB "
                "pages"
            ),
            *(None, None, ""),
        ),
    ),
    "cells that do not add up": (("VM tune-0 has 511 GiB, its cells 512 GiB", None, None, ""),),
    "a chart range": (
        (
            "chart gpu-operator has the version '^26.3', which names no single release",
            *(None, None, ""),
        ),
    ),
    "a moving image": (("image 'vllm/vllm-openai' of assistant has no tag", None, None, ""),),
}


@pytest.mark.parametrize("mistake", SAID)
def test_a_finding_says_what_is_wrong_and_by_how_much(mistake: str) -> None:
    mutate, plan, _ = MUTATIONS[mistake]
    found = judge(mutate(PLANS[plan]()))
    said = [(v.message, v.requested, v.capacity, v.unit) for v in found]
    assert [row[0] for row in said] == [row[0] for row in SAID[mistake]]
    assert [row[1:] for row in said] == [pytest.approx(row[1:]) for row in SAID[mistake]]


def test_of_many_cpus_of_another_socket_four_are_named() -> None:
    def shown(count: int) -> str:
        (verdict,) = judge(with_cell(libvirt_plan(), emulator_cpus=tuple(range(56, 56 + count))))
        return verdict.message

    assert shown(4).endswith("uses host CPU 56, 57, 58, 59 of another")
    assert shown(5).endswith("uses host CPU 56, 57, 58, 59… of another")


def test_a_gpu_that_the_host_does_not_have_is_named() -> None:
    plan = libvirt_plan()
    host = replace(plan.hosts[0], devices=plan.hosts[0].devices[1:])
    (verdict,) = judge(replace(plan, hosts=(host,)))
    address = plan.hosts[0].devices[0].address
    assert verdict.rule == "GP305"
    assert verdict.message.endswith(f"{address} is not on hv-01")


def test_machines_take_huge_pages_of_their_own_host_only() -> None:
    plan = libvirt_plan()
    bare = tuple(replace(node, hugepages=0) for node in plan.hosts[0].numa_nodes)
    other = replace(plan.hosts[0], name="hv-02", numa_nodes=bare)
    assert fired(replace(plan, hosts=(*plan.hosts, other))) == []


def test_two_mebibytes_are_a_huge_page_and_four_kibibytes_are_none() -> None:
    plan = with_machine(libvirt_plan(), hugepage_bytes=2 * MIB)
    host = replace(
        plan.hosts[0],
        hugepage_bytes=2 * MIB,
        numa_nodes=tuple(replace(n, hugepages=512 * 512) for n in plan.hosts[0].numa_nodes),
    )
    assert fired(replace(plan, hosts=(host,))) == []
    short = tuple(replace(n, hugepages=512 * 512 - 1) for n in host.numa_nodes)
    few = replace(host, numa_nodes=short)
    assert rules(judge(replace(plan, hosts=(few,)))) == {"GP307"}


def test_a_price_of_nothing_is_no_price_to_compare() -> None:
    """Such a candidate is compared by the hour."""
    flip = Flip(quantity="usd_per_gpu_hour", now=2.0, needed=0.0, unit="USD/h")
    plan = with_workload(serving_plan(), alternatives=(alternative("9.00", flip=flip),))
    (verdict,) = judge(plan)
    assert (verdict.rule, verdict.usd_per_hour) == ("GP201", 8.7)


def test_partitions_have_no_link_between_them() -> None:
    plan = libvirt_plan()
    workload = plan.workloads[0]
    layers = replace(workload.parallelism, tensor_parallel_size=2)
    cut = with_workload(serving_plan(), partition="1g.10gb", parallelism=layers)
    (verdict,) = (v for v in judge(cut) if v.rule == "GP105")
    assert verdict.message == (
        "assistant splits each layer over 2 GPUs, but partitions (1g.10gb) have no link between "
        "them"
    )
    assert (verdict.requested, verdict.capacity, verdict.unit) == (2, 1, "GPUs")


@pytest.mark.parametrize("names", [("kv_cache_bytes",), ("kv_cache_bytes", "tokens_per_request")])
def test_a_cache_is_not_judged_without_what_a_request_needs(names: tuple[str, ...]) -> None:
    told = (
        Evidence(quantity=f"assistant.{name}", value=1e15, unit="1", formula="", source="")
        for name in names
    )
    plan = serving_plan()
    assert fired(replace(plan, evidence=(*plan.evidence, *told))) == []
