"""Amounts, places and messages at their edges: one GPU less, one node more, another's host."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from gpuplan.catalog.load import load_catalog
from gpuplan.catalog.shapes import Wanted, shapes
from gpuplan.diagnostics import Severity
from gpuplan.placement.api import Placement
from gpuplan.placement.cost import cost
from gpuplan.placement.place import place
from gpuplan.placement.pools.bins import capacity
from gpuplan.placement.pools.stages import stages
from gpuplan.plan import window
from gpuplan.plan.model import Cost, HostResources, Metric, VirtualMachine, Workload
from gpuplan.sharing.geometry import reachable, together
from gpuplan.sharing.modes import Part
from gpuplan.sizing.hardware.locality import of_shape
from gpuplan.units import GIB, HOURS_PER_MONTH, TB
from tests.support.placement_samples import (
    gpu,
    hgx_text,
    l40s,
    l40s_text,
    notebook,
    offer,
    place_hgx,
    place_l40s,
    workload,
)
from tests.support.samples import estimate


def resources(cores: int, memory_gib: int, scratch_bytes: int = 0) -> HostResources:
    return HostResources(
        cpu_cores=cores,
        host_memory_bytes=memory_gib * GIB,
        shared_memory_bytes=0,
        scratch_bytes=scratch_bytes,
    )


def errors(placement: Placement) -> list[str]:
    return [d.message for d in placement.diagnostics if d.severity is Severity.ERROR]


# --- hosts that are full -------------------------------------------------------------------------

TWO_HOSTS = l40s_text().replace("[hv-11]", "[hv-11, hv-12]")


def cards(name: str, gpus: int, **changes: object) -> object:
    few = resources(2 * gpus, 16 * gpus)
    return workload(name, gpu="l40s", node_pool="l40s", gpus_per_node=gpus,
                    **({"resources": few} | changes))  # fmt: skip


@pytest.mark.parametrize("sizes", [(4, 3), (3, 4)])
def test_a_guest_without_a_place_is_told_of_the_host_that_has_most_left(
    sizes: tuple[int, int],
) -> None:
    """Guests go biggest first: the host with four is full, the one with three has one GPU left."""
    guests = [cards(f"g{n}", size) for n, size in enumerate(sizes)]
    placement = place_l40s(*guests, cards("last", 2), text=TWO_HOSTS)
    assert errors(placement) == [
        "no room for 1 of 1 guests of 'last' on hv-12: l40s: 2 asked, 3 of 4 taken, 1 short"
    ]


def test_a_guest_is_told_that_another_tenants_host_is_taken_as_a_whole() -> None:
    one = l40s_text()
    red = cards("red", 1, isolation="node", tenant="red")
    placement = place_l40s(red, cards("blue", 2, tenant="blue"), text=one)
    assert errors(placement) == [
        "no room for 1 of 1 guests of 'blue' on hv-11: l40s: 2 asked, 4 of 4 taken, 2 short"
    ]


def test_cores_are_short_by_what_all_gpus_of_a_node_ask() -> None:
    """A node has 32 cores, of which the host keeps two; its two cards ask for so many each."""
    assert errors(place_l40s(cards("all", 4, resources=resources(60, 64)))) == []
    (problem,) = errors(place_l40s(cards("all", 4, resources=resources(64, 64))))
    assert "cores of node 0: 32 asked, 0 of 30 taken, 2 short" in problem
    assert "cores of node 1: 32 asked, 0 of 30 taken, 2 short" in problem
    beside = cards("one", 1, resources=resources(16, 16))
    (problem,) = errors(place_l40s(cards("pair", 3, resources=resources(45, 48)), beside))
    assert "cores of node 1: 16 asked, 15 of 30 taken, 1 short" in problem


def test_one_address_is_of_one_gpu() -> None:
    text = l40s_text(4).replace("{type: l40s, address", "{type: l40s, count: 2, address", 1)
    assert "one address for 2 GPUs" in errors(place_l40s(cards("a", 1), text=text))


def without_a_place(*guests: Workload) -> str:
    (problem,) = (d for d in place_l40s(*guests).diagnostics if d.severity is Severity.ERROR)
    return problem.label


def test_guests_without_a_place_are_told_what_they_lack_in_all() -> None:
    """Four cards: of six guests with one each, two find none."""
    assert without_a_place(cards("one", 1, replicas=6)) == (
        "without a place in all: 2 × l40s, 4 cores, 32 GiB memory"
    )
    assert without_a_place(cards("two", 2, replicas=4)) == (
        "without a place in all: 4 × l40s, 8 cores, 64 GiB memory"
    )
    parts = notebook(replicas=18, resources=resources(1, 12))
    assert without_a_place(parts) == "without a place in all: 2 × L40S-12C, 2 cores, 24 GiB memory"
    assert without_a_place(cards("all", 5)) == "", "one guest lacks what the message says"


# --- devices of a guest --------------------------------------------------------------------------


def behind(machine: VirtualMachine, kind: str) -> list[int]:
    return [d.group for d in machine.devices if d.kind == kind]


def test_devices_stand_behind_one_port_where_the_host_has_them_on_one_switch() -> None:
    """Hosts of eight GPUs; of the cards only those of node 1 are there, one on no GPU's switch."""
    text = hgx_text().replace("switch: s5, vlan", "switch: elsewhere, vlan")
    gone = [f"switch: s{n}, vlan" for n in (0, 1, 2, 3)]
    rows = [row for row in text.splitlines() if not any(word in row for word in gone)]
    scratch = resources(64, 800, 12 * TB)
    pair = workload(gpus_per_node=8, nodes_per_replica=2, resources=scratch)
    for machine in place_hgx(pair, text="\n".join(rows)).virtual_machines:
        gpus, nics, drives = (behind(machine, kind) for kind in ("gpu", "nic", "nvme"))
        assert len(gpus) == len(set(gpus)) == 8
        assert sorted(set(nics) & set(gpus)) == [gpus[n] for n in (4, 6, 7)]
        assert len(drives) == len(set(drives)) == 4
        assert not set(drives) & {*gpus, *nics}, "a drive is on no GPU's switch"
        assert min(*gpus, *nics, *drives) >= 0
        for number, cell in enumerate(machine.cells):
            near = [d.address for d in machine.devices if d.kind == "nvme" and d.cell == number]
            buses = ("2a", "2b") if cell.host_node == 0 else ("aa", "ab")
            assert near == [f"0000:{bus}:00.0" for bus in buses], "each beside its own node"
        cells = {d.cell for d in machine.devices if d.kind == "nic"}
        assert cells == {1}, "the cell of the card's own node, whichever GPU it serves"


# --- pools ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spare", "idle"),
    [(1, "1 node of 8 × l40s"), (2, "2 nodes of 8 × l40s"), (0, "")],
)
def test_nodes_that_stand_idle_are_named_where_others_are_too_few(spare: int, idle: str) -> None:
    offers = [offer(gpu(), node_count=2), offer(l40s(), node_count=spare)]
    many = workload("chat", isolation="shared", gpus_per_node=8, replicas=3)
    (problem,) = [
        d
        for d in place("chat", "kubernetes", [many], offers).diagnostics
        if d.severity is Severity.ERROR
    ]
    assert problem.label == (f"idle: {idle}" if idle else "")


def test_a_node_holds_as_many_parts_as_its_gpus_are_cut_into() -> None:
    assert capacity(offer(l40s(), gpus_per_node=4), 4).gpus == 16
    assert capacity(offer(l40s(), gpus_per_node=4), 1).gpus == 4
    assert len(place_l40s(notebook(replicas=16)).virtual_machines) == 16
    assert errors(place_l40s(notebook(replicas=17)))


def test_a_node_of_a_kubelet_keeps_a_tenth_of_its_memory() -> None:
    (server,) = shapes(load_catalog(), "h200-sxm-141gb", Wanted(names=("dgx-h200",)))
    node = of_shape(server, guests=False)
    half = (server.memory_bytes or 0) // 2
    assert node.free_pages == int(half * 0.9 // window.PAGE_BYTES)


# --- cost ----------------------------------------------------------------------------------------


def lasts(hours: float) -> Metric:
    return Metric(
        name="time_to_finish",
        unit="s",
        estimate=estimate(hours * 3600),
        limit=None,
        probability=None,
    )


def test_nodes_of_services_stay_and_those_of_runs_are_paid_until_they_end() -> None:
    """Two nodes for the service, two more for a run of two months, one more for one of ten hours.
    The pool is paid whole: shares of workloads say nothing about what stays."""
    service = workload("chat", usd_per_hour=Decimal(6), isolation="shared")
    short = workload("a", usd_per_hour=Decimal(4), metrics=(lasts(10),))
    long = workload("b", usd_per_hour=Decimal(4), metrics=(lasts(2 * HOURS_PER_MONTH),))
    placement = place("x", "kubernetes", [service], [offer(gpu())])
    (pool,) = placement.node_pools
    usd = Decimal("23.60")
    assert pool.usd_per_hour == usd

    def costs(nodes: dict[Decimal | None, int], *workloads: Workload) -> Cost:
        made = stages(nodes, nodes.__getitem__, max(nodes.values()))
        every = [replace(pool, node_count=max(nodes.values()))]
        return cost(every, workloads, [made], budget=None, price_source="x", price_date="")

    hours = {None: 2, Decimal(2 * HOURS_PER_MONTH): 4, Decimal(10): 5}
    mixed = costs(hours, service, short, long)
    assert mixed.usd_per_hour == 5 * usd
    assert mixed.runs_usd_per_hour == 3 * usd
    assert mixed.staying_usd_per_month == 2 * usd * HOURS_PER_MONTH
    assert mixed.runs_usd_per_month == usd * (10 + 2 * HOURS_PER_MONTH)
    assert mixed.usd_of_runs == usd * (10 + 4 * HOURS_PER_MONTH)
    beside = costs({None: 2, Decimal(10): 2}, service, short)
    assert (beside.usd_of_runs, beside.runs_usd_per_hour) == (0, 0), "on nodes that stay anyway"
    ending = costs({Decimal(10): 1}, short)
    assert (ending.runs_usd_per_hour, ending.usd_of_runs) == (usd, 10 * usd)
    assert costs({None: 2}, service).usd_of_runs is None
    stored = costs({Decimal(10): 1}, replace(short, usd_of_storage=Decimal(7)))
    assert (stored.usd_of_runs, stored.runs_usd_per_month) == (10 * usd + 7, 10 * usd + 7)
    months = costs({Decimal(2 * HOURS_PER_MONTH): 1}, replace(long, usd_of_storage=Decimal(7)))
    assert months.usd_of_runs == 2 * HOURS_PER_MONTH * usd + 7
    assert months.runs_usd_per_month == HOURS_PER_MONTH * usd + Decimal("3.5"), "half of it a month"
    unpriced = costs({Decimal(10): 1}, replace(short, usd_per_hour=None))
    assert unpriced.usd_of_runs is None


def test_hosts_of_runs_are_paid_until_their_last_guest_ends() -> None:
    """At $4 an hour: one host for ten hours, one for twenty; a service keeps its own."""
    runs = [cards(f"r{n}", 4, metrics=(lasts(n),)) for n in (10, 20)]
    ending = place_l40s(*runs, text=TWO_HOSTS).cost
    assert (ending.usd_of_runs, ending.usd_per_hour, ending.runs_usd_per_hour) == (120, 8, 8)
    beside = place_l40s(runs[0], cards("service", 4), text=TWO_HOSTS).cost
    assert (beside.usd_of_runs, beside.usd_per_hour, beside.runs_usd_per_hour) == (40, 8, 4)
    shared = place_l40s(cards("r", 2, metrics=(lasts(10),)), cards("service", 2)).cost
    assert (shared.usd_of_runs, shared.usd_per_hour, shared.runs_usd_per_hour) == (0, 4, 0)


# --- which parts are together --------------------------------------------------------------------


def part(size: int, most: int, starts: tuple[int, ...], extension: str = "") -> Part:
    return Part(
        name=f"{size}", memory_bytes=size, starts=starts, size=size, compute=size, maximum=most,
        extension=extension,
    )  # fmt: skip


def test_parts_of_one_size_or_none_are_on_a_gpu_of_one_size() -> None:
    sizes = (part(1, 4, ()), part(2, 2, ()))
    legal = [(a, b) for a in range(6) for b in range(4) if together(sizes, (a, b), uniform=True)]
    assert legal == [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (3, 0), (4, 0)]


def test_every_number_of_parts_that_fits_is_reached_and_no_other() -> None:
    """Halves at 0 and 2, quarters anywhere, three quarters at most."""
    parts = (part(2, 2, (0, 2)), part(1, 3, (0, 1, 2, 3)))
    placed = reachable(parts, 4)
    assert placed is not None
    assert sorted(placed) == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (2, 0)]
    for counts, stand in placed.items():
        assert [sum(n == kind for n, _ in stand) for kind in (0, 1)] == list(counts)
        taken = [unit for n, at in stand for unit in range(at, at + parts[n].size)]
        assert len(taken) == len(set(taken))
        assert all(at in parts[n].starts for n, at in stand)


def test_where_parts_are_in_too_many_ways_to_list_none_is_listed() -> None:
    """Of up to a hundred parts of three kinds in 176,851 numbers of each; of two in 5,151."""
    alike = tuple(part(1, 100, tuple(range(100))) for _ in range(3))
    assert reachable(alike, 100) is None
    few = reachable(alike[:2], 30)
    assert few is not None
    assert len(few) == 31 * 32 // 2
