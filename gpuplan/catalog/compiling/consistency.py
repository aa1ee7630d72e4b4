"""What files about hardware must agree on: references, power, one reference node a GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from gpuplan.catalog.documents.gpu import GpuFile
from gpuplan.catalog.documents.node import NodeFile
from gpuplan.catalog.stand_ins import STAND_INS

Files = Mapping[str, Mapping[str, Any]]


def check_nodes(files: Files) -> Iterator[str]:
    """One line a problem."""
    for name, node in files["nodes"].items():
        gpu = files["gpus"].get(node.gpu)
        if gpu is None:
            yield f"nodes/{name}.yaml: no such GPU '{node.gpu}'"
        else:
            yield from (f"nodes/{name}.yaml: {problem}" for problem in _power(node, gpu))
        for nic in sorted({n.nic for n in node.nics} - set(files["nics"])):
            yield f"nodes/{name}.yaml: no such network card '{nic}'"
    twice = Counter(node.gpu for node in files["nodes"].values() if node.reference)
    yield from (f"nodes: two reference nodes for '{g}'" for g, n in twice.items() if n > 1)


def _power(node: NodeFile, gpu: GpuFile) -> Iterator[str]:
    """A node draws at least what its GPUs may draw, and is never measured above its maximum."""
    least = node.gpus * gpu.power.value
    if node.power and node.power.value < least:
        yield f"power is less than the {least:g} W of its GPUs"
    for row in node.measured_power:
        if node.power and row.power > node.power.value:
            yield f"measured_power '{row.load}' is more than power"


def check_stand_ins(gpus: Mapping[str, GpuFile]) -> Iterator[str]:
    """Each stands in for another, and the way ends at one that was measured."""
    for name, gpu in gpus.items():
        for use in STAND_INS:
            stand_in = getattr(gpu, use)
            if stand_in is not None and stand_in.gpu not in gpus:
                yield f"gpus/{name}.yaml: {use}: no such GPU '{stand_in.gpu}'"
        if name in _reached(gpus, name):
            yield f"gpus/{name}.yaml: it stands in for itself"


def _reached(gpus: Mapping[str, GpuFile], start: str) -> set[str]:
    """Every GPU that is named on the way from `start`."""
    reached: set[str] = set()
    ahead = [start]
    while ahead:
        gpu = gpus.get(ahead.pop())
        named = {s.gpu for use in STAND_INS if gpu and (s := getattr(gpu, use))}
        ahead += named - reached
        reached |= named
    return reached


def check_pci_ids(files: Files) -> Iterator[str]:
    """A PCI id of a physical function names one card."""
    ids = Counter(i for nic in files["nics"].values() for i in nic.pci_ids.value)
    yield from (f"nics: two cards with the PCI id '{i}'" for i, count in ids.items() if count > 1)


def check_ranges(files: Files) -> Iterator[str]:
    """Items are distinct over all files of a kind, and GPUs and nodes are there."""
    for folder in ("power", "purchase"):
        for name, file in files[folder].items():
            if file.kind != folder:
                yield f"{folder}/{name}.yaml: this is {file.kind} '{file.id}'"
        rows = [(name, row) for name, file in files[folder].items() for row in file.ranges]
        twice = Counter(row.item for _, row in rows)
        yield from (f"{folder}: item '{i}' twice" for i, count in twice.items() if count > 1)
        for name, row in rows:
            if row.gpu and row.gpu not in files["gpus"]:
                yield f"{folder}/{name}.yaml: no such GPU '{row.gpu}'"
            if row.node and row.node not in files["nodes"]:
                yield f"{folder}/{name}.yaml: no such node '{row.node}'"


def check_commitments(files: Files) -> Iterator[str]:
    """Commitments are to machines that their provider has."""
    known = {(f.provider, x.name) for f in files["instances"].values() for x in f.instances}
    for name, file in files["commitments"].items():
        for row in file.commitments:
            if (file.provider, row.instance) not in known:
                yield f"commitments/{name}.yaml: no such instance '{row.instance}'"


def check_kernels(files: Files) -> Iterator[str]:
    """GPUs that they speak of are there. A library of kernels need not be an engine."""
    gpus = files["gpus"].values()
    architectures = {gpu.architecture for gpu in gpus}
    capabilities = {gpu.compute_capability for gpu in gpus if gpu.compute_capability}
    for name, file in files["kernels"].items():
        for row in file.tuned_products:
            if row.architecture not in architectures:
                yield f"kernels/{name}.yaml: no GPU of architecture '{row.architecture}'"
        named = (file.named_experts,) if file.named_experts else ()
        exchanges = (*file.fused_exchanges, *file.fused_by_recipes)
        for row in (*exchanges, *named, *file.missing_experts):
            begin = row.capability
            if begin and not any(capability.startswith(begin) for capability in capabilities):
                yield f"kernels/{name}.yaml: no GPU of compute capability '{begin}'"
