"""Guests that are there stay where they are; one that moves is named."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuplan.pipeline import Standing, compile_files
from gpuplan.placement.api import Placement
from gpuplan.placement.place import place
from gpuplan.plan.changes.moves import carry_over
from gpuplan.plan.model import HostResources, Plan, Room, VirtualMachine, Workload
from gpuplan.units import GIB, TB
from tests.support.hypervisor_plans import plan_of
from tests.support.placement_hosts import as_inventory, card, cards, drive, host
from tests.support.placement_samples import (
    gpu,
    hgx_text,
    inventory,
    l40s,
    notebook,
    offer,
    workload,
)


def compiled(
    *wanted: Workload, hosts: Sequence[dict[str, Any]], former: Placement | None = None
) -> Placement:
    machines = former.virtual_machines if former else ()
    offers = [offer(l40s(), gpus_per_node=2)]
    return place("rack", "libvirt", wanted, offers, as_inventory(*hosts), former=machines)


def named(placement: Placement) -> dict[str, VirtualMachine]:
    return {m.name: m for m in placement.virtual_machines}


def where(placement: Placement) -> dict[str, str]:
    return {m.name: m.host for m in placement.virtual_machines}


def described(machine: VirtualMachine) -> VirtualMachine:
    return replace(machine, origin=None)


def full_host(name: str, **more: Any) -> dict[str, Any]:
    """Two GPUs, two cards, two drives on one node."""
    nics, drives = [card(0, 0), card(1, 0)], [drive(0, 0), drive(1, 0)]
    return host([0, 0], names=[name], nics=nics, nvme=drives, nodes=1, **more)


def test_a_host_that_is_listed_first_draws_no_guest_away() -> None:
    before = compiled(cards("a"), cards("b"), hosts=[full_host("hv-2")])
    after = compiled(
        cards("a"), cards("b"), hosts=[full_host("hv-1"), full_host("hv-2")], former=before
    )
    assert where(after) == {"a-0": "hv-2", "b-0": "hv-2"}
    assert {n: described(m) for n, m in named(after).items()} == {
        n: described(m) for n, m in named(before).items()
    }


def test_where_a_guest_goes_away_the_others_keep_all_they_have() -> None:
    wanted = [
        cards(name, scratch_bytes=1 * TB // 2, nodes_per_replica=2) for name in ("a", "b", "c")
    ]
    hosts = [full_host(f"hv-{n}") for n in (1, 2, 3)]
    before = compiled(*wanted, hosts=hosts)
    assert len(named(before)) == 6
    after = compiled(*wanted[1:], hosts=hosts, former=before)
    for name, machine in named(after).items():
        assert described(machine) == described(named(before)[name]), name
    fresh = compiled(*wanted[1:], hosts=hosts)
    assert where(fresh) != where(after), "without the plan that is there, some move"


def test_a_guest_keeps_its_cores_card_and_drive_where_its_neighbour_goes() -> None:
    both = [cards(name, scratch_bytes=1 * TB // 2) for name in ("a", "b")]
    before = compiled(*both, hosts=[full_host("hv-1")])
    assert where(before) == {"a-0": "hv-1", "b-0": "hv-1"}
    for work in both:
        name = f"{work.name}-0"
        after = compiled(work, hosts=[full_host("hv-1")], former=before)
        assert described(named(after)[name]) == described(named(before)[name])
        elsewhere = compiled(work, hosts=[full_host("hv-2")], former=before)
        fresh = compiled(work, hosts=[full_host("hv-2")])
        assert described(named(elsewhere)[name]) == described(named(fresh)[name])


def test_a_guest_keeps_the_function_that_was_left_to_it() -> None:
    """Two GPUs and one card: the second guest has the card's second function, and keeps it."""
    rack = host([0, 0], names=["hv-1"], nics=[card(0, 0)], nodes=1)
    offers = [offer(l40s(), gpus_per_node=2)]

    def functions(*wanted: Workload, former: Sequence[VirtualMachine] = ()) -> Placement:
        return place(
            "rack", "libvirt", wanted, offers, as_inventory(rack), former=former,
            fabric_bytes_per_s=1e9,
        )  # fmt: skip

    both = functions(cards("a"), cards("b"))
    first, second = ([d for d in m.devices if d.kind == "nic"] for m in both.virtual_machines)
    assert [d.address for d in (*first, *second)] == ["0000:80:00.1", "0000:80:00.2"]
    (alone,) = functions(cards("b"), former=both.virtual_machines).virtual_machines
    assert [d for d in alone.devices if d.kind == "nic"] == second


def test_what_idle_gpus_of_hosts_would_hold_is_held() -> None:
    """Two of four GPUs idle: another guest on each, or one on both; two further hosts stand empty
    and are none of the plan's."""
    rack = [full_host("hv-1"), host([0, 0], names=["hv-2"]), host([0, 0], names=["hv-3"])]
    before = compiled(cards("a"), cards("b", gpus=2), hosts=rack[:2])
    assert [(p.idle_gpus, p.room) for p in before.node_pools] == [
        (1, (Room(workload="a", replicas=1),)),
        (0, ()),
    ]
    functions = {
        n: {"virtual_functions": [f"0000:{16 + n:02x}:01.{f}" for f in range(4)]} for n in (0, 1)
    }
    hosts = [host([0, 0], names=["hv-1"], gpu=functions)]
    (pool,) = compiled(notebook("u", replicas=3), hosts=hosts).node_pools
    (more,) = pool.room
    assert (pool.idle_gpus, more.replicas > 0) == (1, True)
    for count in (3 + more.replicas, 4 + more.replicas):
        grown = compiled(notebook("u", replicas=count), hosts=hosts)
        assert len(grown.virtual_machines) == 3 + more.replicas, "one more has no place"


def test_of_three_drives_each_of_two_guests_has_one() -> None:
    drives = [drive(n, 0) for n in range(3)]
    rack = [host([0, 0], names=["hv-1"], nvme=drives, nodes=1)]
    work = [cards(name, scratch_bytes=2 * TB) for name in ("a", "b")]
    for wanted in (work[:1], work):
        machines = compiled(*wanted, hosts=rack).virtual_machines
        assert all(sum(d.kind == "nvme" for d in m.devices) <= 1 for m in machines)


def test_a_newcomer_takes_what_is_left_though_it_is_bigger() -> None:
    hosts = [full_host("hv-1"), full_host("hv-2")]
    before = compiled(cards("a"), hosts=hosts)
    after = compiled(cards("a"), cards("big", gpus=2), hosts=hosts, former=before)
    assert where(after) == {"a-0": where(before)["a-0"], "big-0": "hv-2"}
    assert described(named(after)["a-0"]) == described(named(before)["a-0"])


def test_a_guest_that_grows_stays_on_its_host() -> None:
    hosts = [full_host("hv-1"), full_host("hv-2")]
    before = compiled(cards("x", gpus=2), cards("a"), hosts=hosts)
    assert where(before)["a-0"] == "hv-2"
    after = compiled(cards("a", gpus=2), hosts=hosts, former=before)
    assert where(after) == {"a-0": "hv-2"}


@pytest.mark.parametrize("gpus", [1, 2, 4])
def test_guests_of_a_board_keep_their_partition_where_others_go(gpus: int) -> None:
    """Each of those that fill a host, alone afterwards."""
    size = HostResources(
        cpu_cores=4 * gpus,
        host_memory_bytes=80 * gpus * GIB,
        shared_memory_bytes=0,
        scratch_bytes=0,
    )
    works = [workload(f"w{n}", gpus_per_node=gpus, resources=size) for n in range(8 // gpus)]

    def on_board(*wanted: Workload, former: Sequence[VirtualMachine] = ()) -> list[VirtualMachine]:
        board = inventory(hgx_text())
        return list(
            place("rack", "libvirt", wanted, [offer(gpu())], board, former=former).virtual_machines
        )

    before = on_board(*works)
    assert len({(m.host, m.fabric_partition) for m in before}) == len(works)
    for work, machine in zip(works, before, strict=True):
        (stays,) = on_board(work, former=before)
        assert described(stays) == described(machine)


def test_vgpus_keep_their_functions() -> None:
    functions = {
        n: {"virtual_functions": [f"0000:{16 + n:02x}:01.{f}" for f in range(4)]} for n in (0, 1)
    }
    hosts = [host([0, 0], names=["hv-1"], gpu=functions)]
    before = compiled(notebook("u", replicas=6), hosts=hosts)
    after = compiled(
        notebook("u", replicas=6), notebook("a", replicas=1), hosts=hosts, former=before
    )
    for name, machine in named(before).items():
        assert described(named(after)[name]) == described(machine)
    taken = [d.address for m in after.virtual_machines for d in m.devices]
    assert len(set(taken)) == len(taken) == 7


def test_a_stranger_is_not_put_beside_a_guest_that_wants_the_host_alone() -> None:
    hosts = [full_host("hv-1"), full_host("hv-2")]
    before = compiled(cards("a", tenant="one"), hosts=hosts)
    alone = cards("z", tenant="two", isolation="node")
    after = compiled(cards("a", tenant="one"), alone, hosts=hosts, former=before)
    assert where(after) == {"a-0": "hv-1", "z-0": "hv-2"}


def test_all_are_placed_anew_only_where_some_would_have_no_place() -> None:
    hosts = [full_host("hv-1"), full_host("hv-2")]
    before = compiled(cards("x"), cards("a"), cards("y"), cards("b"), hosts=hosts)
    left = [n.removesuffix("-0") for n in ("a-0", "b-0")]
    apart = [name for name in left if where(before)[f"{name}-0"] == "hv-1"]
    assert len(apart) == 1
    after = compiled(cards("a"), cards("b"), cards("big", gpus=2), hosts=hosts, former=before)
    assert sorted(where(after)) == ["a-0", "b-0", "big-0"]
    assert where(after)["a-0"] == where(after)["b-0"] != where(after)["big-0"]
    (note,) = carry_over(plan(before), plan(after))[1]
    assert note.rule == "GP025"


def test_a_stack_is_compiled_over_the_one_that_is_there(tmp_path: Path) -> None:
    examples = Path(__file__).parents[2] / "examples"
    for name in ("passthrough.yaml", "inventories/hypervisors.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(examples / name, tmp_path / name)
    manifest, hosts = tmp_path / "passthrough.yaml", tmp_path / "inventories/hypervisors.yaml"
    (first,) = compile_files([manifest]).stacks
    hosts.write_text(hosts.read_text().replace("[hv-01, hv-02]", "[hv-02, hv-01]"))
    (fresh,) = compile_files([manifest]).stacks
    (over,) = compile_files([manifest], standing=lambda _: Standing(first.plan)).stacks
    assert [m.host for m in fresh.plan.virtual_machines] == ["hv-02", "hv-01"]
    assert [m.host for m in over.plan.virtual_machines] == ["hv-01", "hv-02"]
    hosts.write_text(hosts.read_text().replace("hv-02", "hv-04"))
    (moved,) = compile_files([manifest], standing=lambda _: Standing(first.plan)).stacks
    (note,) = [d for d in moved.diagnostics if d.rule == "GP025"]
    assert "VM lora-70b-1 moves from hv-02 to hv-04" in note.message


def plan(placement: Placement) -> Plan:
    return plan_of(placement)


def test_a_move_says_what_becomes_of_the_disks_and_what_to_do_first() -> None:
    before = compiled(cards("a"), hosts=[full_host("hv-1")])
    after = compiled(cards("a"), hosts=[full_host("hv-2")], former=before)
    (note,) = carry_over(plan(before), plan(after))[1]
    assert note.message == (
        "VM a-0 moves from hv-1 to hv-2, where it starts anew: its disks stay on hv-1: "
        "/dev/vg0/a-0-root (64 GiB) to copy"
    )
    assert note.help is not None
    stop, copy = "ssh root@hv-1 virsh shutdown a-0", "ssh root@hv-1 dd if=/dev/vg0/a-0-root"
    assert note.help.index(stop) < note.help.index(copy) < note.help.index("unprotect")
    assert carry_over(plan(before), plan(before))[1] == ()
