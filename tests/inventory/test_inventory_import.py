"""Texts of tools put together into an inventory: joining, contradictions, gaps, archives."""

from __future__ import annotations

import io
import itertools
import random
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from gpuplan.diagnostics import Diagnostic, Severity
from gpuplan.inventory.readers.registry import READERS, likely
from gpuplan.inventory.run import Imported, imported
from gpuplan.inventory.texts import Text, texts
from gpuplan.inventory.v1 import HostSpec, Inventory
from gpuplan.manifest.load import validate
from gpuplan.manifest.text import read_yaml
from gpuplan.source import Place, SourceDocument
from tests.support import inventory_machine as machine


def given(files: Mapping[str, str], place: str = "gpu-01") -> list[Text]:
    return [
        Text(place=place, document=SourceDocument(f"{place}/{name}", text, name))
        for name, text in sorted(files.items())
    ]


def load(answer: Imported) -> list[HostSpec]:
    """The hosts of the document, read as any inventory is."""
    [(document, problems)] = read_yaml("inventory.yaml", answer.text)
    assert not problems
    inventory, wrong = validate(Inventory, document)
    assert inventory is not None, [w.message for w in wrong]
    return inventory.hosts


def run(files: Mapping[str, str]) -> tuple[HostSpec, tuple[Diagnostic, ...]]:
    answer = imported(given(files), "test", likely)
    [host] = load(answer)
    return host, answer.problems


def codes(problems: Iterable[Diagnostic]) -> set[str]:
    return {p.rule for p in problems}


def messages(problems: Iterable[Diagnostic], code: str) -> list[str]:
    return [p.message for p in problems if p.rule == code]


def dgx(*names: str) -> dict[str, str]:
    return {name: machine.TEXTS[name]() for name in names or machine.TEXTS}


def test_all_tools_together_describe_the_machine_whole() -> None:
    host, problems = run(dgx())
    assert not problems
    assert (host.names, host.sockets, host.threads_per_core) == (["gpu-01"], 2, 2)
    assert (host.cpu_vendor, host.physical_address_bits) == ("intel", 46)
    assert [n.cpus for n in host.numa_nodes] == ["0-55,112-167", "56-111,168-223"]
    assert [n.distances for n in host.numa_nodes] == [[10, 21], [21, 10]]
    assert all(n.siblings == "split" for n in host.numa_nodes)
    assert [g.address for g in host.gpus] == [f"0000:{bus}:00.0" for bus in machine.GPUS]
    assert {g.type for g in host.gpus} == {"h100-sxm-80gb"}
    assert [g.module_id for g in host.gpus] == list(range(1, 9))
    assert [g.numa_node for g in host.gpus] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert [g.iommu_group for g in host.gpus] == list(range(100, 108))
    assert [n.type for n in host.nics] == ["connectx-7"] * 8
    assert [g.switch for g in host.gpus] == [n.switch for n in host.nics]
    assert len({g.switch for g in host.gpus}) == 8
    assert host.links[0].link == "NV18"
    assert [n.name for n in host.nics] == [f"mlx5_{n}" for n in range(8)]
    near = [(link.between, link.to) for link in host.links if link.link == "PXB"]
    assert near == [([f"gpu{n}"], [f"nic{n}"]) for n in range(8)]
    assert [d.size for d in host.nvme] == [3840 * 10**9] * 4
    assert len(host.gpu_uuids["gpu-01"]) == 8


@pytest.mark.parametrize("name", machine.TEXTS)
def test_one_reader_knows_each_text(name: str) -> None:
    assert sum(reader.recognises(machine.TEXTS[name]()) for reader in READERS) == 1


def test_names_without_addresses_are_a_gap_and_no_further_devices() -> None:
    host, problems = run(dgx("lspci.txt", "topo.txt", "lsblk.json"))
    assert len(host.nics) == 8
    assert len(host.nvme) == 4
    said = " ".join(messages(problems, "GP066"))
    assert "which address each named network card has" in said
    assert "which address each named drive has" in said


def test_a_switch_is_the_upstream_port_under_the_root_port() -> None:
    host, _ = run(dgx("lspci.txt"))
    bridges = {b.address: b for b in host.bridges}
    for gpu in host.gpus:
        assert gpu.switch is not None
        upstream = bridges[gpu.switch]
        assert upstream.parent is not None
        assert bridges[upstream.parent].parent is None


FACTS = {  # what each subset must say, or say that it is missing
    "numa_nodes": ("NUMA nodes", lambda h: [(n.cpus, n.memory) for n in h.numa_nodes]),
    "gpu types": ("product", lambda h: [g.type for g in h.gpus for _ in range(g.count or 1)]),
    "gpu addresses": ("PCI address", lambda h: [g.address for g in h.gpus]),
    "gpu nodes": ("NUMA node", lambda h: [g.numa_node for g in h.gpus]),
    "gpu groups": ("IOMMU group", lambda h: [g.iommu_group for g in h.gpus]),
    "address bits": ("address bits", lambda h: h.physical_address_bits),
    "vendor": ("maker", lambda h: h.cpu_vendor),
}


@pytest.mark.parametrize("size", [1, 2, 3, 9])
def test_each_subset_of_tools_says_the_same_or_what_is_missing(size: int) -> None:
    whole, _ = run(dgx())
    subsets = list(itertools.combinations(machine.TEXTS, size))
    for names in random.Random(size).sample(subsets, min(12, len(subsets))):
        answer = imported(given(dgx(*names)), "test", likely)
        [host] = load(answer)
        said = " ".join(messages(answer.problems, "GP066"))
        assert "GP065" not in codes(answer.problems), names
        for words, value in FACTS.values():
            got = value(host)
            same = got == value(whole)
            absent = words in said or "the GPUs of" in said or "the memory" in said
            assert same or absent, (names, words, got)


def test_the_order_of_texts_does_not_matter() -> None:
    files = given(dgx())
    first = imported(files, "test", likely)
    for seed in range(3):
        shuffled = random.Random(seed).sample(files, len(files))
        assert imported(shuffled, "test", likely).text == first.text


def test_paths_in_any_order_give_the_same_bytes(tmp_path: Path) -> None:
    for name, text in dgx().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    paths = sorted(tmp_path.iterdir())
    results = {
        imported(texts(order, io.BytesIO())[0], "test", likely).text
        for order in (paths, paths[::-1], [*paths, *paths])
    }
    assert len(results) == 1


def test_comments_name_the_line_that_each_value_was_read_from() -> None:
    text = imported(given(dgx()), "test", likely).text
    line = (
        machine.lspci()
        .split("\n")
        .index(
            "0000:1b:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] "
            "[10de:2330] (rev a1)"
        )
    )
    assert f"iommu_group gpu-01/lspci.txt:{line + 3}" in " ".join(text.replace("#", "").split())


def test_a_contradiction_shows_both_lines_and_is_left_out() -> None:
    files = dgx("lscpu.txt", "numactl.txt", "nvidia-smi.xml", "topo.txt", "lspci.txt")
    wrong = files["lspci.txt"].replace(
        "[10de:2330] (rev a1)\n\tNUMA node: 0", "[10de:2330]\n\tNUMA node: 1", 1
    )
    host, problems = run({**files, "lspci.txt": wrong})
    [found] = [p for p in problems if p.rule == "GP065"]
    assert found.severity is Severity.ERROR
    assert "NUMA node of GPU 0000:1b:00.0" in found.message
    places = [found.origin, *(r.origin for r in found.related)]
    lines = {}
    for place in places:
        assert isinstance(place, Place)
        name = place.document.split("/")[1]
        lines[name] = {**files, "lspci.txt": wrong}[name].split("\n")[place.span.line - 1]
    assert lines["topo.txt"].startswith("GPU0")
    assert lines["lspci.txt"].strip() == "NUMA node: 1"
    assert host.gpus[0].numa_node is None
    assert host.gpus[1].numa_node == 0


def test_numbers_that_differ_by_nature_are_no_contradictions() -> None:
    files = dgx("numactl.txt", "meminfo.txt", "kubectl.json", "lscpu.txt", "nvidia-smi.xml")
    less = files["meminfo.txt"].replace(str(2 * machine.NODE_KIB), str(2 * machine.NODE_KIB - 9000))
    host, problems = run({**files, "meminfo.txt": less})
    assert "GP065" not in codes(problems)
    assert [n.memory for n in host.numa_nodes] == [1007 * 2**30] * 2


def test_a_count_of_gpus_that_is_not_the_number_listed_is_a_contradiction() -> None:
    files = dgx("kubectl.json", "nvidia-smi.xml")
    fewer = files["kubectl.json"].replace(
        '"nvidia.com/gpu.count": "8"', '"nvidia.com/gpu.count": "4"'
    )
    _, problems = run({**files, "kubectl.json": fewer})
    assert any("the number of GPUs" in m for m in messages(problems, "GP065"))


def test_a_count_of_cpus_is_compared_with_threads_and_not_with_cores() -> None:
    files = dgx("kubectl.json", "lscpu.txt")
    assert "GP065" not in codes(run(files)[1])
    fewer = files["kubectl.json"].replace('"cpu": "224"', '"cpu": "112"')
    _, problems = run({**files, "kubectl.json": fewer})
    assert any("the number of CPUs" in m for m in messages(problems, "GP065"))


def test_gpus_by_number_and_by_address_are_joined_in_the_order_of_the_bus() -> None:
    host, problems = run(dgx("lspci.txt", "topo.txt", "numactl.txt"))
    assert len(host.gpus) == 8
    assert not any("numbered" in m for m in messages(problems, "GP066"))
    assert host.links[0].between == [f"gpu{n}" for n in range(8)]


def test_numbers_are_not_joined_with_addresses_of_another_count() -> None:
    rows = machine.topo().split("\n")
    seven = "\n".join(r for r in rows if not r.startswith("GPU7"))
    host, problems = run({**dgx("lspci.txt"), "topo.txt": seven})
    assert len(host.gpus) == 8
    assert codes(problems) & {"GP062", "GP064", "GP066"}


def test_without_anything_that_names_threads_of_a_core_that_is_a_gap() -> None:
    _, problems = run(dgx("lscpu.txt", "numactl.txt"))
    assert any("which threads share a core" in m for m in messages(problems, "GP066"))
    _, problems = run(dgx("lscpu.txt", "lscpu-p.txt", "numactl.txt"))
    assert not any("which threads share a core" in m for m in messages(problems, "GP066"))


def test_threads_that_are_neither_split_nor_adjacent_are_listed() -> None:
    cores = ((0, 3), (1, 2), (4, 5), (6, 7))
    rows = ["# CPU,Core,Socket,Node"]
    rows += [
        f"{c},{n},0,0" for c, n in sorted((c, n) for n, core in enumerate(cores) for c in core)
    ]
    cpus = "node 0 cpus: 0 1 2 3 4 5 6 7\nnode 0 size: 64000 MB\n"
    host, _ = run({"p.txt": "\n".join(rows) + "\n", "n.txt": f"available: 1 nodes (0)\n{cpus}"})
    assert host.numa_nodes[0].siblings == ["0,3", "1-2", "4-5", "6-7"]


def test_nodes_that_are_memory_alone_are_no_nodes_of_the_host() -> None:
    text = """available: 4 nodes (0,8,254-255)
node 0 cpus: 0 1 2 3
node 0 size: 126796 MB
node 0 free: 118693 MB
node 8 cpus: 4 5 6 7
node 8 size: 130812 MB
node 8 free: 124789 MB
node 254 cpus:
node 254 size: 15360 MB
node 254 free: 15359 MB
node 255 cpus:
node 255 size: 15360 MB
node 255 free: 15359 MB
node distances:
node   0   8 254 255
  0:  10  40  80  80
  8:  40  10  80  80
254:  80  80  10  80
255:  80  80  80  10
"""
    host, _ = run({"numactl.txt": text})
    assert [(n.node, n.cpus, n.distances) for n in host.numa_nodes] == [
        (None, "0-3", [10, 40]),
        (8, "4-7", [40, 10]),
    ]


def test_a_guest_is_said_to_be_one() -> None:
    text = machine.lscpu().replace(
        "NUMA node(s)",
        "Hypervisor vendor:               KVM\nVirtualization type:             full\nNUMA node(s)",
    )
    host, problems = run({"lscpu.txt": text})
    assert host.virtualization is not None
    assert any("is a virtual machine" in m for m in messages(problems, "GP066"))


def test_a_gpu_that_the_catalogue_does_not_know_is_kept_by_its_name() -> None:
    text = machine.nvidia_xml().replace(machine.PRODUCT, "NVIDIA H109 80GB HBM3")
    text = text.replace("233010DE", "FFF010DE")
    host, problems = run({"q.xml": text})
    assert {g.type for g in host.gpus} == {"NVIDIA H109 80GB HBM3"}
    [found] = [p for p in problems if p.rule == "GP067"]
    assert "catalog list gpus" in found.help
    assert "h100-sxm-80gb" in found.label


def test_a_gpu_without_a_name_is_known_by_its_pci_identifier() -> None:
    text = machine.lspci().replace("NVIDIA Corporation GH100 [H100 SXM5 80GB]", "NVIDIA Device")
    text = text.replace("Mellanox Technologies MT2910 Family [ConnectX-7]", "Mellanox Device")
    host, _ = run({"lspci.txt": text})
    assert {g.type for g in host.gpus} == {"h100-sxm-80gb"}
    assert {n.type for n in host.nics} == {"connectx-7"}


def test_equal_hosts_are_folded_and_keep_their_uuids() -> None:
    hosts = [
        text
        for number in (1, 2, 10)
        for text in given(
            {**dgx("lscpu.txt"), "q.xml": machine.nvidia_xml(str(number % 10))}, f"gpu-{number}"
        )
    ]
    [host] = load(imported(hosts, "test", likely))
    assert host.names == ["gpu-1", "gpu-2", "gpu-10"]
    assert len(host.gpus) == 8
    uuids = host.gpu_uuids
    assert set(uuids) == {"gpu-1", "gpu-2", "gpu-10"}
    assert uuids["gpu-1"] != uuids["gpu-2"]


def test_nodes_of_a_cluster_are_hosts_and_join_what_their_folders_say() -> None:
    files = [
        Text(
            place="",
            document=SourceDocument("nodes.json", machine.kubectl(["gpu-01", "gpu-02"]), ""),
        ),
        *given(dgx("lscpu.txt", "numactl.txt", "nvidia-smi.xml"), "gpu-01.example.com"),
    ]
    answer = imported(files, "test", likely)
    hosts = {h.names[0]: h for h in load(answer)}
    assert set(hosts) == {"gpu-01", "gpu-02"}
    assert len(hosts["gpu-01"].numa_nodes) == 2
    assert hosts["gpu-01"].node_type == "dgx-h100"
    assert hosts["gpu-02"].gpus[0].count == 8


def test_mig_instances_are_kept_with_their_places() -> None:
    text = """+-------------------------------------------------------+
| GPU instances:                                        |
| GPU   Name             Profile  Instance   Placement  |
|                          ID       ID       Start:Size |
|=======================================================|
|   1  MIG 1g.10gb         19        9          2:1     |
+-------------------------------------------------------+
|   1  MIG 3g.40gb          9        2          4:4     |
+-------------------------------------------------------+
"""
    host, _ = run({**dgx("nvidia-smi.xml"), "lgi.txt": text})
    assert [g.mig_instances for g in host.gpus[:3]] == [[], ["1g.10gb@2", "3g.40gb@4"], []]
