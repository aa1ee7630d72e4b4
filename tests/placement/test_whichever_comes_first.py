"""What is told or placed does not hang on what stands before it: hosts, devices, ports, workloads
that it has nothing to do with, first, last or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from gpuplan.diagnostics import Severity
from gpuplan.placement.api import Placement
from gpuplan.placement.contradictions import contradictions
from gpuplan.placement.place import place
from gpuplan.plan.model import Workload
from tests.support.placement_hosts import as_inventory, card, cards, drive, host, placed
from tests.support.placement_samples import gpu, l40s, offer, workload

ORDERS = [0, 1, 2]


def among(order: int, one: Any, others: Sequence[Any]) -> list[Any]:
    """`one` before, between and after two others."""
    return [*others[:order], one, *others[order:]]


def errors(placement: Placement) -> list[str]:
    return [d.message for d in placement.diagnostics if d.severity is Severity.ERROR]


@pytest.mark.parametrize("order", ORDERS)
def test_pods_are_told_of_the_host_that_they_are_on(order: int) -> None:
    """Of the others no pool has a node."""
    own = host([0, 0, 1, 1], names=["mine"], nodes=2)
    others = [host([0, 0], names=[f"other-{n}"], nodes=2) for n in range(2)]
    there = offer(gpu("l40s"), gpus_per_node=4, node_count=1, node_names=("mine",))
    work = cards(gpus=4, isolation="shared")
    placement = place("x", "kubernetes", [work], [there], as_inventory(*among(order, own, others)))
    (told,) = [d for d in placement.diagnostics if d.rule == "GP045"]
    assert "of mine has more than 2" in told.message


@pytest.mark.parametrize("kind", ["gpus", "nics", "nvme", "functions"])
def test_an_address_is_of_one_device_of_whatever_kind(kind: str) -> None:
    """Each kind stands after others that are in order."""
    spec = host(
        [0, 1],
        nics=[card(0, 0), card(1, 1)],
        nvme=[drive(0, 0), drive(1, 1)],
        functions=[
            {
                "address": f"0000:f{n}:00.1",
                "product": "audio",
                "numa_node": 0,
                "iommu_group": 200 + n,
            }
            for n in range(2)
        ],
    )
    assert list(contradictions(as_inventory(spec), "i.yaml")) == []
    spec[kind][1]["address"] = spec[kind][0]["address"]
    (told,) = contradictions(as_inventory(spec), "i.yaml")
    assert told.message == f"two devices have the address {spec[kind][0]['address']}"
    assert str(told.origin) == f"i.yaml:hosts[0].{kind}[1].address"
    (first,) = told.related
    assert str(first.origin) == f"i.yaml:hosts[0].{kind}[0].address"


@pytest.mark.parametrize("order", ORDERS)
def test_the_host_whose_groups_do_not_add_up_is_named(order: int) -> None:
    """Three GPUs of pairs; hosts with fewer have nothing to do with it."""
    pairs = host(
        [0, 0, 0, 0], names=["pairs"], gpu={1: {"iommu_group": 10}, 3: {"iommu_group": 12}}
    )
    others = [host([0, 0], names=[f"small-{n}"]) for n in range(2)]
    placement = placed(cards(gpus=3), hosts=among(order, pairs, others))
    (message,) = errors(placement)
    assert "3 GPUs in one guest, which no IOMMU groups of pairs make: they hold 2 GPUs" in message


@pytest.mark.parametrize("order", ORDERS)
def test_the_host_that_states_no_functions_is_named(order: int) -> None:
    """Of the hosts with the GPU; those with another one are not asked."""
    own = host([0], names=["mine"])
    others = []
    for n in range(2):
        others.append(host([0], names=[f"other-{n}"]))
        others[n]["gpus"][0]["type"] = "a16"
    inventory = as_inventory(*among(order, own, others))
    work = cards(partition="L40S-12C")
    placement = place("x", "libvirt", [work], [offer(l40s(), gpus_per_node=1)], inventory)
    (told,) = [d for d in placement.diagnostics if d.severity is Severity.ERROR]
    assert told.message == "'virtual_functions' is not stated"
    assert str(told.origin).startswith(f"inventory.yaml:hosts[{order}].gpus[0]")


@pytest.mark.parametrize("order", ORDERS)
def test_a_fact_that_a_host_without_the_gpu_lacks_is_not_asked_for(order: int) -> None:
    others = [host([0], names=[f"hv-{n}"]) for n in range(2)]
    bare = host([0], names=["bare"])
    bare["gpus"][0]["type"] = "a16"
    del bare["cpu_vendor"]
    works = [cards("a"), cards("b")]
    placement = placed(*works, hosts=among(order, bare, others))
    assert errors(placement) == []
    assert {m.host for m in placement.virtual_machines} == {"hv-0", "hv-1"}
    bare["gpus"][0]["type"] = "l40s"
    assert errors(placed(*works, hosts=among(order, bare, others))) == [
        "'cpu_vendor' is not stated"
    ]


def test_a_guest_without_functions_has_all_its_gpus() -> None:
    placement = place(
        "x", "libvirt", [cards("a", 4)], [offer(l40s(), gpus_per_node=4)],
        as_inventory(host([0, 0, 1, 1])), fabric_bytes_per_s=1e9,
    )  # fmt: skip
    (machine,) = placement.virtual_machines
    assert [d.kind for d in machine.devices] == ["gpu"] * 4
    (told,) = [d for d in placement.diagnostics if d.rule == "GP044"]
    assert "for 4 of its 4 GPUs" in told.message


@pytest.mark.parametrize("fast", [0, 1, 2])
def test_the_port_that_cannot_carry_its_functions_is_named(fast: int) -> None:
    """A GPU and a card on each of three nodes; two GPUs beside the slow one."""
    nodes = [n for n in range(3) if n != fast]
    slow = nodes[0]
    rates = dict.fromkeys(range(3), "400 Gb/s") | {slow: "10 Gb/s"}
    spec = host(
        sorted([0, 1, 2, slow]),
        nodes=3,
        nics=[card(n, n, bandwidth=rate) for n, rate in rates.items()],
    )
    placement = place(
        "x", "libvirt", [cards("a", 4)], [offer(l40s(), gpus_per_node=4)],
        as_inventory(spec), fabric_bytes_per_s=5e9,
    )  # fmt: skip
    told = [d for d in placement.diagnostics if d.rule == "GP044" and "the port" in d.message]
    assert [f"the port 0000:{128 + slow:02x}:00.0 of hv-1" in d.message for d in told] == [True]
    assert "and 2 GPUs beside it" in told[0].message


@pytest.mark.parametrize("order", ORDERS)
def test_a_workload_whose_gpu_no_node_has_leaves_the_others_their_pools(order: int) -> None:
    lacking: Workload = cards("lacking", gpus=1, isolation="shared")
    works = [workload(name, isolation="node", tenant=name, gpus_per_node=1) for name in ("a", "b")]
    placement = place("x", "kubernetes", among(order, lacking, works), [offer(gpu())])
    assert [p.name for p in placement.node_pools] == ["h100-sxm-80gb-a", "h100-sxm-80gb-b"]
    (message,) = errors(placement)
    assert message == "workload 'lacking' needs l40s, which no host has"


@pytest.mark.parametrize("tenants", [("red",), ("red", "blue"), ("red", "blue", "green")])
def test_teams_that_take_turns_on_one_gpu_are_told(tenants: tuple[str, ...]) -> None:
    """One GPU for a vGPU of each; one team alone is told nothing."""
    functions = {0: {"virtual_functions": [f"0000:10:01.{f}" for f in range(4)]}}
    works = [
        cards(f"w{n}", cores=1, memory_gib=8, partition="L40S-12C", tenant=t)
        for n, t in enumerate(tenants)
    ]
    works.append(cards("again", cores=1, memory_gib=8, partition="L40S-12C", tenant="red"))
    placement = placed(*works, hosts=[host([0], nodes=1, gpu=functions)])
    assert len(placement.virtual_machines) == len(works)
    told = [
        d for d in placement.diagnostics if d.severity is Severity.WARNING and "turns" in d.message
    ]
    assert len(told) == (len(tenants) > 1)
    assert all(t in d.message for d in told for t in tenants)
