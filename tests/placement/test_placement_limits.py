"""Each limit of a host is kept to the unit: the last that fits is placed, one more is refused."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from gpuplan.diagnostics import Severity
from gpuplan.placement.api import Placement
from gpuplan.placement.place import place
from gpuplan.plan.model import VirtualMachine
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.source import Origin
from gpuplan.units import GIB, TB
from tests.support.placement_hosts import (
    as_inventory,
    card,
    cards,
    drive,
    gpu_address,
    host,
    numbers,
    placed,
)
from tests.support.placement_samples import l40s, offer


def usd(price: float) -> Quantity:
    return Quantity(price, "USD/h", "test")


def errors(placement: Placement) -> list[str]:
    return [d.message for d in placement.diagnostics if d.severity is Severity.ERROR]


# --- network cards -------------------------------------------------------------------------------


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize(("total", "wrong"), [(3, True), (4, False), (5, False), (None, False)])
def test_a_card_has_as_many_functions_as_its_firmware_gives_and_no_more(
    total: int | None, *, wrong: bool, listed: bool
) -> None:
    nic = card(0, 0, functions=4) | ({} if listed else {"virtual_functions": 4})
    if total is not None:
        nic["total_functions"] = total
    said = errors(placed(cards(), hosts=[host([0], nodes=1, nics=[nic])]))
    assert ("4 virtual functions of a card that has at most 3" in said) == wrong


# --- vGPUs over several GPUs ---------------------------------------------------------------------

TYPES = {"L40S-12C": 4, "L40S-24C": 2}  # of each at most so many on a GPU


def functions(number: int, count: int) -> list[str]:
    return [f"0000:{16 + number:02x}:01.{f}" for f in range(count)]


def shared(nodes: list[int], count: int, **more: Any) -> dict[str, Any]:
    """A host with a GPU on each of `nodes`, each with so many virtual functions."""
    listed = {n: {"virtual_functions": functions(n, count)} for n in range(len(nodes))}
    return host(nodes, nodes=max(nodes) + 1, gpu=listed, **more)


def vgpus(machine: VirtualMachine) -> list[str]:
    return [d.address for d in machine.devices if d.kind == "vgpu"]


@pytest.mark.parametrize("part", TYPES)
@pytest.mark.parametrize("count", range(1, 10))
@pytest.mark.parametrize(
    ("nodes", "listed"), [([0, 1], 5), ([0, 1], 1), ([0, 0], 3), ([0], 4), ([0, 1, 1], 2)]
)
def test_a_guest_has_all_its_vgpus_or_is_refused(
    nodes: list[int], listed: int, count: int, part: str
) -> None:
    room = len(nodes) * min(listed, TYPES[part])
    wanted = cards("a", count, cores=count, memory_gib=count, partition=part)
    placement = placed(wanted, hosts=[shared(nodes, listed)])
    if count > room:
        assert placement.virtual_machines == ()
        assert len(errors(placement)) == 1
        return
    [machine] = placement.virtual_machines
    assert errors(placement) == []
    assert len(vgpus(machine)) == len(set(vgpus(machine))) == count
    users = Counter(d.parent for d in machine.devices if d.kind == "vgpu")
    assert max(users.values()) <= min(listed, TYPES[part])
    near = max(Counter(nodes).values()) * min(listed, TYPES[part])
    assert (len(machine.cells) == 1) == (count <= near), "on one node where one has the room"


@pytest.mark.parametrize("rest", [0, 1])
def test_vgpus_beside_others_take_what_is_left_of_each_gpu(rest: int) -> None:
    """Two GPUs of four: after five, a guest of three has room, one of four has not."""
    five = cards("first", 1, replicas=5, cores=1, memory_gib=1, partition="L40S-12C")
    last = cards("last", 3 + rest, cores=4, memory_gib=4, partition="L40S-12C")
    placement = placed(last, five, hosts=[shared([0, 1], 4)])
    taken = [address for m in placement.virtual_machines for address in vgpus(m)]
    assert len(taken) == len(set(taken))
    assert (errors(placement) == []) == (rest == 0)


# --- cards whose groups are not known ------------------------------------------------------------


def test_without_groups_a_gpu_brings_the_functions_of_its_own_card_and_no_others() -> None:
    """A GPU's sound goes where the GPU goes."""
    spec = host([0, 0, 1], gpu={n: {"iommu_group": None} for n in range(3)})
    sounds = [gpu_address(n).replace(":00.0", ":00.1") for n in range(3)]
    spec["functions"] = [{"address": address} for address in sounds]
    placement = placed(cards("one", replicas=3), hosts=[spec])
    assert errors(placement) == []
    for machine in placement.virtual_machines:
        [number] = numbers(machine)
        others = [d.address for d in machine.devices if d.kind not in ("gpu", "vgpu")]
        assert others == [sounds[number]]
    assert errors(placed(cards("all", 3), hosts=[spec])) == []


# --- drives and hosts ----------------------------------------------------------------------------


def test_a_drive_that_comes_along_counts_for_the_scratch_space() -> None:
    """One terabyte comes with the GPU's group, so that one more drive is enough for two."""
    nvme = [drive(0, 0, iommu_group=10), *(drive(n, 0) for n in (1, 2, 3))]
    spec = host([0], nodes=1, nvme=nvme)
    [machine] = placed(cards(scratch_bytes=2 * TB), hosts=[spec]).virtual_machines
    drives = [d.address for d in machine.devices if d.kind == "nvme"]
    assert drives == [nvme[0]["address"], nvme[1]["address"]]
    assert machine.disks[0].size_bytes == 64 * GIB


def test_a_drive_of_no_known_size_comes_along_and_counts_for_nothing() -> None:
    unknown = {k: v for k, v in drive(0, 0, iommu_group=10).items() if k != "size"}
    spec = host([0], nodes=1, nvme=[unknown, drive(1, 0)])
    [machine] = placed(cards(scratch_bytes=TB), hosts=[spec]).virtual_machines
    assert sum(d.kind == "nvme" for d in machine.devices) == 2
    [without] = placed(cards(scratch_bytes=TB + 1), hosts=[spec]).virtual_machines
    assert sum(d.kind == "nvme" for d in without.devices) == 1, "less than it asks helps nobody"


@pytest.mark.parametrize("first", [True, False])
def test_a_host_without_gpus_is_passed_over(*, first: bool) -> None:
    head, worker = host([], names=["head"]), host([0, 1], names=["worker"])
    inventory = as_inventory(*((head, worker) if first else (worker, head)))
    nodes = [offer(l40s(), gpus_per_node=2)]
    placement = place("rack", "libvirt", [cards(replicas=2)], nodes, inventory)
    assert errors(placement) == []
    assert [m.host for m in placement.virtual_machines] == ["worker", "worker"]


def test_a_host_without_a_price_costs_what_nodes_of_its_type_are_offered_at() -> None:
    dear = offer(l40s(), gpus_per_node=2, node_type="b", usd_per_gpu_hour=usd(9.0))
    cheap = offer(l40s(), gpus_per_node=2, node_type="a", usd_per_gpu_hour=usd(1.0))

    def paid(kind: str | None) -> float:
        spec = host([0, 1]) | ({"node_type": kind} if kind else {})
        placement = place("r", "libvirt", [cards()], [cheap, dear], as_inventory(spec))
        assert errors(placement) == []
        return float(placement.cost.usd_per_hour or 0)

    assert (paid("a"), paid("b")) == (2.0, 18.0)
    assert paid("c") == 2.0, "no offer is of its type: as the first"


# --- what a message proposes ---------------------------------------------------------------------


def proposed(placement: Placement) -> dict[str, str]:
    """What the first error would have written, by field."""
    [problem] = [d for d in placement.diagnostics if d.severity is Severity.ERROR]
    [changes] = problem.remedies
    return {str(change.origin.path[-1]): str(change.value) for change in changes}


@pytest.mark.parametrize("gpus", [1, 2, 4, 8])
def test_the_proposed_cores_and_memory_fit_and_one_more_does_not(gpus: int) -> None:
    nodes = offer(l40s(), cpu_cores_per_node=100, memory_bytes_per_node=1000 * GIB)

    def pods(cores: int, memory_gib: int) -> Placement:
        more = {"isolation": "shared", "origin": Origin("a.yaml").child("workloads", 0)}
        asked = cards("a", gpus, cores=cores * gpus, memory_gib=memory_gib * gpus, **more)
        return place("rack", "kubernetes", [asked], [nodes])

    fields = proposed(pods(200, 2000))
    cores, memory = int(fields["cpu_cores_per_gpu"]), int(fields["host_memory_per_gpu"][:-4])
    assert errors(pods(cores, memory)) == []
    assert errors(pods(cores + 1, memory))
    assert errors(pods(cores, memory + 1))


@pytest.mark.parametrize(
    ("cores", "memory_gib", "fields"),
    [
        (200, 10, {"cpu_cores_per_gpu": "96"}),
        (10, 2000, {"host_memory_per_gpu": "900 GiB"}),
        (10, 10, {}),
    ],
)
def test_less_is_proposed_of_what_is_short_alone(
    cores: int, memory_gib: int, fields: dict[str, str]
) -> None:
    nodes = offer(l40s(), cpu_cores_per_node=100, memory_bytes_per_node=1000 * GIB)
    more = {"isolation": "shared", "origin": Origin("a.yaml").child("workloads", 0)}
    asked = cards("a", 1, cores=cores, memory_gib=memory_gib, **more)
    placement = place("rack", "kubernetes", [asked], [nodes])
    if not fields:
        assert errors(placement) == []
        return
    assert proposed(placement) == fields
    [problem] = [d for d in placement.diagnostics if d.severity is Severity.ERROR]
    assert problem.help.startswith("ask for less (overrides.")


def test_hardware_is_asked_for_where_gpus_are_short() -> None:
    """Cores beside them are proposed to nobody: fewer would not help."""
    more = {"isolation": "shared", "origin": Origin("a.yaml").child("workloads", 0)}
    asked = cards("a", 16, cores=1000, memory_gib=10, **more)
    placement = place("rack", "kubernetes", [asked], [offer(l40s())])
    [problem] = [d for d in placement.diagnostics if d.severity is Severity.ERROR]
    assert problem.help == "add hardware, or ask for fewer replicas or another GPU"
    assert problem.remedies == ()


def test_a_gpu_that_has_less_than_a_core_or_a_gibibyte_is_proposed_none() -> None:
    few = offer(l40s(), cpu_cores_per_node=4, memory_bytes_per_node=4 * GIB)
    more = {"isolation": "shared", "origin": Origin("a.yaml").child("workloads", 0)}
    asked = cards("a", 8, cores=64, memory_gib=640, **more)
    placement = place("rack", "kubernetes", [asked], [few])
    [problem] = [d for d in placement.diagnostics if d.severity is Severity.ERROR]
    assert {s.resource for s in placement.shortfalls} == {"cores of one node", "memory of one node"}
    assert problem.remedies == ()
