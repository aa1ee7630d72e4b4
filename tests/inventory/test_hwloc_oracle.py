"""The reader of hwloc's XML beside hwloc's own tools, on samples and on generated topologies."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gpuplan.inventory.facts import Observation, Value
from gpuplan.inventory.readers.trees.hwloc import READER
from gpuplan.source import SourceDocument
from tests.support.require import require

pytestmark = pytest.mark.hwloc
SAMPLES = Path(__file__).parent / "inventory_samples" / "trees"
TOOLS = ("lstopo-no-graphics", "hwloc-calc", "hwloc-info")
SHAPES = (
    "pack:1 core:1 pu:1",
    "numa:2 core:28 pu:2",
    "pack:2 numa:4 core:8 pu:2",
    "numa:8 core:8 pu:1",
    "pack:4 numa:1 l3:2 core:4 pu:2",
    "pack:2 numa:2 core:5 pu:2(indexes=core:numa)",
    "pack:2 [numa(memory=64GB)] [numa(memory=512GB)] core:8 pu:2",
    "numa:2(indexes=1,0) core:4 pu:2(indexes=0,8,1,9,2,10,3,11,4,12,5,13,6,14,7,15)",
    "group:2 numa:2 pack:1 core:3 pu:4",
    "numa:1 pack:2 core:6 pu:2",
)


@pytest.fixture(autouse=True)
def tools() -> None:
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        require("hwloc", f"{', '.join(missing)} not found (Debian package hwloc-nox)")


def run(*command: str, text: str = "") -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def numbers(text: str) -> tuple[int, ...]:
    return tuple(sorted(int(n) for n in text.replace(",", " ").split()))


class Oracle:
    """What hwloc's tools say of one file, with the numbers of the operating system."""

    def __init__(self, path: Path) -> None:
        self.input = ("--disallowed", "--input", str(path))

    def calc(self, *arguments: str) -> tuple[int, ...]:
        return numbers(run("hwloc-calc", *self.input, "--physical", *arguments))

    def cores(self) -> tuple[tuple[int, ...], ...]:
        count = int(run("hwloc-calc", *self.input, "--number-of", "core", "all"))
        asked = "".join(f"core:{i}\n" for i in range(count))
        options = ("--logical-input", "--physical-output", "--intersect", "pu")
        said = run("hwloc-calc", *self.input, *options, text=asked).splitlines()
        return tuple(sorted(numbers(line) for line in said if not line.startswith("Waiting")))

    def memory(self, node: int) -> int:
        said = run("hwloc-info", *self.input, "--physical", f"numa:{node}")
        found = re.search(r" local memory = (\d+)", said)
        return int(found[1]) if found else 0


def facts(path: Path) -> dict[tuple[str, str, str], Value]:
    readings = READER.read(SourceDocument(path.name, path.read_text()))
    found: tuple[Observation, ...] = readings[0].facts
    return {(*fact.subject, fact.attribute): fact.value for fact in found}


def readable(path: Path, folder: Path) -> Path:
    """The file as hwloc 2 reads it: version 3 differs in infos of the whole and in device types."""
    text = path.read_text()
    if 'topology version="3' not in text:
        return path
    text = re.sub(r"^  <info .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r' osdev_type="\d+"', ' osdev_type="2"', text)
    older = folder / path.name
    older.write_text(text.replace('topology version="3.0"', 'topology version="2.0"'))
    return older


def same(path: Path, oracle: Oracle) -> None:
    """CPUs, siblings, NUMA nodes with CPUs and memory, and the node of each device."""
    mine = facts(path)
    assert mine["host", "", "cpus"] == oracle.calc("--intersect", "pu", "all")
    assert mine["host", "", "siblings"] == oracle.cores()
    nodes = sorted(int(key) for kind, key, name in mine if (kind, name) == ("numa", "cpus"))
    with_cpus = [n for n in nodes if mine["numa", str(n), "cpus"]]
    assert set(with_cpus) <= set(oracle.calc("--intersect", "numa", "all"))
    assert sorted(c for n in with_cpus for c in mine["numa", str(n), "cpus"]) == list(  # type: ignore[union-attr, arg-type]
        mine["host", "", "cpus"]  # type: ignore[arg-type]
    )
    for node in nodes:
        assert mine.get(("numa", str(node), "memory_bytes"), 0) == oracle.memory(node)
        if node in with_cpus:
            near = oracle.calc("--intersect", "pu", f"numa:{node}")
            assert mine["numa", str(node), "cpus"] == near
    for kind, address, name in mine:
        if name == "address" and kind != "bridge":
            local = set(oracle.calc("--intersect", "numa", f"pci={address}")) & set(with_cpus)
            own = mine.get((kind, address, "numa_node"))
            assert own == (local.pop() if len(local) == 1 else None), address


@pytest.mark.parametrize("name", sorted(p.name for p in SAMPLES.glob("hwloc-*.xml")))
def test_samples_are_read_as_hwloc_reads_them(name: str, tmp_path: Path) -> None:
    path = SAMPLES / name
    same(path, Oracle(readable(path, tmp_path)))


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_are_read_as_hwloc_reads_them(shape: str, tmp_path: Path) -> None:
    path = generated(shape, tmp_path)
    same(path, Oracle(path))


def test_random_shapes_are_read_as_hwloc_reads_them(tmp_path: Path) -> None:
    chance = random.Random(5)
    for _ in range(25):
        kept = [
            (name, most) for name, most in LEVELS if name not in CACHES or chance.random() < 0.5
        ]
        shape = " ".join(f"{name}:{chance.randint(1, most)}" for name, most in kept)
        path = generated(shape, tmp_path)
        same(path, Oracle(path))


CACHES = ("l3", "l2")
LEVELS = (("pack", 4), ("numa", 4), ("l3", 3), ("l2", 2), ("core", 6), ("pu", 4))


def generated(shape: str, folder: Path) -> Path:
    path = folder / "generated.xml"
    path.write_text(run("lstopo-no-graphics", "--input", shape, "--of", "xml"))
    return path
