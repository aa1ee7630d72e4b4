"""What the host does with its drives and cards, as tools say it: what is unknown is not free."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpuplan.inventory.v1 import HostSpec
from tests.inventory.test_inventory_import import dgx, messages, run

UNUSED = {"type": "disk", "fstype": None, "mountpoints": [None]}
ROOT = {"name": "sda1", "type": "part", "fstype": "ext4", "mountpoints": ["/"]}


def part(**more: Any) -> dict[str, Any]:
    return {"name": "nvme0n1p1", "type": "part", "fstype": None, "mountpoints": [None]} | more


def lsblk(*, sees: bool = True, **drive: Any) -> str:
    """A drive `nvme0` and, beside it, what the host starts from."""
    first = {"name": "nvme0n1", "size": 3840755982336, "serial": "S60 "} | UNUSED | drive
    boot = {"name": "sda", "size": 480103981056, "children": [ROOT] if sees else []} | UNUSED
    return json.dumps({"blockdevices": [boot, first]})


def uses(text: str, **more: str) -> list[str] | None:
    host, _ = run({**dgx(), "lsblk.json": text, **more})
    return host.nvme[0].in_use


def test_the_drive_that_the_host_starts_from_is_not_free() -> None:
    efi = part(fstype="vfat", mountpoints=["/boot/efi"])
    root = part(name="nvme0n1p2", fstype="btrfs", mountpoints=["/home", "/"])
    assert uses(lsblk(children=[efi, root])) == ["/boot/efi (vfat)", "/home (btrfs)", "/ (btrfs)"]
    old = part(fstype="xfs", mountpoint="/")
    del old["mountpoints"]
    assert uses(lsblk(children=[old])) == ["/ (xfs)"]


@pytest.mark.parametrize(
    ("drive", "use"),
    [
        (
            {"children": [part(type="lvm", name="vg0-root", fstype="ext4", mountpoints=["/"])]},
            "lvm",
        ),
        ({"fstype": "LVM2_member"}, "LVM2_member, not mounted"),
        ({"children": [part(type="raid1", name="md0")]}, "raid1"),
        ({"children": [part(type="crypt", name="luks")]}, "crypt"),
        ({"children": [part(fstype="swap", mountpoints=["[SWAP]"])]}, "swap"),
        ({"children": [part(fstype="zfs_member")]}, "zfs_member, not mounted"),
        ({"fstype": "ext4"}, "ext4, not mounted"),
        ({"children": [part()]}, "a partition"),
    ],
)
def test_what_holds_a_drive_or_may_have_data_is_named(drive: dict[str, Any], use: str) -> None:
    assert (uses(lsblk(**drive)) or [None])[0] == use


def test_only_a_drive_that_tools_looked_into_is_free() -> None:
    assert uses(lsblk()) == []
    assert uses(lsblk(sees=False)) is None, "lsblk without root and udev sees no file system"
    without = {"name": "nvme0n1", "type": "disk", "size": 3840755982336}
    old = json.dumps({"blockdevices": [without]})
    host, problems = run({**dgx(), "lsblk.json": old})
    assert host.nvme[0].in_use is None
    assert not host.nvme[0].free
    [gap] = [p for p in problems if "the host's use of 4 drives" in p.message]
    assert "MOUNTPOINT" in (gap.help or "")


@pytest.mark.parametrize(
    ("name", "text", "holder"),
    [
        ("mdstat", "Personalities : [raid1]\nmd0 : active raid1 nvme1n1p1[1] nvme0n1p1[0]\n", "md"),
        (
            "swaps",
            "Filename\tType\tSize\tUsed\tPriority\n/dev/nvme0n1p3 partition 8 0 -2\n",
            "swap",
        ),
        (
            "zpool",
            "  pool: tank\n state: ONLINE\nconfig:\n\n\tNAME STATE\n\t/dev/nvme0n1 ONLINE 0 0\n",
            "zfs",
        ),
    ],
)
def test_other_tools_know_holders_that_lsblk_does_not_show(
    name: str, text: str, holder: str
) -> None:
    assert uses(lsblk(), **{name: text}) == [holder]


def test_a_drive_that_vfio_has_is_no_longer_the_host_s() -> None:
    texts = dgx()
    texts["lspci.txt"] = texts["lspci.txt"].replace(
        "\tIOMMU group: 300\n", "\tIOMMU group: 300\n\tKernel driver in use: vfio-pci\n"
    )
    boot = {"name": "sda", "size": 1, "children": [ROOT]} | UNUSED
    texts["lsblk.json"] = json.dumps({"blockdevices": [boot]})
    host, _ = run(texts)
    assert [d.in_use for d in host.nvme] == [[], None, None, None]


def test_the_serial_numbers_and_mac_addresses_are_those_of_each_host() -> None:
    host, _ = run(dgx())
    serials = host.serials["gpu-01"]
    assert serials["0000:2a:00.0"] == "S60"
    assert serials[host.nics[1].address or ""] == "b8:3f:d2:00:00:01"


# --- network cards -----------------------------------------------------------------------------


def cards(**files: str) -> list[list[str] | None]:
    texts = {name: text for name, text in {**dgx(), **files}.items() if text}
    host, _ = run(texts)
    return [n.in_use for n in host.nics]


def routes(*rows: dict[str, Any]) -> dict[str, str]:
    return {"ip-route.json": json.dumps([*rows, {"dst": "192.0.2.0/24", "dev": "ib7"}])}


def test_the_card_below_the_default_route_is_the_host_s() -> None:
    assert cards() == [["default route"], *([[]] * 7)]  # ib0 ← VLAN ib0.7 ← bridge br0
    assert cards(**routes({"dst": "default", "dev": "ib3"}))[3] == ["default route"]


def test_each_part_of_a_bond_is() -> None:
    rows = [
        {"ifindex": 1, "ifname": "ib0", "master": "bond0", "addr_info": []},
        {"ifindex": 2, "ifname": "ib1", "master": "bond0", "addr_info": []},
        {"ifindex": 3, "ifname": "bond0", "addr_info": []},
    ]
    said = cards(
        **routes({"dst": "default", "dev": "bond0"}), **{"ip-address.json": json.dumps(rows)}
    )
    assert said == [["default route"], ["default route"], *([[]] * 6)]


def test_every_path_of_a_default_route_counts() -> None:
    hops = {"dst": "default", "nexthops": [{"dev": "ib1"}, {"dev": "ib2"}]}
    assert cards(**routes(hops))[:4] == [[], ["default route"], ["default route"], []]


def test_where_no_card_explains_the_default_route_none_is_free() -> None:
    assert cards(**routes({"dst": "default", "dev": "tun0"})) == [None] * 8
    nothing = {"ip-route.json": "", "ip-address.json": ""}
    assert cards(**nothing) == [None] * 8


def test_without_a_default_route_the_cards_that_others_reach_are_the_host_s() -> None:
    reached = [{"family": "inet", "scope": "global"}]
    rows = [
        {"ifindex": n, "ifname": f"ib{n}", "addr_info": reached if n == 5 else []} for n in range(8)
    ]
    said = cards(**routes(), **{"ip-address.json": json.dumps(rows)})
    assert [number for number, use in enumerate(said) if use] == [5]


def test_a_person_s_word_is_over_what_was_collected() -> None:
    drive = {"address": "0000:2a:00.0"}
    spec = HostSpec.model_validate(
        {
            "names": ["hv-1"],
            "gpus": [],
            "nvme": [
                drive,
                drive | {"in_use": []},
                drive | {"in_use": ["/ (ext4)"]},
                drive | {"in_use": ["ext4, not mounted"], "for_guests": True},
                drive | {"in_use": [], "for_guests": False},
            ],
        }
    )
    assert [d.free for d in spec.nvme] == [False, True, False, True, False]


# --- functions beside a GPU --------------------------------------------------------------------


def test_the_other_functions_of_a_gpu_s_group_are_kept() -> None:
    listing = (
        "01:00.0 VGA compatible controller [0300]: NVIDIA Corporation AD102 [10de:2684]\n"
        "\tIOMMU group: 14\n"
        "01:00.1 Audio device [0403]: NVIDIA Corporation AD102 Audio [10de:22ba]\n"
        "\tIOMMU group: 14\n"
        "00:1f.3 Audio device [0403]: Intel Corporation Audio [8086:7a50]\n\tIOMMU group: 20\n"
        "00:01.0 PCI bridge [0604]: Intel Corporation Root Port [8086:a70d]\n\tIOMMU group: 14\n"
    )
    host, _ = run({"lspci.txt": listing})
    assert [(f.address, f.pci_id, f.iommu_group) for f in host.functions] == [
        ("0000:01:00.1", "10de:22ba", 14)
    ]


def test_a_function_that_only_the_groups_name_is_kept_too() -> None:
    """`lspci -Dnn` alone says no groups, `find` alone says no classes."""
    groups = "".join(
        f"/sys/kernel/iommu_groups/{group}/devices/0000:{address}\n"
        for group, address in ((14, "01:00.0"), (14, "01:00.1"), (15, "02:00.0"))
    )
    gpu = "0000:01:00.0 VGA compatible controller [0300]: NVIDIA Corporation AD102 [10de:2684]\n"
    host, _ = run({"lspci.txt": gpu, "groups.txt": groups})
    assert [(f.address, f.iommu_group) for f in host.functions] == [("0000:01:00.1", 14)]
    assert messages(run({"lspci.txt": gpu})[1], "GP066")
