"""What a reader of an inventory is told, and what a host keeps for itself."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gpuplan.diagnostics import Diagnostic, Severity
from gpuplan.placement.contradictions import contradictions
from gpuplan.placement.machines.hypervisors import Lowered, lower
from gpuplan.placement.machines.reserve import kernel_parameters
from gpuplan.plan.model import HostResources, Workload
from gpuplan.sizing.evidence.formula import evaluate
from gpuplan.source import Origin, Sources
from gpuplan.units import GIB, parse_ranges
from tests.support.placement_samples import (
    document,
    hgx_text,
    inventory,
    l40s_text,
    notebook,
    place_hgx,
    place_l40s,
    workload,
)


def lowered(text: str) -> Lowered:
    hosts = inventory(text)
    return lower(hosts, "inventory.yaml", {gpu.type for host in hosts.hosts for gpu in host.gpus})


def cards(**changes: Any) -> Workload:
    """One L40S of the host."""
    asked = HostResources(
        cpu_cores=1, host_memory_bytes=8 * GIB, shared_memory_bytes=0, scratch_bytes=0
    )
    return workload(gpu="l40s", gpus_per_node=1, resources=asked, **changes)


def shown(text: str, problem: Diagnostic) -> str:
    """The text that a diagnostic points at."""
    sources = Sources()
    sources.add(document(text))
    assert problem.origin is not None
    located = sources.locate(problem.origin)
    assert located is not None
    read, span = located
    return read.text.splitlines()[span.line - 1][span.column - 1 : span.end_column - 1]


def test_the_samples_are_without_contradiction_or_gap() -> None:
    for text in (hgx_text(), l40s_text()):
        assert list(contradictions(inventory(text), "inventory.yaml")) == []
        assert lowered(text).diagnostics == ()


@pytest.mark.parametrize(
    ("old", "new", "message", "place"),
    [
        ("[hv-01, hv-02]", "[hv-01, hv-01]", "two hosts are called 'hv-01'", "hv-01"),
        ('"56-111,168-223"', '"55-111,168-223"', "CPU 55 is listed twice", '"55-111,168-223"'),
        ('"0-55,112-167"', '"0-55,112-166"', "111 CPUs are not whole cores of 2", '"0-55,112-166"'),
        ("[21, 10]", "[21, 10, 21]", "3 distances for 2 NUMA nodes", "[21, 10, 21]"),
        ("[21, 10]", "[10, 21]", "NUMA node 1 is nearer to another node", "[10, 21]"),
        (
            "vlan: 100, virtual",
            "vlan: 100, total_functions: 2, virtual",
            "3 virtual functions of a card that has at most 2",
            '["0000:0e:00.1", "0000:0e:00.2", "0000:0e:00.3"]',
        ),
        ("module_id: 7", "module_id: 5", "two GPUs have the module 5", "5"),
        ('"0000:10:00.0"', '"0000:0f:00.0"', "two devices have the address", '"0000:0f:00.0"'),
        ('"0000:0f:00.5"', '"0000:0f:00.4"', "two devices have the address", '"0000:0f:00.4"'),
        ("numa_node: 1", "numa_node: 2", "NUMA node 2 does not exist: the host has 2", "2"),
        (
            "    sockets: 2\n",
            "    sockets: 2\n    cpu_cores: 64\n",
            "'cpu_cores' is 64, but the NUMA nodes have 112",
            "64",
        ),
        (
            "    sockets: 2\n",
            "    sockets: 2\n    memory: 1 TiB\n",
            "the NUMA nodes have more memory than the host",
            "1 TiB",
        ),
    ],
)
def test_a_contradiction_is_shown_at_the_second_statement(
    old: str, new: str, message: str, place: str
) -> None:
    text = hgx_text().replace(old, new, 1)
    assert text != hgx_text()
    (problem,) = contradictions(inventory(text), "inventory.yaml")
    assert problem.rule == "GP007"
    assert problem.severity is Severity.ERROR
    assert message in problem.message
    assert shown(text, problem) == place


def test_the_other_statement_is_named_too() -> None:
    text = hgx_text().replace("module_id: 7", "module_id: 5")
    (problem,) = contradictions(inventory(text), "inventory.yaml")
    (related,) = problem.related
    assert related.origin == Origin("inventory.yaml", ("hosts", 0, "gpus", 0, "module_id"))


def test_two_hosts_of_different_kinds_cannot_share_a_name() -> None:
    text = l40s_text()
    both = text + text.partition("hosts:\n")[2]
    (problem,) = contradictions(inventory(both), "inventory.yaml")
    assert problem.message == "two hosts are called 'hv-11'"


@pytest.mark.parametrize(
    ("removed", "fact", "why"),
    [
        (r"    cpu_vendor: amd\n", "'cpu_vendor'", "kernel parameters"),
        (r"    physical_address_bits: 48\n", "'physical_address_bits'", "window"),
        (r"    hypervisor: .*\n", "'hypervisor'", "disks"),
        (r"    numa_nodes:\n(      -.*\n)+(?=    hyp)", "the NUMA layout", "pinning"),
        (r'address: "0000:21:00.0", ', "the PCI address", "passing"),
        (r"numa_node: 0, (?=iommu_group: 1,)", "'numa_node'", "near the device"),
    ],
)
def test_a_missing_fact_is_an_error_and_its_host_takes_no_guests(
    removed: str, fact: str, why: str
) -> None:
    text = re.sub(removed, "", l40s_text(), count=1)
    result = lowered(text)
    (problem,) = result.diagnostics
    assert (problem.rule, problem.severity) == ("GP012", Severity.ERROR)
    assert problem.message == f"{fact} is not stated"
    assert why in problem.label
    assert result.hypervisors == ()


def test_all_missing_facts_are_reported_at_once() -> None:
    text = re.sub(r"    (cpu_vendor|physical_address_bits|hypervisor): .*\n", "", l40s_text())
    messages = [p.message for p in lowered(text).diagnostics]
    assert messages == [
        "'cpu_vendor' is not stated",
        "'physical_address_bits' is not stated",
        "'hypervisor' is not stated",
    ]


def test_without_iommu_groups_the_check_that_was_not_made_is_named() -> None:
    text = re.sub(r"iommu_group: \d+, ", "", l40s_text())
    result = lowered(text)
    (problem,) = result.diagnostics
    assert problem.severity is Severity.WARNING
    assert "IOMMU group of 4 devices is not stated" in problem.message
    assert len(result.hypervisors) == 1


def test_the_host_keeps_cores_and_memory_of_each_node() -> None:
    (host,) = place_hgx(workload()).hosts
    for node in host.numa_nodes:
        assert [c.cpus for c in node.reserved_cores] == [
            (56 * node.node, 56 * node.node + 112),
            (56 * node.node + 1, 56 * node.node + 113),
        ]
        # 1/16 for the host, and 1 GiB for each of the guests that four GPUs can have
        assert node.hugepages == 1024 - 64 - 4


def test_gpus_that_are_shared_leave_room_for_all_their_guests() -> None:
    """Four guests can be on each GPU; another replica then changes no kernel line."""
    (host,) = place_l40s(notebook(replicas=1)).hosts
    assert [n.hugepages for n in host.numa_nodes] == [384 - 24 - 8] * 2


def test_pages_are_not_fewer_than_the_guests_there_have() -> None:
    """One guest has all of a node; it needs 1 GiB outside, not one for each GPU."""
    asked = HostResources(
        cpu_cores=4, host_memory_bytes=359 * GIB, shared_memory_bytes=0, scratch_bytes=0
    )
    placement = place_l40s(workload(gpu="l40s", gpus_per_node=1, resources=asked))
    assert placement.virtual_machines[0].memory_bytes == 359 * GIB
    assert [n.hugepages for n in placement.hosts[0].numa_nodes] == [359, 384 - 24 - 2]


def test_a_small_node_keeps_eight_gib_and_a_tiny_one_everything() -> None:
    text = l40s_text().replace("384 GiB", "64 GiB", 1).replace("384 GiB", "9 GiB", 1)
    (host,) = place_l40s(cards(), text=text).hosts
    assert [n.hugepages for n in host.numa_nodes] == [64 - 8 - 2, 0]


def test_stated_reserves_replace_the_defaults() -> None:
    text = l40s_text().replace(
        "bridge: br0", "bridge: br0, reserved_cores: 4, reserved_memory: 32 GiB"
    )
    (host,) = place_l40s(cards(), text=text).hosts
    assert [len(n.reserved_cores) for n in host.numa_nodes] == [4, 4]
    assert [n.hugepages for n in host.numa_nodes] == [384 - 32 - 2] * 2


def test_the_number_of_pages_has_evidence_that_computes_it() -> None:
    placement = place_hgx(workload())
    entry = next(e for e in placement.evidence if e.quantity == "hv-01.hugepages.node0")
    inputs = {i.name: i.value for i in entry.inputs}
    assert evaluate(entry.formula, inputs) == entry.value == 956
    memory = next(i for i in entry.inputs if i.name == "memory")
    assert memory.source == "inventory: inventory.yaml:hosts[0].numa_nodes[0]"
    assert memory.value == 1024 * GIB


def test_adjacent_threads_are_read_as_such() -> None:
    text = (
        l40s_text()
        .replace(
            '{cpus: "0-31,64-95", memory: 384 GiB}',
            '{cpus: "0-63", siblings: adjacent, memory: 384 GiB}',
        )
        .replace('"32-63,96-127"', '"64-127"')
    )
    first, second = lowered(text).hypervisors[0].host.numa_nodes
    assert first.cores[1].cpus == (2, 3)
    assert second.cores[1].cpus == (65, 97)


def test_only_intel_needs_its_iommu_switched_on() -> None:
    nodes = place_hgx(workload()).hosts[0].numa_nodes
    assert kernel_parameters("intel", nodes, ()) == (
        "intel_iommu=on",
        "iommu=pt",
        "default_hugepagesz=1G",
        "hugepagesz=1G",
        "hugepages=0:956,1:956",
    )
    with_irqs = kernel_parameters("amd", nodes, ("irqs",))
    assert "intel_iommu=on" not in with_irqs
    assert with_irqs[-1] == "irqaffinity=0-1,56-57,112-113,168-169"


def test_cpu_lists_keep_their_order() -> None:
    assert parse_ranges("0-3,8") == (0, 1, 2, 3, 8)
    assert parse_ranges("7") == (7,)


def test_stated_huge_pages_replace_the_derived_ones_and_bound_the_guests() -> None:
    """384 GiB a node, of which the host keeps 24."""
    text = l40s_text().replace("bridge: br0", "bridge: br0, hugepages: 100")
    placement = place_l40s(cards(), text=text)
    (host,) = placement.hosts
    assert [n.hugepages for n in host.numa_nodes] == [100, 100]
    assert host.kernel_parameters[-2] == "hugepages=0:100,1:100"
    assert [(o.quantity, o.derived, o.value) for o in host.overrides] == [
        ("hv-11.hugepages.node0", 384 - 24 - 2, 100),
        ("hv-11.hugepages.node1", 384 - 24 - 2, 100),
    ]
    assert str(host.overrides[0].origin).endswith("hosts[0].hypervisor.hugepages")
    marked = [e for e in placement.evidence if e.overridden_by]
    assert len(marked) == 2
    large = HostResources(
        cpu_cores=4, host_memory_bytes=101 * GIB, shared_memory_bytes=0, scratch_bytes=0
    )
    refused = place_l40s(workload(gpu="l40s", gpus_per_node=1, resources=large), text=text)
    assert not refused.virtual_machines
    assert "102 GiB asked, 0 B of 100 GiB taken" in refused.diagnostics[0].message


def test_huge_pages_beyond_the_memory_are_refused_where_they_stand() -> None:
    text = l40s_text().replace("bridge: br0", "bridge: br0, hugepages: 361")
    (problem,) = contradictions(inventory(text), "inventory.yaml")
    assert "361 huge pages of 1 GiB are more than node 0" in problem.message
    assert "360 of 384 GiB" in problem.message
    assert shown(text, problem) == "361"
    assert not list(contradictions(inventory(text.replace("361", "360")), "inventory.yaml"))
