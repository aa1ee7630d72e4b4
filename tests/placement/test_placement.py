"""Where guests land, what they get, and what is said when they do not fit."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.catalog.load import load_catalog
from gpuplan.catalog.model import VgpuHost
from gpuplan.diagnostics import Severity
from gpuplan.inventory.v1 import Inventory
from gpuplan.placement.api import Placement
from gpuplan.placement.machines.attach import MacAddresses
from gpuplan.placement.place import place
from gpuplan.plan.model import HostResources, VirtualMachine, Volume, Workload
from gpuplan.plan.serialize import to_tree
from gpuplan.source import Origin
from gpuplan.units import GIB, TB
from tests.support.placement_check import faults
from tests.support.placement_samples import (
    gpu,
    hgx_text,
    inventory,
    l40s,
    l40s_text,
    notebook,
    offer,
    place_hgx,
    place_l40s,
    workload,
)


def resources(cores: int, memory_gib: int, scratch_bytes: float = 0) -> HostResources:
    return HostResources(
        cpu_cores=cores,
        host_memory_bytes=memory_gib * GIB,
        shared_memory_bytes=0,
        scratch_bytes=int(scratch_bytes),
    )


def errors(placement: Placement) -> list[str]:
    return [d.message for d in placement.diagnostics if d.severity is Severity.ERROR]


def warnings(placement: Placement) -> list[str]:
    return [d.message for d in placement.diagnostics if d.severity is Severity.WARNING]


def buses(machine: VirtualMachine, kind: str = "gpu") -> list[str]:
    return [d.address for d in machine.devices if d.kind == kind]


# --- GPUs, nodes, cores ------------------------------------------------------------------------


def test_four_gpus_are_a_partition_of_one_node_with_their_cores_and_memory() -> None:
    placement = place_hgx(workload(gpus_per_node=4))
    (machine,) = placement.virtual_machines
    (cell,) = machine.cells
    assert (machine.name, machine.host, machine.fabric_partition) == ("tune-0", "hv-01", 1)
    assert buses(machine) == [f"0000:{bus}:00.0" for bus in ("86", "87", "b8", "bb")]
    assert cell.host_node == 1
    assert [p.cpu for p in cell.pins[:4]] == [58, 170, 59, 171]
    assert len(cell.pins) == 4 * 8 * 2
    assert cell.memory_bytes == 512 * GIB
    assert (cell.emulator_cpus, cell.iothread_cpus) == ((56,), (168,))
    assert placement.diagnostics == ()


def test_pairs_are_those_that_the_fabric_joins_not_neighbours_on_the_bus() -> None:
    placement = place_hgx(workload(gpus_per_node=2, replicas=4, resources=resources(16, 200)))
    pairs = {tuple(buses(m)): m.fabric_partition for m in placement.virtual_machines}
    assert pairs == {
        ("0000:86:00.0", "0000:87:00.0"): 3,
        ("0000:b8:00.0", "0000:bb:00.0"): 4,
        ("0000:0f:00.0", "0000:10:00.0"): 5,
        ("0000:41:00.0", "0000:44:00.0"): 6,
    }


def test_a_single_gpu_breaks_up_the_pair_that_is_broken_already() -> None:
    ones = workload("one", gpus_per_node=1, replicas=2, resources=resources(8, 100))
    four = workload("four", gpus_per_node=4)
    placement = place_hgx(ones, four)
    first, second, _ = placement.virtual_machines
    modules = {first.fabric_partition, second.fabric_partition}
    assert modules == {11, 13}, "modules 5 and 7 are one pair; 6 and 8 stay whole"


def test_a_guest_of_eight_has_a_cell_on_each_node() -> None:
    (machine,) = place_hgx(workload(gpus_per_node=8, resources=resources(64, 900))).virtual_machines
    assert [c.host_node for c in machine.cells] == [0, 1]
    assert [len(c.pins) for c in machine.cells] == [64, 64]
    assert [d.cell for d in machine.devices] == [0] * 4 + [1] * 4
    assert machine.fabric_partition == 0


def test_the_biggest_guest_goes_first_and_the_order_of_the_answer_is_the_question_s() -> None:
    small = workload("a", gpus_per_node=4, resources=resources(16, 100))
    big = workload("b", gpus_per_node=8, resources=resources(64, 800))
    placement = place_hgx(small, big)
    assert [(m.name, m.host) for m in placement.virtual_machines] == [
        ("a-0", "hv-02"),
        ("b-0", "hv-01"),
    ]


@pytest.mark.parametrize(("cores", "memory_gib", "gpus"), [(1, 8, 1), (12, 100, 1), (16, 320, 4)])
def test_a_guest_gets_what_its_sizing_recorded(cores: int, memory_gib: int, gpus: int) -> None:
    """The window is the sizing's (`test_window.py`)."""
    (machine,) = place_hgx(
        workload(gpus_per_node=gpus, resources=resources(cores, memory_gib))
    ).virtual_machines
    assert len(machine.cells[0].pins) == cores * 2
    assert machine.memory_bytes == memory_gib * GIB


def test_a_node_that_has_less_takes_no_guest() -> None:
    text = hgx_text().replace("1024 GiB", "64 GiB")
    placement = place_hgx(workload(gpus_per_node=4, resources=resources(16, 64)), text=text)
    assert placement.virtual_machines == ()
    (message,) = errors(placement)
    assert message == (
        "no room for 1 of 1 guests of 'tune' on hv-01: memory of node 0: 65 GiB asked, 0 B of "
        "56 GiB taken, 9 GiB short"
    )


def test_threads_of_a_core_stay_together_where_cores_have_one_thread_too() -> None:
    text = l40s_text().replace("threads_per_core: 2", "threads_per_core: 1")
    (machine, *_) = place_l40s(
        workload(gpu="l40s", gpus_per_node=1, resources=resources(4, 48)), text=text
    ).virtual_machines
    (cell,) = machine.cells
    assert machine.threads_per_core == 1
    assert [p.cpu for p in cell.pins] == [2, 3, 4, 5]
    assert (cell.emulator_cpus, cell.iothread_cpus) == ((0,), (1,))


# --- what does not fit -------------------------------------------------------------------------


def test_what_does_not_fit_is_said_with_numbers() -> None:
    placement = place_hgx(workload(gpus_per_node=4, replicas=6))
    assert len(placement.virtual_machines) == 4
    assert errors(placement) == [
        (
            "no room for 2 of 6 guests of 'tune' on hv-01: h100-sxm-80gb: 4 asked, "
            "8 of 8 taken, 4 short"
        )
    ]
    (short,) = placement.shortfalls
    assert (short.requested, short.used, short.capacity) == (4, 8, 8)


def test_three_gpus_are_no_partition_of_a_board() -> None:
    (problem,) = place_hgx(workload(gpus_per_node=3)).diagnostics
    assert problem.message == (
        "workload 'tune' needs 3 GPUs in one guest, but an NVSwitch board is divided only into "
        "partitions of 1, 2, 4, 8"
    )
    assert problem.help == "write `overrides.tensor_parallel_size: 4`"
    ((change,),) = problem.remedies
    assert str(change.origin) == "chat.yaml:workloads[0].overrides.tensor_parallel_size"
    assert change.value == 4


def test_three_cards_without_a_board_are_just_three_cards() -> None:
    placement = place_l40s(workload(gpu="l40s", gpus_per_node=3, resources=resources(12, 144)))
    (machine,) = placement.virtual_machines
    assert [c.host_node for c in machine.cells] == [0, 1]
    assert [len(c.pins) for c in machine.cells] == [16, 8]
    assert errors(placement) == []


def test_a_guest_takes_the_smallest_node_that_suffices() -> None:
    text = l40s_text().replace("numa_node: 1, iommu_group: 3", "numa_node: 0, iommu_group: 3")
    one = workload("one", gpu="l40s", gpus_per_node=1, resources=resources(4, 48))
    (machine,) = place_l40s(one, text=text).virtual_machines
    assert machine.cells[0].host_node == 1, "three cards on node 0 stay together"


def test_without_module_numbers_a_part_of_a_board_is_refused() -> None:
    text = hgx_text(modules=False)
    placement = place_hgx(workload(gpus_per_node=2, resources=resources(8, 160)), text=text)
    (problem,) = [d for d in placement.diagnostics if d.severity is Severity.ERROR]
    assert (problem.rule, problem.message) == ("GP012", "'module_id' is not stated")
    assert str(problem.origin) == "inventory.yaml:hosts[0].gpus[0]"


def test_module_numbers_are_not_what_a_single_gpu_lacks() -> None:
    wanted = workload(gpus_per_node=1, resources=resources(400, 160))
    told = errors(place_hgx(wanted, text=hgx_text(modules=False)))
    assert told
    assert "'module_id' is not stated" not in told


@pytest.mark.parametrize(("gpus", "partition"), [(8, 0), (1, None)])
def test_without_module_numbers_a_whole_board_and_single_gpus_still_work(
    gpus: int, partition: int | None
) -> None:
    text = hgx_text(modules=False)
    placement = place_hgx(workload(gpus_per_node=gpus, resources=resources(8, 160)), text=text)
    (machine,) = placement.virtual_machines
    assert machine.fabric_partition == partition
    assert sum(d.kind == "gpu" for d in machine.devices) == gpus
    assert bool(warnings(placement)) == (partition is None)


def test_an_inventory_without_the_gpu_is_an_error() -> None:
    (problem,) = place_hgx(workload(gpu="b200")).diagnostics
    assert problem.message == "workload 'tune' needs b200, which no host has"
    assert problem.help.endswith("or allow another GPU: the hosts have h100-sxm-80gb")


def test_a_machine_target_needs_an_inventory() -> None:
    placement = place("rack", "libvirt", [workload()], [offer(gpu())])
    assert errors(placement) == ["target 'libvirt' needs an inventory of the hosts"]


@pytest.mark.parametrize("origin", [Origin("chat.yaml", ("workloads", 2)), None])
def test_virtual_machines_are_asked_of_a_target_that_has_them(origin: Origin | None) -> None:
    placement = place("x", "kubernetes", [workload(isolation="vm", origin=origin)], [offer(gpu())])
    (problem,) = [d for d in placement.diagnostics if d.rule == "GP043"]
    at = Origin("chat.yaml", ("workloads", 2, "tenancy", "isolation"))
    assert problem.origin == (at if origin else None)
    changes = [(c.origin, c.value) for r in problem.remedies for c in r]
    assert changes == ([(at, "node")] if origin else [])
    shared = place("x", "kubernetes", [workload(isolation="node")], [offer(gpu())])
    assert not [d for d in shared.diagnostics if d.rule == "GP043"]


def test_contradictions_stop_the_placement() -> None:
    text = hgx_text().replace("module_id: 7", "module_id: 5")
    placement = place_hgx(workload(), text=text)
    assert errors(placement) == ["two GPUs have the module 5"]
    assert placement.virtual_machines == ()


# --- devices -----------------------------------------------------------------------------------


def test_guests_between_hosts_get_a_function_on_each_gpu_s_switch() -> None:
    pair = workload(gpus_per_node=8, nodes_per_replica=2, resources=resources(64, 800))
    placement = place_hgx(pair)
    assert [m.host for m in placement.virtual_machines] == ["hv-01", "hv-02"]
    for machine in placement.virtual_machines:
        for number in range(8):
            card, nic = (
                next(d for d in machine.devices if d.name == f"{kind}{number}")
                for kind in ("gpu", "nic")
            )
            assert card.group == nic.group
            assert (nic.vlan, nic.managed) == (100, True)
            assert nic.parent is not None
            assert nic.address.startswith(nic.parent[:-1])
    assert warnings(placement) == []


def test_a_nic_on_the_node_is_second_best_and_one_on_the_other_is_told() -> None:
    text = hgx_text().replace("switch: s5, vlan", "switch: elsewhere, vlan")
    lines = [
        line
        for line in text.splitlines()
        if not ("connectx" in line and any(f"switch: s{n}," in line for n in (0, 1, 2, 3)))
    ]
    pair = workload(gpus_per_node=8, nodes_per_replica=2, resources=resources(64, 800))
    placement = place_hgx(pair, text="\n".join(lines))
    machine = placement.virtual_machines[0]
    groups = {d.name: d.group for d in machine.devices}
    assert groups["nic5"] != groups["gpu5"]
    assert groups["nic4"] == groups["gpu4"]
    assert "big-0: the NIC" not in " ".join(warnings(placement))
    (said,) = [w for w in warnings(placement) if "on another NUMA node" in w]
    assert said.startswith(
        "8 of the 16 GPUs of 'tune' have a function of a NIC on another NUMA node, such as "
        "0000:0f:00.0 with 0000:85:00.0 on hv-01"
    )


def test_functions_that_are_only_counted_have_to_be_listed() -> None:
    pair = workload(gpus_per_node=8, nodes_per_replica=2, resources=resources(64, 800))
    placement = place_hgx(pair, text=hgx_text(functions=False))
    (problem,) = [d for d in placement.diagnostics if d.severity is Severity.ERROR]
    assert problem.message == "the address of each virtual function is not stated"
    assert str(problem.origin) == "inventory.yaml:hosts[0].nics[0].virtual_functions"


def test_drives_near_the_gpus_hold_the_scratch_space() -> None:
    near = workload(gpus_per_node=4, resources=resources(32, 512, 5 * TB))
    (machine,) = place_hgx(near).virtual_machines
    assert buses(machine, "nvme") == ["0000:aa:00.0", "0000:ab:00.0"]
    assert [d.size_bytes for d in machine.disks] == [64 * GIB]


def test_a_drive_goes_to_one_guest() -> None:
    pair = workload(gpus_per_node=2, replicas=2, resources=resources(16, 200, 1 * TB))
    first, second = place_hgx(pair).virtual_machines
    assert first.cells[0].host_node == second.cells[0].host_node
    assert (buses(first, "nvme"), buses(second, "nvme")) == (["0000:aa:00.0"], ["0000:ab:00.0"])


def test_a_guest_takes_only_its_part_of_the_drives() -> None:
    one = workload(gpus_per_node=1, resources=resources(8, 100, 1 * TB))
    (machine,) = place_hgx(one).virtual_machines
    assert buses(machine, "nvme") == []
    assert machine.disks[0].size_bytes == 64 * GIB + 1 * TB


def test_volumes_that_one_guest_owns_are_disks() -> None:
    volumes = tuple(
        Volume(
            name=name,
            size_bytes=10 * GIB,
            storage_class=None,
            shared=shared,
            mount_path=f"/{name}",
            purpose="models",
        )
        for name, shared in (("models", True), ("home", False))
    )
    (alone,) = place_hgx(workload(volumes=volumes)).virtual_machines
    assert [d.name for d in alone.disks] == ["root", "models", "home"]
    assert alone.disks[1].source == "/dev/vg0/tune-0-models"
    several = place_hgx(workload(volumes=volumes, replicas=2)).virtual_machines
    assert [d.name for d in several[0].disks] == ["root", "home"]


# --- vGPUs -------------------------------------------------------------------------------------


def test_time_sliced_vgpus_fill_a_gpu_before_the_next() -> None:
    placement = place_l40s(notebook(replicas=6))
    assert [d.parent for m in placement.virtual_machines for d in m.devices] == [
        *["0000:21:00.0"] * 4,
        *["0000:41:00.0"] * 2,
    ]
    first = placement.virtual_machines[0].devices[0]
    assert (first.kind, first.address, first.managed) == ("vgpu", "0000:21:00.4", False)
    (pool,) = placement.node_pools
    (shared,) = pool.partitions
    assert (shared.kind, shared.per_gpu) == ("vgpu", 4)
    (tenant,) = placement.tenants
    assert (tenant.gpu_quota, tenant.partition_quota) == (0, (("nvidia.com/L40S-12C", 6),))


@pytest.mark.parametrize(("size", "each"), [("L40S-12C", 4), ("L40S-24C", 2), ("L40S-48C", 1)])
def test_all_gpus_of_the_hosts_in_use_are_shared_as_their_guests_are(size: str, each: int) -> None:
    """Of four GPUs a host, whoever has how many of them."""
    for replicas in (1, 3):
        (pool,) = place_l40s(notebook(partition=size, replicas=replicas)).node_pools
        (shared,) = pool.partitions
        assert (shared.name, shared.per_gpu, shared.count) == (size, each, 4 * each)


def test_one_gpu_has_one_size_of_vgpu() -> None:
    placement = place_l40s(notebook(replicas=1), notebook("big", partition="L40S-24C", replicas=1))
    parents = [m.devices[0].parent for m in placement.virtual_machines]
    assert len(set(parents)) == 2
    assert placement.node_pools[0].partitions == (), "the pool's GPUs are not cut alike"


def test_mig_backed_vgpus_say_how_the_host_cuts_the_gpu() -> None:
    text = hgx_text()
    mig = notebook("mig", gpu="h100-sxm-80gb", partition="1g.10gb", replicas=5)
    placement = place_hgx(mig, text=text)
    (host,) = placement.hosts
    cut = {d.address: d.instances for d in host.devices if d.instances}
    assert list(cut) == ["0000:0f:00.0", "0000:10:00.0"], "four functions a GPU are listed"
    assert [i.start for i in cut["0000:0f:00.0"]] == [0, 1, 2, 3, 4, 5, 6]
    assert {d.vgpu_type for m in placement.virtual_machines for d in m.devices} == {"H100XM-1-10C"}


def place_cut(wanted: list[Workload]) -> Placement:
    """On H100s with the types of the catalogue."""
    card = load_catalog().gpu("h100-sxm-80gb")
    assert card is not None
    offers = [offer(card, gpus_per_node=8)]
    return place("rack", "libvirt", wanted, offers, inventory(hgx_text()))


def test_mig_backed_vgpus_of_several_sizes_share_a_gpu() -> None:
    wanted = [
        notebook(name, gpu="h100-sxm-80gb", partition=profile, replicas=count)
        for name, profile, count in (("big", "3g.40gb", 1), ("small", "2g.20gb", 2))
    ]
    (host,) = place_cut(wanted).hosts
    (instances,) = [d.instances for d in host.devices if d.instances]
    assert [(i.profile, i.start) for i in instances] == [
        ("3g.40gb", 4),
        ("2g.20gb", 0),
        ("2g.20gb", 2),
    ]


def test_a_size_that_leaves_no_legal_layout_takes_another_gpu() -> None:
    wanted = [
        notebook(name, gpu="h100-sxm-80gb", partition=profile, replicas=1)
        for name, profile in (("a", "3g.40gb"), ("b", "4g.40gb"), ("c", "1g.10gb"))
    ]
    (host,) = place_cut(wanted).hosts
    cut = [[i.profile for i in d.instances] for d in host.devices if d.instances]
    assert len(cut) == 2
    assert {"3g.40gb", "4g.40gb"} <= set(cut[0])
    assert "1g.10gb" in cut[1]


def test_cards_before_ampere_give_mediated_devices() -> None:
    turing = l40s(vgpu_host=VgpuHost(interface="mediated-device"))
    offers = [offer(turing, gpus_per_node=4)]
    text = l40s_text()
    placement = place("rack", "libvirt", [notebook()], offers, inventory(text))
    device = placement.virtual_machines[0].devices[0]
    assert (device.address, device.parent) == ("0000:21:00.0", None)


def test_vgpus_need_listed_functions() -> None:
    text = hgx_text(functions=False)
    placement = place_hgx(notebook(gpu="h100-sxm-80gb", partition="H100XM-20C"), text=text)
    (problem,) = [d for d in placement.diagnostics if d.severity is Severity.ERROR]
    assert problem.message == "'virtual_functions' is not stated"


def test_an_unknown_partition_gets_a_suggestion() -> None:
    placement = place_l40s(notebook(partition="L40S-12"))
    (problem,) = [d for d in placement.diagnostics if d.severity is Severity.ERROR]
    assert problem.message == "'L40S-12' is not a partition of l40s"
    assert problem.label == "did you mean 'L40S-12C'?"
    assert problem.help == "l40s offers L40S-12C, L40S-24C, L40S-48C"


# --- tenants -----------------------------------------------------------------------------------


def test_a_workload_that_wants_nodes_for_itself_shares_none() -> None:
    alone = workload(
        "alone", tenant="red", gpus_per_node=1, isolation="node", resources=resources(4, 80)
    )
    other = workload("other", tenant="blue", gpus_per_node=1, resources=resources(4, 80))
    friend = workload("friend", tenant="red", gpus_per_node=1, resources=resources(4, 80))
    hosts = {m.name: m.host for m in place_hgx(other, alone, friend).virtual_machines}
    assert hosts["alone-0"] == hosts["friend-0"] != hosts["other-0"]


def test_a_workload_that_wants_gpus_for_itself_shares_none() -> None:
    red = notebook("red", tenant="red", isolation="gpu", replicas=1)
    blue = notebook("blue", tenant="blue", isolation="shared", replicas=1)
    parents = [m.devices[0].parent for m in place_l40s(red, blue).virtual_machines]
    assert len(set(parents)) == 2


# --- identity and determinism ------------------------------------------------------------------


def test_names_and_addresses_come_from_names_alone() -> None:
    first = place_hgx(workload("a", resources=resources(16, 320)), workload("b"))
    again = place_hgx(workload("b"), workload("a", resources=resources(16, 320)))
    assert {m.name: (m.uuid, m.mac) for m in first.virtual_machines} == {
        m.name: (m.uuid, m.mac) for m in again.virtual_machines
    }
    other = place("other", "libvirt", [workload("a")], [offer(gpu())], inventory(hgx_text()))
    assert other.virtual_machines[0].uuid != first.virtual_machines[0].uuid


def test_two_names_never_share_a_mac_address() -> None:
    identity = uuid.uuid5(uuid.NAMESPACE_DNS, "a")
    first = MacAddresses().of(identity, "nic0")
    digest = uuid.uuid5(identity, "nic0").hex
    assert first == "52:" + ":".join(digest[n : n + 2] for n in range(0, 10, 2))
    taken = MacAddresses(used={first})
    more = [taken.of(identity, "nic0") for _ in range(3)]
    assert len({first, MacAddresses().of(identity, "nic1"), *more}) == 5


def test_the_cost_of_hosts_is_the_inventory_s_where_it_says_one() -> None:
    placement = place_l40s(notebook())
    (pool,) = placement.node_pools
    assert (pool.name, pool.node_names, pool.threads_per_core) == ("l40s", ("hv-11",), 2)
    assert str(placement.cost.usd_per_hour) == "4.000000"
    price = next(e for e in placement.evidence if e.quantity == "l40s.node_usd_per_hour")
    assert price.source == "inventory: inventory.yaml:hosts[0].price"


# --- every placement, checked again ------------------------------------------------------------


@st.composite
def hosts(draw: st.DrawFn) -> dict[str, Any]:
    """One kind of host with L40S cards, in plain numbers."""
    threads = draw(st.sampled_from([1, 2]))
    nodes = draw(st.integers(1, 3))
    cores = draw(st.integers(3, 20))
    total = nodes * cores
    numa = [
        {
            "cpus": [t * total + n * cores + c for t in range(threads) for c in range(cores)],
            "memory": draw(st.sampled_from([16, 64, 96, 384])),
        }
        for n in range(nodes)
    ]
    functions = draw(st.integers(0, 4))
    gpus = [
        {
            "type": "l40s",
            "address": f"0000:{16 + number:02x}:00.0",
            "numa_node": draw(st.integers(0, nodes - 1)),
            "switch": f"s{number // 2}",
            "virtual_functions": [f"0000:{16 + number:02x}:01.{f}" for f in range(functions)],
        }
        for number in range(draw(st.integers(1, 6)))
    ]
    nics = [
        {
            "type": "connectx-7",
            "address": f"0000:{64 + number:02x}:00.0",
            "numa_node": draw(st.integers(0, nodes - 1)),
            "switch": f"s{number}",
            "virtual_functions": [f"0000:{64 + number:02x}:00.{f + 1}" for f in range(2)],
        }
        for number in range(draw(st.integers(0, 2)))
    ]
    count = draw(st.integers(1, 3))
    return {
        "names": [f"hv-{n}" for n in range(count)],
        "threads_per_core": threads,
        "numa_nodes": numa,
        "gpus": gpus,
        "nics": nics,
    }


@st.composite
def demands(draw: st.DrawFn) -> list[Workload]:
    return [
        workload(
            f"w{number}",
            gpu="l40s",
            node_pool="l40s",
            tenant=draw(st.sampled_from(["red", "blue"])),
            isolation=draw(st.sampled_from(["shared", "gpu", "node", "vm"])),
            partition=draw(st.sampled_from([None, None, "L40S-12C", "L40S-24C"])),
            gpus_per_node=draw(st.integers(1, 3)),
            replicas=draw(st.integers(1, 4)),
            nodes_per_replica=draw(st.sampled_from([1, 1, 2])),
            resources=resources(draw(st.integers(1, 24)), draw(st.integers(1, 200))),
        )
        for number in range(draw(st.integers(1, 3)))
    ]


def as_inventory(spec: dict[str, Any]) -> Inventory:
    """`spec` as the document that says the same."""
    nodes = [
        {"cpus": ",".join(map(str, n["cpus"])), "memory": f"{n['memory']} GiB"}
        for n in spec["numa_nodes"]
    ]
    host = {
        **spec,
        "numa_nodes": nodes,
        "cpu_vendor": "amd",
        "physical_address_bits": 46,
        "hypervisor": {"disk_path": "/dev/vg0", "bridge": "br0"},
    }
    tree = {"apiVersion": "gpuplan.dev/inventory/v1", "name": "x", "hosts": [host]}
    return Inventory.model_validate(tree)


def test_a_guest_without_cores_of_the_host_beside_it_has_those_of_any_that_is_near() -> None:
    """Of two nodes as near, one with a GPU and two cores kept there, one without any."""
    numa = [{"cpus": [*range(n, n + 4)], "memory": 16} for n in (0, 4, 8)]
    card = {"type": "l40s", "switch": "s0", "virtual_functions": []}
    cards = [{**card, "address": f"0000:1{n}:00.0", "numa_node": n} for n in (0, 1)]
    spec = {"names": ["hv-0"], "threads_per_core": 1, "numa_nodes": numa, "gpus": cards, "nics": []}
    wanted = [
        workload("w0", gpu="l40s", node_pool="l40s", gpus_per_node=1, resources=resources(1, 1))
    ]
    offers = [offer(l40s(), gpus_per_node=2)]
    placement = place("rack", "libvirt", wanted, offers, as_inventory(spec))
    assert faults(spec, placement.hosts, placement.virtual_machines, wanted) == []


@settings(max_examples=150)
@given(hosts(), demands())
def test_every_placement_holds_up_to_a_second_look(
    spec: dict[str, Any], wanted: list[Workload]
) -> None:
    offers = [offer(l40s(), gpus_per_node=len(spec["gpus"]))]
    placement = place("rack", "libvirt", wanted, offers, as_inventory(spec))
    assert faults(spec, placement.hosts, placement.virtual_machines, wanted) == []
    refused = " ".join(errors(placement))
    for item in wanted:
        placed = sum(m.workload == item.name for m in placement.virtual_machines)
        asked = item.replicas * item.nodes_per_replica
        assert placed == asked or refused, "a guest is missing and nothing says so"
    again = place("rack", "libvirt", wanted, offers, as_inventory(spec))
    assert to_tree(again.virtual_machines) == to_tree(placement.virtual_machines)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from([1, 2, 4, 8]), st.integers(1, 4)), min_size=1, max_size=4)
)
def test_every_placement_on_a_board_is_a_set_of_partitions(sizes: list[tuple[int, int]]) -> None:
    wanted = [
        workload(
            f"w{n}", gpus_per_node=size, replicas=count, resources=resources(4 * size, 80 * size)
        )
        for n, (size, count) in enumerate(sizes)
    ]
    text = hgx_text()
    tree = inventory(text).model_dump(by_alias=True)
    spec = tree["hosts"][0]
    for number, node in enumerate(spec["numa_nodes"]):
        first = 56 * number
        node["cpus"] = [*range(first, first + 56), *range(first + 112, first + 168)]
        node["memory"] = 1024
    placement = place_hgx(*wanted, text=text)
    assert faults(spec, placement.hosts, placement.virtual_machines, wanted) == []
    needed = sum(size * count for size, count in sizes)
    placed = sum(len(buses(m)) for m in placement.virtual_machines)
    assert placed == needed or (errors(placement) and needed > 16), (
        "powers of two pack without loss"
    )
