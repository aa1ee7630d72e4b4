"""Each rule of placement on the hosts where breaking it would show."""

from __future__ import annotations

from typing import Any

import pytest

from gpuplan.diagnostics import Diagnostic, Severity
from gpuplan.placement.api import Placement
from gpuplan.placement.place import place
from gpuplan.plan.model import HostResources, VirtualMachine
from gpuplan.units import GIB, TB
from tests.support.placement_hosts import (
    as_inventory,
    card,
    cards,
    cores_of,
    drive,
    host,
    numbers,
    placed,
)
from tests.support.placement_samples import (
    gpu,
    hgx_text,
    inventory,
    offer,
    place_hgx,
    workload,
)


def guest(placement: Placement, name: str = "tune-0") -> VirtualMachine:
    return next(m for m in placement.virtual_machines if m.name == name)


def said(placement: Placement, rule: str) -> list[Diagnostic]:
    return [d for d in placement.diagnostics if d.rule == rule]


def refused(placement: Placement) -> list[str]:
    return [d.message for d in placement.diagnostics if d.severity is Severity.ERROR]


def nodes(machine: VirtualMachine) -> list[int]:
    return [c.host_node for c in machine.cells]


def pinned(machine: VirtualMachine) -> list[int]:
    return [p.cpu for c in machine.cells for p in c.pins]


def distances(spec: dict[str, Any], *rows: list[int]) -> dict[str, Any]:
    for node, row in zip(spec["numa_nodes"], rows, strict=True):
        node["distances"] = row
    return spec


# --- GPU → NUMA → cores --------------------------------------------------------------------------


def test_uneven_nodes_give_each_guest_the_node_that_just_holds_it() -> None:
    spec = host([0, 0, 0, 1, 2, 2, 2, 3], nodes=4)
    placement = placed(cards("a", 3, replicas=2), cards("b", 1, replicas=2), hosts=[spec])
    assert [(numbers(m), nodes(m)) for m in placement.virtual_machines] == [
        ([0, 1, 2], [0]),
        ([4, 5, 6], [2]),
        ([3], [1]),
        ([7], [3]),
    ]


def test_a_single_gpu_comes_from_the_node_with_the_fewest_left() -> None:
    assert numbers(guest(placed(cards(), hosts=[host([0, 0, 0, 1])]))) == [3]
    machine = guest(placed(cards(gpus=3), hosts=[host([0, 0, 1, 1, 2], nodes=3)]))
    assert numbers(machine) == [0, 1, 4], "two whole nodes, so that the third stays whole"


def test_a_guest_over_nodes_takes_near_ones() -> None:
    """Nodes 0 and 3 share a socket here; 1 and 2 are as big and farther."""
    spec = distances(
        host([0, 0, 0, 1, 2, 3], nodes=4),
        [10, 32, 32, 12],
        [32, 10, 12, 32],
        [32, 12, 10, 32],
        [12, 32, 32, 10],
    )
    machine = guest(placed(cards(gpus=4), hosts=[spec]))
    assert (numbers(machine), nodes(machine)) == ([0, 1, 2, 5], [0, 3])
    assert cores_of(machine) == [24, 8], "each cell has the cores of its own GPUs"


def test_distances_that_no_tool_recorded_are_told_where_a_guest_lies_on_several_nodes() -> None:
    known = distances(host([0, 0, 1, 1]), [10, 21], [21, 10])
    for gpus, spec, told in (
        (4, host([0, 0, 1, 1]), True),
        (4, known, False),
        (2, host([0, 0, 1, 1]), False),
        (2, host([0, 0], nodes=1), False),
    ):
        found = placed(cards(gpus=gpus), hosts=[spec]).diagnostics
        assert any("'distances' of the NUMA nodes" in d.message for d in found) == told
        assert any("see the default distances" in d.message for d in found) == told


def test_nps4_with_gpus_on_half_of_the_nodes_uses_those_nodes_alone() -> None:
    spec = host([0, 0, 2, 2, 4, 4, 6, 6], nodes=8, cores=16, memory=192)
    placement = placed(cards(gpus=2, replicas=4, cores=12), hosts=[spec])
    assert [nodes(m) for m in placement.virtual_machines] == [[0], [2], [4], [6]]
    assert {tuple(cores_of(m)) for m in placement.virtual_machines} == {(12,)}
    assert placement.diagnostics == ()
    (machine_host,) = placement.hosts
    assert [n.hugepages > 0 for n in machine_host.numa_nodes] == [True, False] * 4
    assert "hugepages=0:178,2:178,4:178,6:178" in machine_host.kernel_parameters


def test_cores_that_lie_idle_on_nodes_without_gpus_are_named_where_guests_lack_some() -> None:
    spec = host([0, 0, 2, 2], nodes=4, cores=7, memory=192)
    placement = placed(cards(gpus=2, replicas=2, cores=6), hosts=[spec])
    (idle,) = said(placement, "GP047")
    assert idle.message == (
        "NUMA nodes 1, 3 have no GPU, so that guests of hv-1 leave 6 cores idle there"
    )
    rich = host([0, 0, 2, 2], nodes=4, cores=8, memory=192)
    assert not said(placed(cards(gpus=2, replicas=2, cores=8), hosts=[rich]), "GP047")


def kept(placement: Placement) -> list[int]:
    """Cores that the first host keeps of each node."""
    return [len(node.reserved_cores) for node in placement.hosts[0].numa_nodes]


def test_the_host_s_cores_are_kept_where_gpus_are_not() -> None:
    """NPS4 with GPUs on nodes 0 and 2 of socket 0 and 4 of socket 1: each gives its guests all of
    its cores, and a node without GPUs on its socket keeps those of the host."""
    spec = host([0, 2, 4], nodes=8, cores=16, memory=192)
    spec = distances(spec, *([10 if a == b else 12 if a // 4 == b // 4 else 32 for b in range(8)]
                             for a in range(8)))  # fmt: skip
    placement = placed(cards(replicas=3, cores=16, memory_gib=48), hosts=[spec])
    assert placement.diagnostics == ()
    assert kept(placement) == [0, 4, 0, 4, 0, 4, 2, 2]
    assert [cores_of(m) for m in placement.virtual_machines] == [[16]] * 3
    assert [m.cells[0].emulator_cpus for m in placement.virtual_machines] == [(16,), (17,), (80,)]
    assert "irqaffinity=16-19,48-51,80-83,96-97,112-113" in " ".join(
        placement.hosts[0].kernel_parameters
    )


@pytest.mark.parametrize(
    ("gpus", "cores", "held"),
    [
        ([0, 1], 16, [2, 2]),  # both have GPUs
        ([0], 16, [0, 4]),
        ([0], 4, [0, 4]),
        ([0], 3, [2, 2]),  # node 1 has not four
        ([0, 1, 2], 6, [0, 0, 2, 6]),  # nor has node 3 eight
    ],
)
def test_a_node_without_gpus_keeps_no_more_than_it_has(
    gpus: list[int], cores: int, held: list[int]
) -> None:
    spec = host(gpus, nodes=len(held), cores=cores)
    assert kept(placed(cards(cores=1), hosts=[spec])) == held
    spec["hypervisor"]["reserved_cores"] = 1
    assert kept(placed(cards(cores=1), hosts=[spec])) == [1] * len(held), "as it is stated"


def test_guests_of_several_nodes_take_turns_on_the_cores_that_serve_them() -> None:
    spec = host([0, 0, 1, 1], nodes=3, cores=8)
    placement = placed(cards(replicas=4, cores=4), hosts=[spec])
    assert kept(placement) == [0, 0, 6]
    serving = [c.emulator_cpus + c.iothread_cpus for m in placement.virtual_machines
               for c in m.cells]  # fmt: skip
    assert serving == [(16, 40), (17, 41), (18, 42), (19, 43)]


@pytest.mark.parametrize(
    ("threads", "siblings", "first", "emulator"),
    [
        (1, "split", [2, 3, 4, 5], (0, 1)),
        (2, "split", [2, 34, 3, 35], (0, 32)),
        (2, "adjacent", [4, 5, 6, 7], (0, 1)),
    ],
)
def test_one_socket_with_any_numbering_pins_siblings_side_by_side(
    threads: int, siblings: str, first: list[int], emulator: tuple[int, int]
) -> None:
    spec = host([0] * 4, nodes=1, threads=threads, siblings=siblings)
    machine = guest(placed(cards(), hosts=[spec]))
    (cell,) = machine.cells
    assert pinned(machine)[:4] == first
    assert cores_of(machine) == [8]
    assert (*cell.emulator_cpus, *cell.iothread_cpus) == emulator


def test_ten_gpus_in_one_guest_have_a_cell_on_each_socket_and_an_address_each() -> None:
    spec = distances(host([0] * 5 + [1] * 5, cores=48, memory=1024), [10, 21], [21, 10])
    placement = placed(cards(gpus=10), hosts=[spec])
    machine = guest(placement)
    assert numbers(machine) == list(range(10))
    assert cores_of(machine) == [40, 40]
    assert [sum(d.cell == c for d in machine.devices) for c in (0, 1)] == [5, 5]
    assert placement.diagnostics == ()


def test_guests_never_touch_the_cores_that_the_host_keeps() -> None:
    spec = host([0, 0, 1, 1], cores=10)
    placement = placed(cards(replicas=4, cores=4), hosts=[spec])
    cpus = [cpu for m in placement.virtual_machines for cpu in pinned(m)]
    assert len(cpus) == len(set(cpus)) == 4 * 4 * 2
    assert not {0, 1, 20, 21, 10, 11, 30, 31} & set(cpus)
    kept = {c for m in placement.virtual_machines for c in m.cells[0].emulator_cpus}
    assert kept == {0, 1, 10, 11}, "emulators of a node take turns on its housekeeping cores"


# --- memory --------------------------------------------------------------------------------------


def test_each_guest_takes_a_page_of_each_of_its_nodes_beside_its_memory() -> None:
    """127.7 GiB − 8 GiB for the host leave 119 pages: three guests of 38 GiB with one each, and two
    that nobody has; the host sets aside what its GPUs' guests can have."""
    spec = host([0, 0, 0], nodes=1, memory=127.7)
    placement = placed(cards(replicas=3, memory_gib=38), hosts=[spec])
    assert placement.hosts[0].numa_nodes[0].hugepages == 116
    assert {m.memory_bytes for m in placement.virtual_machines} == {38 * GIB}
    tight = placed(cards(replicas=3, memory_gib=39), hosts=[spec])
    (problem,) = refused(tight)
    assert problem.startswith(
        "no room for 1 of 3 guests of 'tune' on hv-1: memory of node 0: 40 GiB"
    )
    (one,) = placed(cards(gpus=3, memory_gib=3 * 39), hosts=[spec]).virtual_machines
    assert one.memory_bytes == 117 * GIB, "one guest needs 1 GiB, not three"


def test_a_fraction_of_a_page_is_rounded_up_for_each_gpu() -> None:
    asked = HostResources(
        cpu_cores=16, host_memory_bytes=int(100.5 * GIB), shared_memory_bytes=0, scratch_bytes=0
    )
    sample = workload("tune", gpu="l40s", node_pool="l40s", gpus_per_node=2, resources=asked)
    machine = guest(placed(sample, hosts=[host([0, 0], nodes=1)]))
    assert machine.memory_bytes == 2 * 51 * GIB


def test_a_node_without_cpus_is_a_gpus_memory_and_nobodys_ram() -> None:
    """GH200: the GPU's memory is NUMA node 1."""
    spec = host([0], nodes=1, cores=72, memory=480, threads=1, cpu_vendor="arm")
    spec["numa_nodes"].append({"memory": "96 GiB"})
    placement = placed(cards(), hosts=[spec])
    assert nodes(guest(placement)) == [0]
    (used,) = placement.hosts
    assert [(n.node, len(n.cores), n.hugepages) for n in used.numa_nodes] == [
        (0, 72, 449),
        (1, 0, 0),
    ]
    assert "hugepages=0:449" in used.kernel_parameters


# --- network cards and drives --------------------------------------------------------------------


def network(gpus: int = 2, **changes: Any) -> Any:
    return cards(gpus=gpus, nodes_per_replica=2, **changes)


def parents(machine: VirtualMachine) -> dict[str, str]:
    """The card of each GPU, by the GPU's name."""
    nics = {d.name: d.parent or "" for d in machine.devices if d.kind == "nic"}
    return {f"gpu{name[3:]}": parent for name, parent in nics.items()}


def pair(spec: dict[str, Any], **changes: Any) -> VirtualMachine:
    """The first of two guests of one replica."""
    both = {**spec, "names": ["hv-1", "hv-2"]}
    return guest(placed(network(**changes), hosts=[both]))


def test_of_several_cards_on_a_switch_each_gpu_gets_its_own() -> None:
    spec = host([0, 0], gpu={n: {"switch": "s0"} for n in (0, 1)})
    spec["nics"] = [card(n, 0, switch="s0") for n in (0, 1)] + [card(2, 0), card(3, 1)]
    assert parents(pair(spec)) == {"gpu0": "0000:80:00.0", "gpu1": "0000:81:00.0"}


def test_a_fast_card_serves_several_gpus_before_a_slow_one_serves_any() -> None:
    """400 Gb/s for two GPUs is 25 GB/s each, more than a card of 10 GB/s gives alone."""
    spec = host([0, 0, 0])
    spec["nics"] = [card(0, 0, bandwidth="10 GB/s"), card(1, 0, bandwidth="50 GB/s")]
    found = parents(pair(spec, gpus=3))
    assert set(found.values()) == {"0000:81:00.0"}


def test_a_card_without_a_rate_is_taken_by_turns() -> None:
    spec = host([0, 0])
    spec["nics"] = [card(0, 0), card(1, 0, bandwidth="50 GB/s")]
    assert len(set(parents(pair(spec)).values())) == 2


def test_a_card_that_two_gpus_share_gives_each_a_function_on_their_switch() -> None:
    spec = host([0, 0, 1, 1], gpu={n: {"switch": f"s{n // 2}"} for n in range(4)})
    spec["nics"] = [card(0, 0, switch="s0"), card(1, 1, switch="s1")]
    machine = pair(spec, gpus=4)
    assert list(parents(machine).values()) == ["0000:80:00.0"] * 2 + ["0000:81:00.0"] * 2
    functions = [d.address for d in machine.devices if d.kind == "nic"]
    assert len(set(functions)) == 4


def test_the_switch_comes_before_the_node_and_a_used_up_card_before_a_far_one() -> None:
    spec = host([0, 0], gpu={n: {"switch": "s0"} for n in (0, 1)})
    spec["nics"] = [card(0, 1), card(1, 0), card(2, 0, switch="s0", functions=1)]
    assert parents(pair(spec)) == {"gpu0": "0000:82:00.0", "gpu1": "0000:81:00.0"}


def test_no_card_gives_more_functions_than_it_has() -> None:
    spec = {**host([0, 0]), "names": ["hv-1", "hv-2"], "nics": [card(0, 0, functions=1)]}
    placement = placed(network(), hosts=[spec])
    (problem,) = said(placement, "GP044")
    assert problem.severity is Severity.ERROR
    assert problem.message == (
        "the fabric does not reach 'tune': no NIC has a virtual function left for 2 of its 4 GPUs"
    )


def drives(machine: VirtualMachine) -> list[str]:
    return [d.address for d in machine.devices if d.kind == "nvme"]


def test_the_drive_on_the_gpus_switch_comes_first() -> None:
    spec = host([0, 0], gpu={1: {"switch": "s1"}, 0: {"switch": "s0"}})
    spec["nvme"] = [drive(0, 0), drive(1, 0, switch="s1"), drive(2, 0, switch="s0"), drive(3, 1)]
    placement = placed(cards(replicas=2, scratch_bytes=1 * TB), hosts=[spec])
    found = {numbers(m)[0]: drives(m) for m in placement.virtual_machines}
    assert found == {0: ["0000:c2:00.0"], 1: ["0000:c1:00.0"]}


def test_guests_of_one_node_divide_its_drives_by_their_gpus() -> None:
    spec = host([0, 0, 0, 0], nodes=1, nvme=[drive(n, 0) for n in range(4)])
    one = cards("one", 1, replicas=2, cores=6, scratch_bytes=1 * TB)
    two = cards("two", 2, cores=12, scratch_bytes=2 * TB)
    placement = placed(one, two, hosts=[spec])
    found = {m.name: len(drives(m)) for m in placement.virtual_machines}
    assert found == {"one-0": 1, "one-1": 1, "two-0": 2}
    greedy = guest(placed(cards(scratch_bytes=2 * TB), hosts=[spec]))
    assert drives(greedy) == [], "two drives are more than a quarter of them"
    assert greedy.disks[0].size_bytes == 64 * GIB + 2 * TB


# --- IOMMU groups --------------------------------------------------------------------------------


def grouped(*groups: int, **more: Any) -> dict[str, Any]:
    """A one-node host whose GPUs are in these IOMMU groups."""
    extra = {n: {"iommu_group": group} for n, group in enumerate(groups)}
    return host([0] * len(groups), nodes=1, gpu=extra, **more)


def test_gpus_of_one_iommu_group_go_to_one_guest() -> None:
    placement = placed(cards("one"), cards("two", 2), hosts=[grouped(5, 5, 6)])
    assert numbers(guest(placement, "one-0")) == [2]
    assert numbers(guest(placement, "two-0")) == [0, 1]


def test_a_guest_that_would_tear_a_group_is_refused_with_the_groups() -> None:
    placement = placed(cards(), hosts=[grouped(5, 5)])
    assert placement.virtual_machines == ()
    (problem,) = said(placement, "GP046")
    assert problem.message == (
        "workload 'tune' needs 1 GPU in one guest, which no IOMMU groups of hv-1 make: "
        "they hold 2 GPUs"
    )


def test_a_group_that_is_used_in_part_is_not_free() -> None:
    """Three GPUs are left in number, and none of them can be given."""
    placement = placed(cards("a", 2), cards("b", 2), hosts=[grouped(5, 5, 5, 6)])
    assert placement.virtual_machines == ()
    assert len(refused(placement)) == 2


def test_a_gpu_in_a_group_with_one_of_another_type_is_not_free() -> None:
    """Whoever got it would get the other one too."""
    other = {"type": "h100-pcie-80gb", "pci_id": "10de:2331", "iommu_group": 5}
    spec = host([0, 0, 0], nodes=1, gpu={0: {"iommu_group": 5}, 1: other})
    placement = placed(cards(), hosts=[spec])
    assert numbers(guest(placement)) == [2]


def test_a_gpu_in_a_group_with_a_network_card_stays_with_the_host() -> None:
    spec = grouped(5, 6, nics=[card(0, 0, iommu_group=5)])
    placement = placed(cards(), hosts=[spec])
    assert numbers(guest(placement)) == [1]
    (warned,) = said(placement, "GP046")
    assert str(warned.origin) == "inventory.yaml:hosts[0].gpus[0].iommu_group"
    assert "its IOMMU group 5 holds the network card 0000:80:00.0" in warned.message


def test_a_drive_in_a_gpus_group_comes_along_and_holds_what_it_can() -> None:
    spec = grouped(5, 6, nvme=[drive(0, 0, iommu_group=5), drive(1, 0)])
    placement = placed(cards("a", scratch_bytes=2 * TB), cards("b"), hosts=[spec])
    with_drive = next(m for m in placement.virtual_machines if numbers(m) == [0])
    without = next(m for m in placement.virtual_machines if numbers(m) == [1])
    assert (drives(with_drive), drives(without)) == (["0000:c0:00.0"], [])
    root = guest(placement, "a-0").disks[0].size_bytes
    assert root == 64 * GIB + 2 * TB, "1 TB of drives does not hold 2 TB"


def test_two_drives_of_one_group_go_together_or_not_at_all() -> None:
    spec = grouped(1, 2, nvme=[drive(0, 0, iommu_group=9), drive(1, 0, iommu_group=9)])
    alone = placed(cards(replicas=2, scratch_bytes=1 * TB), hosts=[spec])
    assert [drives(m) for m in alone.virtual_machines] == [[], []]
    both = guest(placed(cards(gpus=2, scratch_bytes=1 * TB), hosts=[spec]))
    assert drives(both) == ["0000:c0:00.0", "0000:c1:00.0"]


def test_a_board_partition_never_tears_a_group() -> None:
    """Modules 5 and 7 are GPUs 0 and 1; with GPU 1 and 2 in one group, pairs of them are gone."""
    text = hgx_text().replace("iommu_group: 12", "iommu_group: 11")
    asked = HostResources(
        cpu_cores=16, host_memory_bytes=200 * GIB, shared_memory_bytes=0, scratch_bytes=0
    )
    placement = place_hgx(workload(gpus_per_node=2, replicas=6, resources=asked), text=text)
    parts = [(m.host, m.fabric_partition) for m in placement.virtual_machines]
    assert parts == [(h, p) for h in ("hv-01", "hv-02") for p in (3, 4)]
    whole = place_hgx(workload(gpus_per_node=4, replicas=4), text=text)
    assert [m.fabric_partition for m in whole.virtual_machines] == [1, 2, 1, 2]


# --- fabric and islands --------------------------------------------------------------------------


def test_a_board_whose_partitions_no_source_lists_is_said() -> None:
    """Never another architecture's partitions: the guest is placed, and not checked."""
    unlisted = gpu(architecture="rubin", fabric_board=None)
    asked = HostResources(
        cpu_cores=16, host_memory_bytes=200 * GIB, shared_memory_bytes=0, scratch_bytes=0
    )
    wanted = workload(gpus_per_node=2, resources=asked)
    placement = place("rack", "libvirt", [wanted], [offer(unlisted)], inventory(hgx_text()))
    assert guest(placement).fabric_partition is None
    (warned,) = said(placement, "GP012")
    assert warned.message == (
        "no source lists the partitions of NVSwitch boards with 'h100-sxm-80gb', so it was not "
        "checked that the GPUs of guests of 'tune' are one"
    )
    alone = workload(gpus_per_node=1, gpu_count=1, resources=asked)
    placement = place("rack", "libvirt", [alone], [offer(unlisted)], inventory(hgx_text()))
    assert said(placement, "GP012") == [], "one GPU needs no partition"


def bridged(*pairs: str, **more: Any) -> dict[str, Any]:
    """A host of six cards with bridges between pairs such as `1-2`."""
    links = [{"link": "NV12", "between": [f"gpu{n}" for n in pair.split("-")]} for pair in pairs]
    return host([0, 0, 0, 1, 1, 1], links=links, **more)


def test_a_tensor_parallel_guest_gets_the_cards_that_a_bridge_joins() -> None:
    placement = placed(cards(gpus=2, replicas=2), hosts=[bridged("1-2", "3-5")])
    assert [numbers(m) for m in placement.virtual_machines] == [[1, 2], [3, 5]]


def test_a_bridge_over_sockets_is_still_better_than_two_cards_of_one() -> None:
    machine = guest(placed(cards(gpus=2), hosts=[bridged("0-5")]))
    assert (numbers(machine), nodes(machine)) == ([0, 5], [0, 1])


def test_a_single_gpu_leaves_pairs_whole() -> None:
    placement = placed(cards("one", replicas=2), cards("two", 2), hosts=[bridged("0-1", "3-4")])
    assert numbers(guest(placement, "two-0")) == [0, 1]
    singles = sorted(
        n for m in placement.virtual_machines if len(numbers(m)) == 1 for n in numbers(m)
    )
    assert singles == [2, 5]


def test_four_gpus_are_two_whole_pairs_and_three_a_pair_with_one() -> None:
    spec = bridged("0-1", "3-4")
    assert numbers(guest(placed(cards(gpus=4), hosts=[spec]))) == [0, 1, 3, 4]
    assert numbers(guest(placed(cards(gpus=3), hosts=[spec]))) == [0, 1, 2]


def test_a_bridge_of_four_is_one_island_and_pcie_paths_are_none() -> None:
    links = [
        {"link": "NV6", "between": ["gpu1", "gpu2", "gpu3", "gpu4"]},
        {"link": "PHB", "between": ["gpu0"], "to": ["gpu1", "gpu2"]},
        {"link": "SYS", "between": ["gpu0"], "to": ["gpu5"]},
    ]
    spec = host([0, 0, 0, 1, 1, 1], links=links)
    assert numbers(guest(placed(cards(gpus=4), hosts=[spec]))) == [1, 2, 3, 4]
    assert numbers(guest(placed(cards(gpus=2), hosts=[spec]))) == [1, 2]


def test_links_between_two_lists_join_each_with_each() -> None:
    spec = host([0] * 4, nodes=1)
    spec["links"] = [{"link": "NV4", "between": ["gpu0"], "to": ["gpu3"]}]
    assert numbers(guest(placed(cards(gpus=2), hosts=[spec]))) == [0, 3]


def test_a_link_of_a_card_that_is_not_there_is_a_contradiction() -> None:
    (problem,) = placed(cards(), hosts=[bridged("1-6")]).diagnostics
    assert (problem.rule, problem.message) == (
        "GP007",
        "a link of 'gpu6', but the host has 6 in 'gpus'",
    )
    assert str(problem.origin) == "inventory.yaml:hosts[0].links[0].between[1]"
    assert [str(r.origin) for r in problem.related] == ["inventory.yaml:hosts[0].gpus"]


def test_every_card_of_a_host_has_an_address_of_its_own() -> None:
    """Also those after the first that is no GPU."""
    addresses = ("0000:e1:00.0", "0000:e2:00.0", "0000:e2:00.0")
    nics = [{"type": "connectx-7", "address": a, "numa_node": 0} for a in addresses]
    (problem,) = placed(cards(), hosts=[host([0, 0, 1, 1], nics=nics)]).diagnostics
    assert problem.message == "two devices have the address 0000:e2:00.0"
    assert str(problem.origin) == "inventory.yaml:hosts[0].nics[2].address"


# --- Kubernetes ----------------------------------------------------------------------------------


def pods(spec: dict[str, Any], **changes: Any) -> Placement:
    wanted = cards(isolation="shared", **changes)
    inventory = as_inventory({**spec, "cpu_cores": None})
    names = tuple(spec["names"])
    there = offer(
        gpu("l40s"), gpus_per_node=len(spec["gpus"]), node_count=len(names), node_names=names
    )
    return place("rack", "kubernetes", [wanted], [there], inventory)


def test_a_pod_over_numa_nodes_is_told_of_the_policy_that_refuses_it() -> None:
    spec = host([0] * 4 + [1] * 4, cores=48)
    (told,) = said(pods(spec, gpus=8), "GP045")
    assert told.severity is Severity.INFO
    assert told.message.startswith(
        "pods of 'tune' have 8 GPUs, and no NUMA node of hv-1 has more than 4"
    )
    assert said(pods(spec, gpus=4), "GP045") == []


def test_of_a_host_that_is_one_numa_node_nothing_is_to_be_told() -> None:
    spec = host([0] * 4, nodes=1, cores=8, memory=64)
    assert pods(spec, gpus=4, cores=64).diagnostics == ()


def test_a_pod_that_asks_more_cores_than_its_part_of_the_gpus_node_is_told() -> None:
    """128 cores for 8 GPUs look like 14 each; those near a GPU are 7."""
    spec = host([0, 0, 2, 2, 4, 4, 6, 6], nodes=8, cores=16, memory=256)
    (told,) = said(pods(spec, cores=14), "GP048")
    assert "ask 14 cores a GPU, but NUMA node 0 of hv-1 has 7 for each" in told.message
    assert said(pods(spec, cores=7), "GP048") == []


def test_a_pod_that_asks_more_memory_than_its_part_of_the_gpus_node_is_told() -> None:
    spec = host([0, 0, 1, 1], cores=48, memory=128)
    (told,) = said(pods(spec, memory_gib=100), "GP048")
    assert "ask 100 GiB of memory a GPU, but NUMA node 0 of hv-1 has 64 GiB" in told.message


@pytest.mark.parametrize("poor", range(3))
@pytest.mark.parametrize("field", ["cores", "memory"])
def test_the_first_node_that_has_less_than_its_pods_ask_is_told(poor: int, field: str) -> None:
    """Wherever it stands, and once; cores and memory of the others are enough."""
    spec = host([0, 0, 1, 1, 2, 2], nodes=3, cores=32, memory=512)
    if field == "memory":
        spec["numa_nodes"][poor]["memory"] = "64 GiB"
    else:
        first = 32 * poor
        spec["numa_nodes"][poor]["cpus"] = f"{first}-{first + 7},{first + 96}-{first + 103}"
    (told,) = said(pods(spec, cores=8, memory_gib=60), "GP048")
    assert f"NUMA node {poor} of hv-1 has" in told.message
    assert ("cores a GPU" in told.message) == (field == "cores")


def test_more_than_eight_numa_nodes_stop_the_topology_manager() -> None:
    spec = host([0], nodes=1, cores=72, memory=480, threads=1, cpu_vendor="arm")
    spec["numa_nodes"] += [{"memory": "96 GiB"}] + [{"memory": "1 GiB"}] * 7
    (told,) = said(pods(spec), "GP049")
    assert told.message.startswith("hv-1 has 9 NUMA nodes")
    assert 'max-allowable-numa-nodes: "9"' in told.help
    assert said(pods(host([0] * 8, nodes=8)), "GP049") == []


def test_a_guest_may_take_more_than_an_equal_part_of_its_node() -> None:
    spec = host([0, 0], nodes=1, cores=32)
    big = cards("a", cores=20, memory_gib=100)
    placement = placed(big, cards("b"), hosts=[spec])
    assert cores_of(guest(placement, "a-0")) == [20]
    assert guest(placement, "a-0").memory_bytes == 100 * GIB
