"""hwloc's matrix `NVLinkBandwidth` → how many NVLinks a GPU has, and how many join each two.

Source: hwloc/topology-nvml.c (01fee402): the matrix is of GPUs, NVSwitches and processors, in MB/s
of all links between two of them; a link of version 1 counts 20,000, of versions 2 to 4 25,000.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from gpuplan.frozen import record
from gpuplan.inventory.readers.nvidia.topo_legend import sorted_key
from gpuplan.inventory.readers.trees.hwloc_sets import Topology, kind_of
from gpuplan.inventory.readers.words import pci_address, whole
from gpuplan.inventory.readers.xmlread import Element

NAME = "NVLinkBandwidth"
RATES = (25_000, 20_000)  # GPUs of the first version have four links, no multiple of the later rate
MOST = 64  # links of a GPU


@record
class Gpu:
    """`row` of the matrix is of the GPU at `address`, `name` is nvidia-smi's for it (`GPU0`)."""

    row: int
    address: str
    name: str


def nvlinks(topology: Topology) -> None:
    for matrix in topology.root.all("distances2hetero"):
        if matrix.attributes.get("name") == NAME:
            _matrix(topology, matrix)


def _matrix(topology: Topology, matrix: Element) -> None:
    objects = " ".join(child.text for child in matrix.all("indexes")).split()
    words = " ".join(child.text for child in matrix.all("u64values")).split()
    values = [number for number in map(whole, words) if number is not None]
    size = len(objects)
    if not size or len(values) != size * size:
        return
    gpus = list(_gpus(topology, objects))
    rows = [values[i * size : (i + 1) * size] for i in range(size)]
    own = {g.row for g in gpus}
    counted: dict[int, int] = {}
    for gpu in gpus:
        rate = sum(v for i, v in enumerate(rows[gpu.row]) if i != gpu.row)
        if count := _count(rate):
            counted[gpu.row] = count
            topology.gathering.add(("gpu", gpu.address), "nvlinks", count, matrix.place)
    switched = _switched(topology, objects, own)
    for gpu, other in combinations(gpus, 2):
        if {gpu.row, other.row} <= counted.keys():
            count = _count(rows[gpu.row][other.row])
            if count is None and switched:
                count = min(counted[gpu.row], counted[other.row])
            if count:
                pair = ("pair", sorted_key(gpu.name, other.name))
                topology.gathering.add(pair, "link", f"NV{count}", matrix.place)


def _count(rate: int) -> int | None:
    """Whole links alone: of another number nothing is said."""
    link = next((link for link in RATES if rate % link == 0), None)
    return rate // link if link and 0 < rate // link <= MOST else None


def _switched(topology: Topology, objects: list[str], own: set[int]) -> bool:
    """Whether all that is no GPU are NVSwitches, over which GPUs reach each other; the links of
    switches among themselves are not in the matrix."""
    nvswitches = {
        f"PCIDev:{element.attributes.get('gp_index')}"
        for element, _, _ in topology.devices
        if element.attributes.get("subtype") == "NVSwitch"
    }
    return {o for i, o in enumerate(objects) if i not in own} <= nvswitches


def _gpus(topology: Topology, objects: list[str]) -> Iterator[Gpu]:
    for element, _, _ in topology.devices:
        word = element.attribute("pci_busid")
        address = pci_address(word.text) if word else None
        for device in element.children:
            name = device.attributes.get("name", "")
            key = f"OSDev:{device.attributes.get('gp_index')}"
            if address and key in objects and kind_of(device) == "OSDev" and name[:4] == "nvml":
                yield Gpu(row=objects.index(key), address=address, name=f"GPU{name[4:]}")
