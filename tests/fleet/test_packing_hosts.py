"""What the packer reads of an inventory's hosts, and what it says where facts are absent."""

from __future__ import annotations

from typing import Any

import pytest

from gpuplan.catalog.load import load_catalog
from gpuplan.catalog.shapes import Wanted, shapes
from gpuplan.fleet.buy import with_bought
from gpuplan.fleet.hosts import Hosts
from gpuplan.source import Origin
from gpuplan.units import GIB
from tests.fleet.test_packing_facts import NODES, described, said

BOARD = [{"type": "h100-sxm-80gb", "module_id": n} for n in range(1, 9)]
GUESTS = {"hypervisor": {"disk_path": "/dev/vg0", "bridge": "br0"}}
DUAL = [{"cpus": "0-7,16-23", "memory": "128 GiB"}, {"cpus": "8-15,24-31", "memory": "256 GiB"}]


def places(fleet: Hosts) -> list[tuple[str, tuple[str | int, ...]]]:
    """The code of each problem, and where in the inventory it is."""
    return [(p.rule, p.origin.path) for p in fleet.problems if isinstance(p.origin, Origin)]


@pytest.mark.parametrize(("names", "shown"), [(["a"], "a"), (["b", "a"], "b…")])
def test_a_host_that_nothing_prices_is_named_and_left_out(names: list[str], shown: str) -> None:
    fleet = described({"names": names, "price": None, "gpus": [{"type": "a40"}]}, {"names": ["c"]})
    assert said(fleet.problems) == [f"no price is known of {shown}: hosts cannot be weighed"]
    assert places(fleet) == [("GP012", ("hosts", 0, "names"))]
    assert [t.names for t in fleet.types] == [("c",)]


def test_gpus_without_a_count_are_priced_one_by_one() -> None:
    listed = load_catalog().price("l40s")
    assert listed is not None
    fleet = described({"price": None, "gpus": [{"type": "l40s"}, {"type": "l40s", "count": 2}]})
    assert fleet.types[0].cost == round(listed.usd_per_hour * 3 * 1_000_000)
    assert fleet.types[0].name == "3x-l40s"


def test_hosts_that_say_what_is_missing_and_those_that_do_not_are_told_apart() -> None:
    fleet = described({"memory": None, "price": None, "gpus": [{"type": "a40"}]}, {"gpus": []}, {})
    assert [rule for rule, _ in places(fleet)] == ["GP012", "GP012"], "memory, and a price"
    assert [t.names for t in fleet.types] == [("a",)], "a host without GPUs is skipped"


@pytest.mark.parametrize(("threads", "cores"), [(1, 62), (2, 62), (4, 62)])
def test_cores_are_physical_whatever_threads_they_have(threads: int, cores: int) -> None:
    assert described({"threads_per_core": threads}).types[0].nodes[0].cores == cores


def test_a_host_that_is_counted_as_one_has_the_cores_and_memory_of_its_nodes() -> None:
    nodes = {"numa_nodes": DUAL, "cpu_cores": None, "memory": None}
    fleet = described(nodes)
    (node,) = fleet.types[0].nodes
    assert (node.gpus, node.cores) == ((0, 1), 14), "16 cores with two threads, of which it keeps 2"
    assert node.memory_bytes == 345 * GIB, "nine tenths of 384 GiB"
    assert places(fleet) == [("GP071", ("hosts", 0, "gpus", 0))]
    assert "NUMA node of a GPU is not stated" in said(fleet.problems)[0]


def test_nodes_that_list_no_cpus_have_the_cores_of_the_host_or_none() -> None:
    bare = {"numa_nodes": [{"memory": "128 GiB"}] * 2, "memory": None}
    assert described(bare).types[0].nodes[0].cores == 62
    assert described(bare | {"cpu_cores": None}).types[0].nodes[0].cores == 0
    kept = {"hypervisor": GUESTS["hypervisor"] | {"reserved_cores": 1}}
    assert described(bare | kept | {"cpu_cores": 9}).types[0].nodes[0].cores == 8


def test_one_node_has_every_gpu_and_card_wherever_they_say_they_are() -> None:
    nic = {"type": "x", "address": "0000:41:00.0", "virtual_functions": ["0000:41:00.1"]}
    one = {"numa_nodes": NODES[:1], "cpu_cores": None, "memory": None, "nics": [nic]}
    fleet = described(one)
    assert fleet.problems == ()
    (node,) = fleet.types[0].nodes
    assert (node.gpus, [c.functions for c in node.cards]) == ((0, 1), [1])


def test_a_card_with_functions_on_no_stated_node_makes_the_host_one_node() -> None:
    gpus = [{"type": "l40s", "numa_node": n, "switch": f"sw{n}"} for n in (0, 1)]
    plain = {"type": "x", "address": "0000:41:00.0"}
    card = {"type": "x", "address": "0000:42:00.0", "virtual_functions": 4, "switch": "sw1"}
    nodes = {"numa_nodes": NODES, "cpu_cores": None, "memory": None, "gpus": gpus}
    without = described(nodes | {"nics": [plain]})
    assert (without.problems, len(without.types[0].nodes)) == ((), 2)
    fleet = described(nodes | {"nics": [plain, card]})
    assert places(fleet) == [("GP071", ("hosts", 0, "nics", 1))]
    (node,) = fleet.types[0].nodes
    assert [(c.functions, c.gpus) for c in node.cards] == [(4, (1,))], "it is near the second GPU"


# --- NVSwitch boards, bridges and IOMMU groups ---------------------------------------------------


def board(gpus: list[dict[str, Any]], **more: Any) -> Hosts:
    return described({"gpus": gpus} | GUESTS | more)


def test_the_partitions_of_a_board_are_sets_of_several_gpus_by_their_modules() -> None:
    fleet = board(list(reversed(BOARD)))
    (kind,) = fleet.types
    assert fleet.problems == ()
    assert {len(i) for i in kind.islands} == {2, 4, 8}
    assert (5, 7) in kind.islands, "modules 1 and 3 are the last GPU and the last but two"
    linked = board(BOARD, links=[{"link": "NV18", "between": ["gpu0", "gpu1"]}])
    assert linked.types[0].islands == board(BOARD).types[0].islands
    assert linked.problems == ()


@pytest.mark.parametrize("lost", [0, 7])
def test_a_board_without_all_modules_is_not_checked(lost: int) -> None:
    gpus = [g if n != lost else {"type": g["type"]} for n, g in enumerate(BOARD)]
    fleet = board(gpus)
    assert places(fleet) == [("GP071", ("hosts", 0, "gpus", 0))]
    assert fleet.types[0].islands == ()


@pytest.mark.parametrize(("gpus", "told"), [(1, False), (2, True), (4, True)])
def test_a_board_whose_partitions_no_source_lists_is_told(gpus: int, told: bool) -> None:
    fleet = board([{"type": "gb200-186gb"}] * gpus)
    assert places(fleet) == [("GP012", ("hosts", 0, "gpus", 0))] * told
    assert fleet.types[0].islands == ()
    assert described({"gpus": [{"type": "gb200-186gb"}] * gpus}).problems == ()


def test_gpus_that_a_bridge_joins_are_told_with_the_link() -> None:
    fleet = described({"links": [{"link": "NV4", "between": ["gpu0", "gpu1"]}], "gpus": [
        {"type": "a40", "count": 4}
    ]})  # fmt: skip
    assert places(fleet) == [("GP071", ("hosts", 0, "links", 0))]
    assert (0, 1) in fleet.types[0].islands


def test_cards_off_the_bridge_may_be_beside_others_and_those_of_a_board_may_not() -> None:
    """Cards reach each other over PCIe; GPUs of a board whose NVLink is broken stand alone."""
    three = [{"link": "NV4", "between": ["gpu0", "gpu1", "gpu2"]}]
    (cards,) = described({"links": three, "gpus": [{"type": "a40", "count": 4}]}).types
    assert {len(s) for s in cards.islands} == {2, 3, 4}
    (board,) = described({"links": three, "gpus": [{"type": "h100-sxm-80gb", "count": 4}]}).types
    assert set(board.islands) == {(0, 1), (0, 2), (1, 2), (0, 1, 2)}


def test_gpus_with_groups_of_their_own_are_as_gpus_without() -> None:
    """Hosts that differ in nothing but the numbers of such groups are one type."""
    alone = {"gpus": [{"type": "l40s", "iommu_group": n} for n in (40, 41)]} | GUESTS
    plain = {"gpus": [{"type": "l40s"}] * 2, "names": ["b"]} | GUESTS
    (kind,) = described(alone, plain).types
    assert (kind.names, kind.together) == (("a", "b"), ())
    shared = {"gpus": [{"type": "l40s", "iommu_group": 40}] * 2}
    assert described(shared | GUESTS).types[0].together == ((0, 1),)
    assert described(shared).types[0].together == (), "containers share them out as they like"


def test_gpus_in_a_group_with_what_the_host_keeps_go_to_no_guest() -> None:
    """As `compile` has it, with the same words."""
    gpus = [{"type": "l40s", "iommu_group": n} for n in (40, 40, 41, 42)]
    drives = [{"iommu_group": 40}, {"iommu_group": 41, "in_use": []}]
    fleet = described({"gpus": gpus, "nvme": drives} | GUESTS)
    assert (fleet.types[0].together, fleet.types[0].unpassed) == ((), (0, 1))
    assert places(fleet) == [("GP046", ("hosts", 0, "gpus", n, "iommu_group")) for n in (0, 1)]
    assert described({"gpus": gpus, "nvme": drives}).types[0].unpassed == ()


# --- what is bought ------------------------------------------------------------------------------


def test_shapes_are_bought_at_prices_of_their_own_where_some_have_one() -> None:
    """A server that nobody rents out is not bought at the price of a GPU of another one."""
    catalog = load_catalog()
    known = shapes(catalog, "l40s", Wanted())
    own = {s.name: s.price.usd_per_hour * s.gpus for s in known if s.price}
    assert 0 < len(own) < len(known)
    assert len({usd / s.gpus for s in known if (usd := own.get(s.name))}) > 1
    fleet = with_bought(Hosts(), ["l40s"], catalog, Wanted())
    assert {t.name: t.cost for t in fleet.types} == {n: usd * 1_000_000 for n, usd in own.items()}


def test_a_gpu_that_one_place_has_not_is_no_mistake_there() -> None:
    nowhere = Wanted(place=("nobody", "nowhere"))
    assert with_bought(Hosts(), ["l40s"], load_catalog(), nowhere) == Hosts()
    (told,) = with_bought(Hosts(), ["l40"], load_catalog(), Wanted(names=("none",))).problems
    assert told.message.startswith("'l40' cannot be bought")
    (told,) = with_bought(Hosts(), ["l40z"], load_catalog(), nowhere).problems
    assert told.message.startswith("'l40z' cannot be bought: it is no GPU type")


def test_a_gpu_that_nothing_prices_is_not_bought() -> None:
    fleet = with_bought(Hosts(), ["gh200-144gb"], load_catalog(), Wanted())
    assert fleet.types == ()
    assert [p.rule for p in fleet.problems] == ["GP012"]
    assert "no price is known of hpe-proliant" in fleet.problems[0].message
