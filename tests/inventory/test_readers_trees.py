"""Readers of listings and trees: facts of samples by value, messages with their places, and outputs
that are cut, shortened or changed anywhere."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from gpuplan.diagnostics import Severity
from gpuplan.inventory.facts import ATTRIBUTES, Reader, Reading
from gpuplan.inventory.readers.bus import (
    iommu_groups,
    lspci,
    lspci_machine,
    lspci_tree,
    virtual_functions,
)
from gpuplan.inventory.readers.trees import hwloc, kubernetes_nodes, nccl
from gpuplan.inventory.readers.trees.hwloc_sets import bitmap
from gpuplan.inventory.readers.trees.kubernetes_nodes import quantity
from gpuplan.source import Place, SourceDocument

SAMPLES = Path(__file__).parent / "inventory_samples" / "trees"
READERS = (
    hwloc.READER,
    iommu_groups.READER,
    kubernetes_nodes.READER,
    lspci.READER,
    lspci_machine.READER,
    lspci_tree.READER,
    nccl.READER,
    virtual_functions.READER,
)
KINDS = {
    "hwloc": hwloc.READER,
    "iommu": iommu_groups.READER,
    "kubectl": kubernetes_nodes.READER,
    "lspci-mm": lspci_machine.READER,
    "lspci-vmm": lspci_machine.READER,
    "lspci-t": lspci_tree.READER,
    "lspci": lspci.READER,
    "nccl": nccl.READER,
    "virtfn": virtual_functions.READER,
}
GIB = 1 << 30


def kind_of(name: str) -> Reader:
    return next(reader for prefix, reader in KINDS.items() if name.startswith(prefix))


def sample(name: str) -> str:
    return (SAMPLES / name).read_text()


def read(text: str, reader: Reader | None = None) -> tuple[Reading, ...]:
    found = [r for r in READERS if r.recognises(text)] if reader is None else [reader]
    assert len(found) == 1, [r.tool for r in found]
    return found[0].read(SourceDocument("output", text))


def one(text: str) -> Reading:
    (reading,) = read(text)
    return reading


def facts(reading: Reading) -> dict[tuple[str, str, str], object]:
    return {(*f.subject, f.attribute): f.value for f in reading.facts}


def of(reading: Reading, kind: str, key: str) -> dict[str, object]:
    return {f.attribute: f.value for f in reading.facts if f.subject == (kind, key)}


def keys(reading: Reading, kind: str) -> list[str]:
    return list(dict.fromkeys(f.subject[1] for f in reading.facts if f.subject[0] == kind))


def caret(text: str, reading: Reading, rule: str) -> tuple[int, str]:
    """The line of the one message with this code, and what its caret points at."""
    (problem,) = (p for p in reading.problems if p.rule == rule)
    assert isinstance(problem.origin, Place)
    assert problem.help
    span = problem.origin.span
    return span.line, text.split("\n")[span.line - 1][span.column - 1 : span.end_column - 1]


NAMES = sorted(path.name for path in SAMPLES.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_is_recognised_by_its_reader_alone(name: str) -> None:
    text = sample(name)
    assert [r.tool for r in READERS if r.recognises(text)] == [kind_of(name).tool]


@pytest.mark.parametrize("name", NAMES)
def test_facts_have_known_attributes_and_places_in_the_text(name: str) -> None:
    text = sample(name)
    lines = text.split("\n")
    for reading in read(text):
        assert reading.facts
        assert not [p for p in reading.problems if p.severity is Severity.ERROR]
        for fact in reading.facts:
            assert fact.attribute in ATTRIBUTES[fact.subject[0]], fact
            span = fact.place.span
            assert 1 <= span.column <= span.end_column <= len(lines[span.line - 1]) + 1, fact


# lspci


def test_lspci_tells_links_bars_bridges_and_functions() -> None:
    reading = one(sample("lspci-vvv.txt"))
    assert of(reading, "gpu", "0000:19:00.0") == {
        "address": "0000:19:00.0",
        "product": "NVIDIA Corporation GH100 [H100 SXM5 80GB]",
        "pci_id": "10de:2330",
        "numa_node": 0,
        "iommu_group": 40,
        "bar_bytes": 128 * GIB,
        "parent": "0000:18:00.0",
        "pcie_generation": 5,
        "pcie_width": 16,
    }
    card = of(reading, "nic", "0000:1a:00.0")
    assert (card["total_functions"], card["functions"]) == (16, 10)
    assert card["virtual_functions"] == (
        *(f"0000:1a:00.{i}" for i in range(1, 8)),
        *(f"0000:1a:01.{i}" for i in range(3)),
    )
    assert card["link"] == "infiniband"
    assert keys(reading, "nic") == ["0000:1a:00.0"]
    assert of(reading, "bridge", "0000:18:01.0")["parent"] == "0000:17:00.0"
    assert of(reading, "bridge", "0000:17:00.0")["secondary_bus"] == 0x18
    assert "product" not in of(reading, "bridge", "0000:16:01.0")
    assert of(reading, "nvme", "0000:98:00.0")["numa_node"] == 1


def test_a_link_reaches_what_the_port_above_can() -> None:
    text = sample("lspci-vvv.txt").replace(
        "[1000:c030] (rev b0) (prog-if 00 [Normal decode])\n\tNUMA node: 0\n\tIOMMU group: 13",
        "[1000:c030] (rev b0)\n\tLnkCap:\tPort #0, Speed 16GT/s, Width x8, ASPM L1",
    )
    gpu = of(one(text), "gpu", "0000:19:00.0")
    assert (gpu["pcie_generation"], gpu["pcie_width"]) == (4, 8)


def test_virtual_functions_run_over_the_end_of_a_bus() -> None:
    text = (
        "0000:3b:00.0 Ethernet controller [0200]: Mellanox Technologies MT2892 [15b3:101d]\n"
        "\t\tInitial VFs: 4, Total VFs: 4, Number of VFs: 3, Function Dependency Link: 00\n"
        "\t\tVF offset: 254, stride: 1, Device ID: 101e\n\n"
        "0000:3c:00.0 Ethernet controller [0200]: Mellanox Technologies VF [15b3:101e]\n\n"
    )
    reading = one(text)
    functions = of(reading, "nic", "0000:3b:00.0")["virtual_functions"]
    assert functions == ("0000:3b:1f.6", "0000:3b:1f.7", "0000:3c:00.0")
    assert keys(reading, "nic") == ["0000:3b:00.0"]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("01:00.0 VGA compatible controller: NVIDIA Corporation GA102 [RTX A6000] (rev a1)", "gpu"),
        ("01:00.0 0302: 10de:2236 (rev a1)", "gpu"),
        ("01:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)", "gpu"),
        ("c1:00.0 Processing accelerators [1200]: AMD Aqua Vanjaram [1002:74a1]", "gpu"),
        ("e57a:00:00.0 3D controller: Microsoft Corporation Device 008e", "function"),
        ("c1:00.0 Processing accelerators: Xilinx Corporation Alveo U250", "function"),
        (
            "03:00.0 VGA compatible controller [0300]: ASPEED Graphics Family [1a03:2000]",
            "function",
        ),
        ("00:01.0 VGA compatible controller [0300]: Red Hat Virtio GPU [1af4:1050]", "function"),
        ("00:02.0 Display controller [0380]: Intel Corporation UHD [8086:a780]", "function"),
        ("05:00.0 Network controller: Mellanox Technologies MT27500 [ConnectX-3]", "nic"),
        ("05:00.0 Network controller [0280]: Qualcomm Wireless [168c:0034]", "function"),
        ("c3:00.0 Bridge [0680]: NVIDIA Corporation GH100 [H100 NVSwitch] [10de:22a3]", None),
        ("08:00.0 InfiniBand [0c06]: Mellanox Technologies MT25208 [15b3:6282]", "nic"),
        ("10000:e1:00.0 Non-Volatile memory controller: Intel Corporation SSD", "nvme"),
    ],
)
def test_what_a_device_is(line: str, kind: str | None) -> None:
    assert {f.subject[0] for f in one(line + "\n").facts} == ({kind} if kind else set())


def test_virtual_functions_beside_their_card_are_no_cards() -> None:
    maker = "Ethernet controller: Intel Corporation"
    card = f"3b:00.0 {maker} Ethernet Controller E810-C for QSFP (rev 02)\n"
    functions = "".join(
        f"3b:{slot} {maker} Ethernet Adaptive Virtual Function (rev 02)\n"
        for slot in ("01.0", "01.1")
    )
    assert keys(one(card + functions), "nic") == ["0000:3b:00.0"]
    assert keys(one(functions), "nic") == ["0000:3b:01.0", "0000:3b:01.1"]


def test_a_device_without_a_name_has_its_number() -> None:
    gpu = of(
        one("01:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)\n"),
        "gpu",
        "0000:01:00.0",
    )
    assert gpu == {"address": "0000:01:00.0", "pci_id": "10de:2330"}


def test_a_path_tells_the_bridge_above() -> None:
    line = "00:01.0/01:00.0 3D controller [0302]: NVIDIA Corporation A100 [10de:20b0]\n"
    assert of(one(line), "gpu", "0000:01:00.0")["parent"] == "0000:00:01.0"


def test_lspci_without_root_says_so() -> None:
    text = (
        "17:00.0 3D controller: NVIDIA Corporation GA100 [A100 SXM4 40GB] (rev a1)\n"
        "\tCapabilities: <access denied>\n\n"
    )
    reading = one(text)
    assert caret(text, reading, "GP062") == (2, "Capabilities: <access denied>")
    assert "sudo" in reading.problems[0].help


def test_a_lost_first_line_gives_its_details_to_nobody() -> None:
    lines = sample("lspci-vvv.txt").split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("19:00.0"))
    text = "\n".join(lines[:start] + lines[start + 1 :])
    reading = one(text)
    assert keys(reading, "gpu") == []
    assert caret(text, reading, "GP062") == (
        start + 1,
        "Subsystem: NVIDIA Corporation Device [10de:16c1]",
    )
    assert of(reading, "bridge", "0000:18:01.0")["numa_node"] == 0


def test_a_node_that_is_no_number_is_left_out() -> None:
    text = sample("lspci-vvv.txt").replace("\tNUMA node: 1\n", "\tNUMA node: one\n")
    reading = one(text)
    line = text.split("\n").index("\tNUMA node: one") + 1
    assert caret(text, reading, "GP063") == (line, "one")
    assert "numa_node" not in of(reading, "nvme", "0000:98:00.0")


def test_two_hosts_in_one_text_contradict_each_other() -> None:
    text = (
        "17:00.0 3D controller [0302]: NVIDIA Corporation A100 [10de:20b0]\n\tNUMA node: 0\n\n"
        "17:00.0 3D controller [0302]: NVIDIA Corporation A100 [10de:20b0]\n\tNUMA node: 1\n\n"
    )
    reading = one(text)
    assert caret(text, reading, "GP064") == (5, "1")
    assert "numa_node" not in of(reading, "gpu", "0000:17:00.0")


def test_both_machine_readable_forms_say_the_same() -> None:
    reading = one(sample("lspci-mm.txt"))
    assert keys(reading, "gpu") == ["0000:19:00.0"]
    product = "NVIDIA Corporation GH100 [H100 SXM5 80GB]"
    assert of(reading, "gpu", "0000:19:00.0")["product"] == product
    block = (
        "Slot:\t19:00.0\nClass:\t3D controller [0302]\nVendor:\tNVIDIA Corporation [10de]\n"
        "Device:\tGH100 [H100 SXM5 80GB] [2330]\nNUMANode:\t1\nIOMMUGroup:\t40\n\n"
    )
    gpu = of(one(block), "gpu", "0000:19:00.0")
    assert gpu["product"] == product
    assert (gpu["pci_id"], gpu["numa_node"], gpu["iommu_group"]) == ("10de:2330", 1, 40)
    drives = of(one(sample("lspci-vmmnn-32em64t.txt")), "nvme", "0000:00:02.0")
    assert drives["pci_id"] == "8086:0953"


def test_the_tree_has_several_roots_domains_and_ranges() -> None:
    reading = one(sample("lspci-tv.txt"))
    assert of(reading, "gpu", "0000:19:00.0")["parent"] == "0000:18:00.0"
    assert of(reading, "device", "0000:1a:00.1")["parent"] == "0000:18:01.0"
    assert of(reading, "bridge", "0000:18:01.0")["parent"] == "0000:17:00.0"
    assert of(reading, "nvme", "10000:e1:00.0")["parent"] == "10000:e0:06.0"
    assert "parent" not in of(reading, "device", "0000:97:00.0")
    assert not reading.problems


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("NVIDIA Corporation GH100 [H100 SXM5 80GB]", "gpu"),
        ("NVIDIA Corporation GA100 [A100 SXM4 80GB]", "gpu"),
        ("NVIDIA Corporation GH100 [H100 NVSwitch]", "device"),
        ("NVIDIA Corporation AD102 High Definition Audio Controller", "device"),
        ("NVIDIA Corporation TU104 USB 3.1 Host Controller", "device"),
        ("Advanced Micro Devices, Inc. [AMD/ATI] Aqua Vanjaram [Instinct MI300X]", "gpu"),
        ("Mellanox Technologies MT2910 Family [ConnectX-7]", "nic"),
        ("Mellanox Technologies MT28908 Family [ConnectX-6 Virtual Function]", "device"),
        ("Mellanox Technologies MT43244 BlueField-3 SoC Management Interface", "device"),
        ("Intel Corporation Ethernet Controller X710 for 10GBASE-T", "nic"),
        ("Samsung Electronics Co Ltd NVMe SSD Controller PM174X", "nvme"),
        ("Intel Corporation Volume Management Device NVMe RAID Controller", "device"),
        ("Intel Corporation Ice Lake Memory Map/VT-d", "device"),
    ],
)
def test_a_name_in_the_tree_says_what_a_device_is(name: str, kind: str) -> None:
    text = f"-[0000:00]-+-01.0-[01]----00.0  {name}\n           \\-1f.0  Intel Corporation LPC\n"
    assert of(one(text), kind, "0000:01:00.0")["product"] == name


def test_the_tree_and_the_listing_name_the_same_bridges() -> None:
    tree, listing = (facts(one(sample(f"lspci-{form}.txt"))) for form in ("tv", "vvv"))
    parents = {k[1]: v for k, v in listing.items() if k[2] == "parent"}
    drawn = {k[1]: v for k, v in tree.items() if k[2] == "parent"}
    assert parents
    assert all(drawn[address] == above for address, above in parents.items())


def test_a_lost_branch_moves_no_device() -> None:
    lines = sample("lspci-tv-40intel64.txt").split("\n")
    text = "\n".join(lines[:2] + lines[3:])  # without the bridge of bus 02 and its first card
    reading = one(text)
    assert any(p.rule == "GP063" for p in reading.problems)
    everything = facts(one(sample("lspci-tv-40intel64.txt"))).items()
    assert facts(reading).items() <= everything


def test_the_tree_of_old_versions_has_domains_behind_bridges() -> None:
    text = (
        "-[0000:00]-+-1c.0-[0000:02]----00.0\n"
        "           +-1e.0-[0000:01-09]--+-[0000:06]---00.0\n"
        "           |                    \\-[0000:01]-+-04.0\n"
        "           |                                \\-05.0\n"
        "           \\-1f.0\n"
    )
    reading = one(text)
    assert of(reading, "bridge", "0000:00:1e.0")["secondary_bus"] == 1
    parents = {a: of(reading, "device", a).get("parent") for a in keys(reading, "device")}
    assert parents == {
        "0000:02:00.0": "0000:00:1c.0",
        "0000:06:00.0": "0000:00:1e.0",
        "0000:01:04.0": "0000:00:1e.0",
        "0000:01:05.0": "0000:00:1e.0",
        "0000:00:1f.0": None,
    }
    assert not reading.problems


def test_a_bus_with_several_numbers_below_one_bridge() -> None:
    text = (
        "-[0000:00]---01.0-[3b-3c]--+-[0000:3c]---00.0  Mellanox Technologies VF\n"
        "                           \\-[0000:3b]---00.0  Mellanox Technologies PF\n"
    )
    reading = one(text)
    assert of(reading, "device", "0000:3c:00.0")["parent"] == "0000:00:01.0"
    assert of(reading, "device", "0000:3b:00.0")["parent"] == "0000:00:01.0"


# hwloc


def test_hwloc_tells_gpus_of_a_dgx_2() -> None:
    reading = one(sample("hwloc-v3-dgx2.xml"))
    assert len(keys(reading, "gpu")) == 16
    gpu = of(reading, "gpu", "0000:34:00.0")
    assert gpu["product"] == "Tesla V100-SXM3-32GB-H"
    assert gpu["uuid"] == "GPU-d3977428-7a30-086b-2e20-5c1eeed647c6"
    assert (gpu["index"], gpu["numa_node"], gpu["parent"]) == (0, 0, "0000:33:00.0")
    assert of(reading, "numa", "0") == {
        "cpus": (0, 1),
        "memory_bytes": 810234351616,
        "distances": (10, 21),
        "socket": 0,
    }
    host = of(reading, "host", "")
    assert host["siblings"] == ((0,), (1,), (24,), (25,))
    assert (host["sockets"], host["threads_per_core"], host["cpu_vendor"]) == (2, 1, "intel")


def test_hwloc_counts_nvlinks_by_its_matrix() -> None:
    """A DGX-2's GPUs reach each other over switches; POWER8's have links to one other and to a
    processor each."""
    dgx = one(sample("hwloc-v3-dgx2.xml"))
    assert {of(dgx, "gpu", a)["nvlinks"] for a in keys(dgx, "gpu")} == {6}
    assert len(keys(dgx, "pair")) == 16 * 15 / 2
    assert {of(dgx, "pair", p)["link"] for p in keys(dgx, "pair")} == {"NV6"}
    power = one(sample("hwloc-v2-power8.xml"))
    assert {of(power, "gpu", a).get("nvlinks") for a in keys(power, "gpu")} == {4}
    pairs = {p: of(power, "pair", p)["link"] for p in keys(power, "pair")}
    assert pairs == {"GPU0 GPU1": "NV2", "GPU2 GPU3": "NV2"}


def test_hwloc_says_nothing_of_links_that_it_cannot_count() -> None:
    """A rate of no whole links, and a GPU that is off the fabric."""
    odd = one(sample("hwloc-v2-power8.xml").replace("40000", "30001"))
    assert keys(odd, "pair") == []
    text = sample("hwloc-v2-power8.xml")
    lost = one(text.replace("1000000 40000 0 0 40000 0", "1000000 0 0 0 0 0"))
    assert keys(lost, "pair") == ["GPU2 GPU3"]


def test_hwloc_version_1_has_nodes_above_packages() -> None:
    reading = one(sample("hwloc-v1-24em64t.xml"))
    assert reading.host == "mirage004"
    assert of(reading, "numa", "0")["cpus"] == tuple(range(0, 24, 2))
    assert of(reading, "numa", "1")["distances"] == (20, 10)
    host = of(reading, "host", "")
    assert (host["cores_per_socket"], host["threads_per_core"]) == (6, 2)
    assert (0, 12) in host["siblings"]  # type: ignore[operator]
    assert of(reading, "gpu", "0000:06:00.0")["numa_node"] == 0
    assert keys(reading, "gpu") == [a for a in keys(reading, "gpu") if a != "0000:01:03.0"]


def test_memory_of_gpus_is_a_node_without_cpus() -> None:
    text = sample("hwloc-v3-dgx2.xml").replace(
        '<object type="NUMANode" os_index="1" cpuset="0x03000000"',
        '<object type="NUMANode" os_index="5" cpuset="0x03000000" subtype="GPUMemory" '
        'gp_index="9001" local_memory="15728640"><info name="PCIBusID" value="0000:34:00.0"/>'
        '</object><object type="NUMANode" os_index="1" cpuset="0x03000000"',
    )
    reading = one(text)
    memory = of(reading, "numa", "5")
    assert (memory["cpus"], memory["subtype"]) == ((), "GPUMemory")
    assert of(reading, "numa", "1")["cpus"] == (24, 25)
    assert of(reading, "gpu", "0000:34:00.0")["memory_node"] == 5
    assert not [p for p in reading.problems if p.rule == "GP063"]


def test_two_nodes_that_show_the_same_cpus_are_noted() -> None:
    text = sample("hwloc-v3-dgx2.xml").replace(
        'os_index="1" cpuset="0x03000000"', 'os_index="1" cpuset="0x00000003"'
    )
    reading = one(text)
    line, at = caret(text, reading, "GP063")
    assert at == "0x00000003"
    assert 'os_index="1"' in text.split("\n")[line - 1]
    assert of(reading, "numa", "1")["cpus"] == ()


def test_a_lost_cpu_contradicts_the_machine() -> None:
    lines = sample("hwloc-v1-24em64t.xml").split("\n")
    start = next(i for i, line in enumerate(lines) if 'type="PU"' in line)
    reading = one("\n".join(lines[:start] + lines[start + 1 :]))
    assert [p.rule for p in reading.problems] == ["GP064"]
    assert "cpus" not in of(reading, "host", "")
    assert "siblings" not in of(reading, "host", "")


def test_a_cpu_that_is_no_number() -> None:
    text = sample("hwloc-v1-24em64t.xml").replace(
        'type="PU" os_index="12"', 'type="PU" os_index="x"'
    )
    reading = one(text)
    assert caret(text, reading, "GP063")[1] == "x"
    assert "siblings" not in of(reading, "host", "")


def test_an_export_that_is_cut_says_nothing_of_the_whole() -> None:
    text = sample("hwloc-v3-dgx2.xml")[:20000]
    reading = one(text)
    assert [p.rule for p in reading.problems] == ["GP062"]
    assert of(reading, "host", "").keys() <= {"cpu_model", "cpu_vendor", "architecture"}
    assert "numa_node" not in of(reading, "gpu", "0000:34:00.0")


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0x00000005", (0, 2)),
        ("0x1,,0x00000001", (0, 64)),
        ("00000000,0000000f", (0, 1, 2, 3)),
        ("0x0", ()),
        ("0xf...f", None),
        ("ab,zz", None),
    ],
)
def test_sets_of_cpus(text: str, numbers: tuple[int, ...] | None) -> None:
    assert bitmap(text) == numbers


# NCCL


def test_a_dump_tells_numbers_links_and_cards() -> None:
    reading = one(sample("nccl-dump.xml"))
    assert of(reading, "gpu", "0000:18:00.0") == {
        "address": "0000:18:00.0",
        "pci_id": "10de:2335",
        "numa_node": 1,
        "switch": "0000:16:00.0",
        "index": 3,
        "nvlinks": 18,
        "pcie_generation": 5,
        "pcie_width": 16,
    }
    card = of(reading, "nic", "0000:19:00.0")
    assert (card["name"], card["bytes_per_s"]) == ("mlx5_3", 50_000_000_000)
    assert of(reading, "nic", "eth0")["numa_node"] == 1
    assert of(reading, "numa", "1")["cpus"] == tuple(range(56, 64))
    assert of(reading, "host", "") == {"architecture": "aarch64", "cpu_vendor": "amd"}


def test_two_ports_of_a_card_have_one_name_and_the_sum_of_their_rates() -> None:
    nets = "".join(
        f'<net name="mlx5_0" dev="{n}" speed="200000" port="{n + 1}"/>' for n in range(2)
    )
    pci = '<pci busid="0000:19:00.0" class="0x020700"><nic>{}</nic></pci>'
    text = f"<system version='1'><cpu numaid='0'>{pci.format(nets)}</cpu></system>"
    card = of(one(text), "nic", "0000:19:00.0")
    assert (card["name"], card["bytes_per_s"]) == ("mlx5_0", 50_000_000_000)
    other = of(one(text.replace('mlx5_0" dev="1"', 'mlx5_1" dev="1"')), "nic", "0000:19:00.0")
    assert not {"name", "bytes_per_s"} & set(other)


def test_a_vendors_file_may_invent_switches_and_leave_classes_out() -> None:
    reading = one(sample("nccl-p4de.24xlarge.xml"))
    assert keys(reading, "bridge") == []
    assert len(keys(reading, "gpu")) == 8
    assert of(reading, "gpu", "0000:20:1c.0")["switch"] == "ffff:ff:02.0"
    plain = one(sample("nccl-g5.48xlarge.xml"))
    assert of(plain, "device", "0000:00:15.0") == {"address": "0000:00:15.0", "numa_node": 1}


def test_hosts_of_a_rack_are_told_apart() -> None:
    cpu = '<cpu host_hash="0x{}" numaid="0"><pci busid="0000:01:00.0"><gpu dev="0"/></pci></cpu>'
    readings = read(f"<system version='1'>{cpu.format(1)}{cpu.format(2)}</system>")
    assert [r.host for r in readings] == ["0x1", "0x2"]


def test_a_busid_that_is_no_address() -> None:
    text = sample("nccl-ndv5.xml").replace('busid="0001:00:00.0"', 'busid="gpu one"')
    reading = one(text)
    assert caret(text, reading, "GP063") == (4, "gpu one")
    assert len(keys(reading, "gpu")) == 7


def test_a_node_that_the_kernel_does_not_know() -> None:
    text = sample("nccl-g5.48xlarge.xml").replace('numaid="0"', 'numaid="-1"')
    reading = one(text)
    assert "numa_node" not in of(reading, "device", "0000:00:16.0")
    assert not reading.problems


# Kubernetes


def test_each_node_is_a_host_with_one_product() -> None:
    first, second, third = read(sample("kubectl-nodes.json"))
    assert [r.host for r in (first, second, third)] == ["gpu-01", "gpu-02", "gpu-03"]
    host = of(first, "host", "")
    assert (host["cpu_count"], host["memory_bytes"]) == (224, 2113412300 * 1024)
    assert "cpus" not in host
    assert (host["node_type"], host["zone"], host["cpu_vendor"]) == ("bare-h100", "room-2", "intel")
    assert host["hugepages_1gi_bytes"] == 512 * GIB
    assert host["taints"] == ("nvidia.com/gpu=present:NoSchedule",)
    assert host["rdma_devices"] == ("rdma/hca_shared_devices_a=64",)
    assert of(first, "product", "NVIDIA-H100-80GB-HBM3") == {
        "gpus": 8,
        "memory_bytes": 81559 << 20,
        "mig": "off",
    }
    mixed = of(third, "product", "NVIDIA-A100-SXM4-40GB")
    assert (mixed["gpus"], mixed["mig"]) == (8, "on")
    assert "mig_profiles" not in mixed, "which GPU has which instance is not told"
    assert [p.rule for p in third.problems] == ["GP063"]


def test_shares_are_no_gpus() -> None:
    second = read(sample("kubectl-nodes.json"))[1]
    assert of(second, "product", "NVIDIA-A10G")["gpus"] == 2
    host = of(second, "host", "")
    assert host["driver_version"] == "535.104.05"
    assert "node_type" not in host  # k3s calls its nodes so


def node(labels: dict[str, str], capacity: dict[str, str]) -> str:
    content = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1", "labels": labels},
        "status": {"capacity": capacity, "nodeInfo": {"architecture": "arm64"}},
    }
    return json.dumps(content, indent=4)


def test_parts_of_gpus_are_not_counted() -> None:
    name = "nvidia.com/gpu.product"
    single = {name: "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "nvidia.com/gpu.count": "56"}
    virtual = {
        name: "GRID-A100-40C",
        "nvidia.com/gpu.count": "1",
        "nvidia.com/vgpu.present": "true",
    }
    google = {
        "cloud.google.com/gke-accelerator": "nvidia-l4",
        "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing",
    }
    for labels in (single, virtual, google):
        text = node(labels, {"cpu": "8", "nvidia.com/gpu": "4"})
        reading = one(text)
        assert not [f for f in reading.facts if f.attribute == "gpus"]
        assert [p.rule for p in reading.problems] == ["GP063"]
    assert of(one(node(single, {})), "product", "NVIDIA-A100-SXM4-40GB") == {"mig": "on"}


def test_replicas_of_each_gpu_are_divided_out() -> None:
    labels = {"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "4"}
    assert of(one(node(labels, {"nvidia.com/gpu": "8"})), "product", "Tesla-T4") == {"gpus": 2}
    odd = one(node(labels, {"nvidia.com/gpu": "7"}))
    assert not [f for f in odd.facts if f.attribute == "gpus"]


def test_memory_that_is_not_in_mebibytes() -> None:
    labels = {"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.memory": "16106127360"}
    text = node(labels, {})
    reading = one(text)
    assert caret(text, reading, "GP063")[1] == "16106127360"
    assert not [f for f in reading.facts if f.attribute == "memory_bytes"]


def test_a_node_that_gives_out_less_than_it_has() -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-L40S", "nvidia.com/gpu.count": "8"}
    text = node(labels, {"nvidia.com/gpu": "7"})
    reading = one(text)
    line = next(i for i, x in enumerate(text.split("\n"), 1) if '"nvidia.com/gpu": "7"' in x)
    assert caret(text, reading, "GP064") == (line, "7")
    assert of(reading, "product", "NVIDIA-L40S")["gpus"] == 8


def test_gpus_without_a_label_are_of_no_product() -> None:
    reading = one(node({}, {"nvidia.com/gpu": "4"}))
    assert [p.rule for p in reading.problems] == ["GP063"]
    assert not keys(reading, "product")


def test_yaml_says_what_json_says() -> None:
    yaml = """apiVersion: v1
items:
- apiVersion: v1
  kind: Node
  metadata:
    labels:
      nvidia.com/gpu.count: "8"
      nvidia.com/gpu.product: NVIDIA-B200
    name: b1
  status:
    capacity:
      cpu: "192"
      memory: 2Ti
    nodeInfo:
      architecture: arm64
kind: List
"""
    reading = one(yaml)
    assert reading.host == "b1"
    assert of(reading, "product", "NVIDIA-B200")["gpus"] == 8
    assert of(reading, "host", "")["memory_bytes"] == 2 << 40
    cut = read(yaml[: yaml.index("    nodeInfo")])
    assert "GP062" in {p.rule for r in cut for p in r.problems}
    assert not [f for r in cut for f in r.facts if f.attribute == "gpus"]


def test_nodes_are_found_in_a_capture_of_several_commands() -> None:
    text = '{\n  "blockdevices": []\n}\n$ kubectl get nodes -o json\n' + sample(
        "kubectl-nodes.json"
    )
    readings = read(text)
    assert [r.host for r in readings] == ["gpu-01", "gpu-02", "gpu-03"]
    name = next(f for f in readings[0].facts if f.attribute == "name").place.span
    assert text.split("\n")[name.line - 1][name.column - 1 : name.end_column - 1] == "gpu-01"
    lines = "\n".join(
        json.dumps(item) for item in json.loads(sample("kubectl-nodes.json"))["items"]
    )
    assert [r.host for r in read(lines)] == ["gpu-01", "gpu-02", "gpu-03"]


def test_other_tools_in_a_capture_change_nothing() -> None:
    listing, tree = sample("lspci-vvv.txt"), sample("lspci-tv.txt")
    for text in (f"{listing}\n$ lspci -tv\n{tree}", f"{tree}\n$ sudo lspci -vvv\n{listing}"):
        for reader, alone in ((lspci.READER, listing), (lspci_tree.READER, tree)):
            (together,) = read(text, reader)
            assert facts(together) == facts(one(alone))
            assert not together.problems


def test_pods_are_no_nodes() -> None:
    pod = '{"kind": "Pod", "metadata": {"ownerReferences": [{"kind": "Node", "name": "x"}]}}'
    assert not [r.tool for r in READERS if r.recognises(pod)]


@pytest.mark.parametrize(
    ("text", "value"),
    [("128", 128), ("127500m", 127.5), ("32777408Ki", 32777408 << 10), ("1e3", 1000), ("x", None)],
)
def test_quantities(text: str, value: float | None) -> None:
    found = quantity(text)
    assert (float(found) if found is not None else None) == value


# sysfs


def test_groups_and_bridges_of_a_listing() -> None:
    reading = one(sample("iommu-groups-ls.txt"))
    assert of(reading, "device", "0000:3b:00.1") == {
        "address": "0000:3b:00.1",
        "iommu_group": 32,
        "parent": "0000:3a:00.0",
    }
    assert of(reading, "host", "") == {"iommu": "on"}
    found = one(sample("iommu-groups-find.txt"))
    assert of(found, "device", "0000:65:00.0")["iommu_group"] == 17
    script = one(sample("iommu-groups-script.txt"))
    assert of(script, "device", "0000:01:00.1")["iommu_group"] == 1


@pytest.mark.parametrize(
    "line",
    [
        "[    4.507063] pci 0000:17:00.0: Adding to iommu group 12",
        "iommu: Adding device 0000:17:00.0 to group 12",
        "IOMMU Group 12 17:00.0 3D controller [0302]: NVIDIA Corporation A100 [10de:20b0]",
        "IOMMU Group  12: 0000:17:00.0 3D controller [0302] NVIDIA Corporation [10de:20b0]",
        "l 1 root /sys/bus/pci/devices/0000:17:00.0/iommu_group -> ../../kernel/iommu_groups/12",
    ],
)
def test_groups_as_others_write_them(line: str) -> None:
    reading = one(line + "\n")
    assert of(reading, "device", "0000:17:00.0")["iommu_group"] == 12


def test_a_device_in_two_groups() -> None:
    path = "/sys/kernel/iommu_groups/{}/devices/0000:17:00.0\n"
    text = path.format(1) + path.format(2)
    reading = one(text)
    assert caret(text, reading, "GP064") == (2, "2")
    assert "iommu_group" not in of(reading, "device", "0000:17:00.0")


def test_functions_in_the_order_of_their_numbers() -> None:
    reading = one(sample("virtfn.txt"))
    functions = of(reading, "device", "0000:3b:00.0")["virtual_functions"]
    assert functions[9:] == ("0000:3b:01.3", "0000:3b:01.4")  # type: ignore[index]
    lost = sample("virtfn.txt").split("\n", 1)[1]
    reading = one(lost)
    assert "virtual_functions" not in of(reading, "device", "0000:3b:00.0")
    assert [p.rule for p in reading.problems] == ["GP062"]
    named = one("l /sys/class/net/ens1f0/device/virtfn0 -> ../0000:3b:00.2\n")
    assert of(named, "nic", "ens1f0")["virtual_functions"] == ("0000:3b:00.2",)


# Outputs that are damaged


def values(readings: tuple[Reading, ...]) -> set[tuple[object, ...]]:
    """Facts, with their hosts where a text is of several."""
    return {
        (r.host if r.tool == "kubectl" else None, f.subject, f.attribute, f.value)
        for r in readings
        for f in r.facts
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_cut_text_says_nothing_that_the_whole_does_not(name: str) -> None:
    text, reader = sample(name), kind_of(name)
    whole = values(read(text))
    # A name that is cut does not tell what kind of device it is.
    unnamed = {(host, ("device", key), what, said) for host, (_, key), what, said in whole}
    chance = random.Random(name)
    for _ in range(40):
        end = chance.randrange(len(text))
        extra = values(read(text[:end], reader)) - whole - unnamed
        assert not extra, (end, text[max(0, end - 60) : end], extra)


@pytest.mark.parametrize("name", NAMES)
def test_lost_and_changed_lines_never_break_a_reader(name: str) -> None:
    text = sample(name)
    chance = random.Random(name)
    lines = text.split("\n")
    for _ in range(30):
        start = chance.randrange(len(lines))
        less = lines[:start] + lines[start + chance.randrange(1, 4) :]
        changed = list("\n".join(less))
        for _ in range(chance.randrange(4)):
            if changed:
                changed[chance.randrange(len(changed))] = chance.choice('0fx"<>[]{}:-\\ \n\té')
        damaged = "".join(changed)
        for reader in READERS:
            if reader.recognises(damaged):
                for reading in reader.read(SourceDocument("output", damaged)):
                    _well_formed(reading, damaged)


def _well_formed(reading: Reading, text: str) -> None:
    lines = text.split("\n")
    for fact in reading.facts:
        assert fact.attribute in ATTRIBUTES[fact.subject[0]]
    for problem in reading.problems:
        assert re.fullmatch("GP06[1-4]", problem.rule)
        assert problem.help
        assert isinstance(problem.origin, Place)
        assert 1 <= problem.origin.span.line <= len(lines)
