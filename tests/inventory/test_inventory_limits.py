"""Texts that no tool writes, of any length: each character is looked at a few times at most.

A reader that looks at each again for every other would be at it for days with these.
"""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from gpuplan.cli.main import main
from gpuplan.inventory.readers.registry import READERS
from gpuplan.inventory.texts import MOST_LINES, MOST_LINES_IN_ALL, texts
from gpuplan.source import SourceDocument

LENGTH = 500_000
UNITS = (
    *("\n", " \n", " ", "\t", "GPU 0: ", "GPU 00000000:1B:00.0 ", "GPU 00000000:1B:00.0\n"),
    *("GPU 0: x (UUID: ", "Link 0: ", "node 0 size: ", "MIG 1g ", "=", "NVSMI LOG=", "-> /pci"),
)


@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_whatever_is_said_again_and_again_is_looked_at_once(unit: str) -> None:
    text = unit * (LENGTH // len(unit))
    for reader in READERS:
        reader.recognises(text)


HEADS = {
    "nvidia-smi -q": ("=NVSMI LOG=\n", 200_000),
    "numactl -H": ("available: 2 nodes (0-1)\n", 200_000),
    "lscpu": ("On-line CPU(s) list: 0-1\n", 20_000),
    "IOMMU groups": (" " * 1_000_000 + "x\n", 1),
    "lspci": ("17:00.0 VGA compatible controller [0300]: a" + " " * 1_000_000 + "b\n", 1),
    "nvidia-smi -L": ("GPU 0: NVIDIA" + " " * 1_000_000 + "x (UUID: GPU-0)\n", 1),
}


@pytest.mark.parametrize("tool", HEADS)
def test_a_line_of_any_length_and_any_number_of_lines_are_read_in_one_pass(tool: str) -> None:
    reader = next(r for r in READERS if r.tool == tool)
    line, count = HEADS[tool]
    reader.read(SourceDocument("long", line * count))


def test_what_no_host_says_is_left_out_before_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "blank.txt").write_text("\n" * (MOST_LINES + 1), encoding="utf-8")
    (tmp_path / "nodes.json").write_text("{" + "\n" * (MOST_LINES + 1) + "}", encoding="utf-8")
    read, (problem,) = texts([tmp_path], io.BytesIO())
    assert [text.document.path for text in read] == [f"{tmp_path}/nodes.json"]
    assert problem.message.endswith("blank.txt is left out: it has more than 400,000 lines")


def test_more_lines_than_a_thousand_hosts_say_are_refused_at_once(tmp_path: Path) -> None:
    for number in range(MOST_LINES_IN_ALL // MOST_LINES + 1):
        (tmp_path / f"{number:02d}.txt").write_text("\n" * MOST_LINES, encoding="utf-8")
    _, (problem,) = texts([tmp_path], io.BytesIO())
    assert "have more than 5,000,000 lines" in problem.message
    assert problem.help == "import the hosts in several parts"


MANY = "9" * 5_000
NUMBERS = {
    "numactl -H": f"available: 1 nodes (0)\nnode {MANY} cpus: 0\nnode 0 size: {MANY} MB\n",
    "numactl distances": f"available: 1 nodes (0)\nnode 0 cpus: 0\nnode {MANY}\n{MANY}: {MANY}\n",
    "lscpu": f"Architecture: x\nCPU(s): {MANY}\nNUMA node{MANY} CPU(s): 0\n",
    "hwloc": f"<topology><object type='Machine'/><distances2><indexes>{MANY}</indexes>"
    "</distances2></topology>",
    "nvidia-smi mig": "| GPU instances:\n| Start:Size\n"
    f"|  {MANY}  MIG 1g.5gb  19  {MANY}  {MANY}:1 |",
    "nvidia-smi topo -m": f"        GPU{MANY}  GPU1\nGPU0  X  NV4\nGPU1  NV4  X\n",
    "nvidia-smi nvlink": f"GPU {MANY}: x (UUID: GPU-0)\n  Link {MANY}: 25 GB/s\n",
    "dcgmi": f"{MANY} GPUs found.\n| GPU ID | Device Information |\n| {MANY} | Name: x |\n",
    "IOMMU groups": f"/sys/kernel/iommu_groups/{MANY}/devices/0000:65:00.0\n",
    "virtual functions": f"/sys/bus/pci/devices/0000:65:00.0/virtfn{MANY} -> ../0000:65:00.1\n",
}


@pytest.mark.parametrize("text", NUMBERS.values(), ids=NUMBERS.keys())
def test_a_number_of_thousands_of_digits_is_none(text: str) -> None:
    document = SourceDocument("long", text)
    for reader in READERS:
        reader.recognises(text)
        reader.read(document)


def test_a_table_of_distances_with_a_node_twice_is_left_out_and_named_at_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "node 0 cpus: 0 1\nnode 0 size: 9 MB\nnode 1 cpus: 2 3\nnode 1 size: 9 MB\n"
    table = "node distances:\nnode   0   0\n  0:  10  21\n  1:  21  10\n"
    path = tmp_path / "numactl.txt"
    path.write_text(f"available: 2 nodes (0-1)\n{rows}{table}", "utf-8")
    assert main(["inventory", "import", str(path)]) == 0
    written, said = capsys.readouterr()
    assert "distances" not in written
    assert "a column of the distances" in said
    assert "numactl.txt:7:12" in said
