"""Hosts whose NUMA nodes are unlike, from their tools' texts to their guests' domains: NPS4 with
GPUs behind half of the nodes, sub-NUMA clusters with three GPUs and one, nodes of memory alone."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator

import pytest

from gpuplan.backends.libvirt import emit
from gpuplan.backends.libvirt.verify_cpu import numbers
from gpuplan.diagnostics import Severity
from gpuplan.inventory.readers.registry import likely
from gpuplan.inventory.run import imported
from gpuplan.placement.api import Placement
from gpuplan.plan.model import Plan
from gpuplan.units import GIB
from tests.inventory.test_inventory_import import given, load
from tests.support.hypervisor_plans import plan_of
from tests.support.odd_machines import CASES, MACHINES, cpus, placed, texts


def domains(plan: Plan) -> Iterator[ET.Element]:
    for file in emit(plan).files:
        if file.path.endswith(".xml") and "nccl" not in file.path:
            yield ET.fromstring(file.text)


def serious(placement: Placement) -> list[str]:
    return [d.message for d in placement.diagnostics if d.severity is not Severity.INFO]


@pytest.mark.parametrize("name", MACHINES)
def test_the_import_says_of_each_node_what_its_tools_said(name: str) -> None:
    machine = MACHINES[name]
    [host] = load(imported(given(texts(machine), name), "test", likely))
    own = [n for n, listed in enumerate(machine.nodes) if listed]
    assert [n.cpus for n in host.numa_nodes] == [machine.nodes[n] for n in own]
    assert [n.distances for n in host.numa_nodes] == [
        [machine.distances[n][other] for other in own] for n in own
    ]
    assert [n.memory for n in host.numa_nodes] == [machine.sizes[n] * 2**20 for n in own]
    assert [g.numa_node for g in host.gpus for _ in range(g.count or 1)] == list(machine.on)


@pytest.mark.parametrize(("name", "gpus"), CASES)
def test_guests_have_cores_and_memory_of_the_nodes_of_their_gpus(name: str, gpus: int) -> None:
    """Held against the texts of the machine alone, in the domains as they are written."""
    machine, placement = MACHINES[name], placed(name, gpus)
    assert serious(placement) == []
    plan = plan_of(placement)
    assert [d for d in emit(plan).diagnostics if d.rule == "GP054"] == []
    taken: Counter[int] = Counter()
    memory: Counter[int] = Counter()
    written = list(domains(plan))
    assert len(written) == len(machine.on) // gpus
    for root in written:
        addresses = [int(e.get("bus", ""), 16) - 16
                     for e in root.iterfind("devices/hostdev/source/address")]  # fmt: skip
        on = Counter(machine.on[number] for number in addresses)
        assert sum(on.values()) == gpus
        pins = {int(p.get("vcpu", "")): int(p.get("cpuset", ""))
                for p in root.iterfind("cputune/vcpupin")}  # fmt: skip
        taken.update(pins.values())
        bound = {int(m.get("cellid", "")): m for m in root.iterfind("numatune/memnode")}
        seen = []
        for cell in root.iterfind("cpu/numa/cell"):
            memnode = bound[int(cell.get("id", ""))]
            assert memnode.get("mode") == "strict"
            node = int(memnode.get("nodeset", ""))
            seen.append(node)
            own = {pins[vcpu] for vcpu in numbers(cell.get("cpus"))}
            assert own
            assert own <= set(cpus(machine.nodes[node]))
            assert len(own) == 2 * 6 * on[node]
            memory[node] += int(cell.get("memory", ""))
        assert sorted(seen) == sorted(on), "a cell for each node with a GPU, and none else"
    assert max(taken.values()) == 1
    [host] = plan.hosts
    for number, node in enumerate(host.numa_nodes):
        least = max(8 * GIB, machine.sizes[number] * 2**20 / 16)
        assert memory[number] * 1024 <= node.hugepages * GIB
        assert node.hugepages * GIB <= machine.sizes[number] * 2**20 - least or not node.hugepages
        assert (node.hugepages > 0) == (number in machine.on)


def kept(name: str) -> list[int]:
    [host] = placed(name, 1).hosts
    return [len(n.reserved_cores) for n in host.numa_nodes]


def test_the_host_keeps_cores_of_nodes_with_cpus_that_no_gpu_is_on() -> None:
    assert kept("dgx-a100-nps4") == [4, 0] * 4
    assert kept("snc2-uneven") == [2, 2, 2, 2]
    assert kept("memory-alone") == [2, 2, 0, 0]


@pytest.mark.parametrize("name", MACHINES)
def test_what_serves_guests_runs_on_the_socket_of_their_gpus(name: str) -> None:
    machine, placement = MACHINES[name], placed(name, 1)
    half = len([n for n in machine.nodes if n]) // 2
    home = {cpu: n // half for n, listed in enumerate(machine.nodes) for cpu in cpus(listed)}
    for guest in placement.virtual_machines:
        [cell] = guest.cells
        serving = {home[cpu] for cpu in (*cell.emulator_cpus, *cell.iothread_cpus)}
        assert serving == {cell.host_node // half}
