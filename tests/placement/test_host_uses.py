"""Drives and cards that the host uses, or may use, and the functions beside a GPU."""

from __future__ import annotations

from typing import Any

import pytest

from gpuplan.diagnostics import Diagnostic, Severity
from gpuplan.placement.api import Placement
from gpuplan.units import TB
from tests.support.placement_hosts import card, cards, drive, host, placed

UNKNOWN: dict[str, Any] = {"in_use": None}


def kept(placement: Placement) -> list[Diagnostic]:
    return [d for d in placement.diagnostics if d.rule == "GP040"]


def attached(placement: Placement, kind: str) -> list[str]:
    return [d.address for m in placement.virtual_machines for d in m.devices if d.kind == kind]


@pytest.mark.parametrize(
    ("said", "severity", "reason"),
    [
        ({"in_use": ["/ (ext4)", "swap"]}, Severity.INFO, "the host uses it for / (ext4), swap"),
        (UNKNOWN, Severity.WARNING, "nothing says whether the host uses it"),
        ({"in_use": [], "for_guests": False}, Severity.INFO, "the inventory keeps it"),
    ],
)
def test_a_drive_that_is_not_proven_free_goes_to_no_guest(
    said: dict[str, Any], severity: Severity, reason: str
) -> None:
    spec = host([0, 0], nvme=[drive(0, 0, **said)])
    placement = placed(cards(scratch_bytes=1 * TB // 2, gpus=2), hosts=[spec])
    assert attached(placement, "nvme") == []
    assert placement.virtual_machines[0].disks[0].size_bytes > TB // 2  # its scratch space instead
    (problem,) = kept(placement)
    assert problem.severity is severity
    assert problem.message == f"drive 0000:c0:00.0 goes to no guest: {reason}"
    assert "for_guests: true" in (problem.help or "")
    if said is UNKNOWN:
        assert "lsblk -J -b -o" in (problem.help or "")


def test_a_drive_that_a_person_marked_goes_to_a_guest() -> None:
    for said in (UNKNOWN, {"in_use": ["ext4, not mounted"]}):
        spec = host([0, 0], nvme=[drive(0, 0, **said, for_guests=True)])
        placement = placed(cards(scratch_bytes=1 * TB // 2, gpus=2), hosts=[spec])
        assert attached(placement, "nvme") == ["0000:c0:00.0"]
        assert not kept(placement)


def test_a_free_drive_is_taken_though_another_one_is_the_host_s() -> None:
    spec = host([0, 0], nvme=[drive(0, 0, in_use=["/ (ext4)"]), drive(1, 0)])
    placement = placed(cards(scratch_bytes=1 * TB // 2, gpus=2), hosts=[spec])
    assert attached(placement, "nvme") == ["0000:c1:00.0"]
    assert not kept(placement), "nothing is lacking"


def test_a_gpu_in_a_group_with_the_host_s_drive_is_refused_by_name() -> None:
    spec = host([0], gpu={0: {"iommu_group": 5}}, nvme=[drive(0, 0, iommu_group=5, **UNKNOWN)])
    problems = placed(cards(), hosts=[spec]).diagnostics
    assert any("IOMMU group 5 holds the drive 0000:c0:00.0" in p.message for p in problems)
    assert any(p.rule == "GP046" and p.severity is Severity.ERROR for p in problems)


@pytest.mark.parametrize("said", [UNKNOWN, {"in_use": ["default route"]}])
def test_a_card_with_the_default_route_gives_no_function(said: dict[str, Any]) -> None:
    spec = host([0], names=["hv-1", "hv-2"], nics=[card(0, 0, **said), card(1, 0)])
    wanted = cards(nodes_per_replica=2)
    placement = placed(wanted, hosts=[spec])
    assert {d.parent for m in placement.virtual_machines for d in m.devices if d.kind == "nic"} == {
        "0000:81:00.0"
    }
    (problem,) = kept(placement)
    assert problem.message.startswith("network card 0000:80:00.0 gives functions to no guest: ")
    spec["nics"] = [card(0, 0, **said, for_guests=True)]
    marked = placed(wanted, hosts=[spec])
    assert not kept(marked)
    assert [d.shared for d in marked.hosts[0].devices if d.kind == "nic"] == [True]


def test_serial_numbers_are_each_host_s_own() -> None:
    at = "0000:c0:00.0"
    spec = host([0], names=["hv-1", "hv-2"], nvme=[drive(0, 0)])
    spec["serials"] = {"hv-1": {at: "S1"}, "hv-2": {at: "S2"}}
    placement = placed(cards(replicas=2, scratch_bytes=1 * TB // 2), hosts=[spec])
    found = {h.name: d.serial for h in placement.hosts for d in h.devices if d.kind == "nvme"}
    assert found == {"hv-1": "S1", "hv-2": "S2"}
    assert not [d for d in placement.diagnostics if "serial" in d.message]
    del spec["serials"]["hv-2"]
    problems = placed(cards(scratch_bytes=1 * TB // 2), hosts=[spec]).diagnostics
    assert any("the serial number is not stated, so the host cannot" in p.message for p in problems)


# --- functions beside a GPU --------------------------------------------------------------------


def function(address: str, **more: Any) -> dict[str, Any]:
    return {"address": address, "pci_id": "10de:22ba", "iommu_group": 5} | more


def test_the_sound_and_usb_of_a_gpu_s_card_go_with_it() -> None:
    spec = host([0, 0], gpu={0: {"iommu_group": 5}})
    spec["functions"] = [function("0000:10:00.1"), function("0000:10:00.2")]
    placement = placed(cards(replicas=2), hosts=[spec])
    by_gpu = {
        d.address: [o.address for o in m.devices if o.kind == "function"]
        for m in placement.virtual_machines
        for d in m.devices
        if d.kind == "gpu"
    }
    assert by_gpu == {"0000:10:00.0": ["0000:10:00.1", "0000:10:00.2"], "0000:11:00.0": []}
    for machine in placement.virtual_machines:
        ports = [d.group for d in machine.devices]
        assert len(ports) == len(set(ports)), "each behind a port of its own"
        assert min(ports) == 0
    assert not [d for d in placement.diagnostics if d.rule == "GP046"]


def test_so_do_they_where_no_group_is_known() -> None:
    spec = host([0, 0], gpu={0: {"iommu_group": None}, 1: {"iommu_group": None}})
    spec["functions"] = [function("0000:10:00.1", iommu_group=None)]
    placement = placed(cards(gpus=2), hosts=[spec])
    assert attached(placement, "function") == ["0000:10:00.1"]


def test_a_function_of_another_card_in_the_group_is_the_host_s() -> None:
    """Such as the USB controller of a board that does not separate its ports."""
    spec = host([0], gpu={0: {"iommu_group": 5}})
    spec["functions"] = [function("0000:00:14.0")]
    problems = placed(cards(), hosts=[spec]).diagnostics
    assert any("IOMMU group 5 holds the function 0000:00:14.0" in p.message for p in problems)
    assert any(p.rule == "GP046" and p.severity is Severity.ERROR for p in problems)
    spec["functions"] = [function("0000:00:14.0", for_guests=True)]
    assert attached(placed(cards(), hosts=[spec]), "function") == ["0000:00:14.0"]


def test_the_host_gives_all_devices_away_from_its_start_but_functions_of_cards() -> None:
    """Each behind a port of its own, on the guest's cell of its node; the hypervisor binds the
    functions of network cards when a guest starts."""
    spec = host([0, 1], nics=[card(0, 0), card(1, 1)], nvme=[drive(0, 1)])
    spec["functions"] = [function("0000:11:00.1", numa_node=1)]
    spec["gpus"][1]["iommu_group"] = spec["functions"][0]["iommu_group"]
    work = cards(gpus=2, nodes_per_replica=2, scratch_bytes=TB // 2)
    placement = placed(work, hosts=[spec, host([0, 1], names=["hv-2"], nics=[card(0, 0)])])
    guest = next(m for m in placement.virtual_machines if m.host == "hv-1")
    told = {(d.kind, d.managed, d.cell) for d in guest.devices}
    assert told == {
        ("gpu", False, 0),
        ("gpu", False, 1),
        ("nic", True, 0),
        ("nic", True, 1),
        ("nvme", False, 1),
        ("function", False, 1),
    }
