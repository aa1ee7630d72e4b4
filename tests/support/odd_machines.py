"""Machines whose NUMA nodes are unlike, as their tools print them: texts for the import, and what a
person adds for guests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from ruamel.yaml import YAML

from gpuplan.catalog.load import load_catalog
from gpuplan.catalog.model import Gpu
from gpuplan.inventory.readers.registry import likely
from gpuplan.inventory.run import imported
from gpuplan.inventory.v1 import Inventory
from gpuplan.placement.api import Placement
from gpuplan.placement.place import place
from gpuplan.plan.model import HostResources
from gpuplan.units import GIB
from tests.inventory.test_inventory_import import given
from tests.support.placement_samples import offer, workload


class Machine(NamedTuple):
    """`nodes` are the CPUs of each NUMA node as `lscpu` lists them, `sizes` their memory in MB,
    `on` the node of each GPU."""

    model: str
    vendor: str
    bits: int
    sockets: int
    nodes: Sequence[str]
    sizes: Sequence[int]
    distances: Sequence[Sequence[int]]
    on: Sequence[int]
    gpu: str


def _far(nodes: int, near: int, far: int) -> list[list[int]]:
    """Distances of two sockets with equal halves of the nodes."""
    half = nodes // 2
    return [
        [10 if a == b else near if a // half == b // half else far for b in range(nodes)]
        for a in range(nodes)
    ]


MACHINES = {
    # GPUs and CPUs as in the matrix of a DGX A100 in NVIDIA/nccl issue 1505: pairs of GPUs on nodes
    # 3, 1, 7 and 5, node 3 with the CPUs 48-63,176-191; none on 0, 2, 4 and 6.
    "dgx-a100-nps4": Machine(
        "AMD EPYC 7742 64-Core Processor", "AuthenticAMD", 48, 2,
        [f"{16 * n}-{16 * n + 15},{128 + 16 * n}-{128 + 16 * n + 15}" for n in range(8)],
        [128_000] * 8, _far(8, 12, 32), [3, 3, 1, 1, 7, 7, 5, 5], "a100-sxm-40gb",
    ),
    # Sub-NUMA clusters of two with three GPUs on one and one on the other, as in
    # sgl-project/sglang issue 13973: node 0 with the CPUs 0-23,96-119.
    "snc2-uneven": Machine(
        "INTEL(R) XEON(R) PLATINUM 8558", "GenuineIntel", 52, 2,
        [f"{24 * n}-{24 * n + 23},{96 + 24 * n}-{96 + 24 * n + 23}" for n in range(4)],
        [256_000] * 4, _far(4, 12, 21), [0, 0, 0, 1, 2, 2, 2, 3], "h100-sxm-80gb",
    ),
    # Nodes of memory alone behind those with CPUs, as of high-bandwidth memory or behind CXL.
    "memory-alone": Machine(
        "INTEL(R) XEON(R) PLATINUM 8558", "GenuineIntel", 52, 2,
        ["0-47,96-143", "48-95,144-191", "", ""],
        [512_000, 256_000, 64_000, 64_000],
        [[10, 21, 13, 23], [21, 10, 23, 13], [13, 23, 10, 23], [23, 13, 23, 10]],
        [0, 0, 1, 1], "l40s",
    ),
}  # fmt: skip


def cpus(listed: str) -> list[int]:
    ends = [part.split("-") for part in listed.split(",") if part]
    return [cpu for first, last in ends for cpu in range(int(first), int(last) + 1)]


def texts(machine: Machine) -> Mapping[str, str]:
    """`lscpu`, `numactl -H` and `nvidia-smi topo -m`."""
    every = sum(len(cpus(n)) for n in machine.nodes)
    rows = [
        ("Architecture", "x86_64"),
        ("Address sizes", f"{machine.bits} bits physical, 48 bits virtual"),
        ("CPU(s)", every),
        ("On-line CPU(s) list", f"0-{every - 1}"),
        ("Vendor ID", machine.vendor),
        ("Model name", machine.model),
        ("Thread(s) per core", 2),
        ("Core(s) per socket", every // 2 // machine.sockets),
        ("Socket(s)", machine.sockets),
        ("NUMA node(s)", len(machine.nodes)),
        *((f"NUMA node{n} CPU(s)", text) for n, text in enumerate(machine.nodes)),
    ]
    lscpu = "".join(f"{name + ':':<21}{value}\n" for name, value in rows)
    numbers = range(len(machine.nodes))
    numactl = f"available: {len(numbers)} nodes (0-{numbers[-1]})\n"
    for n in numbers:
        listed = " ".join(map(str, cpus(machine.nodes[n])))
        numactl += f"node {n} cpus: {listed}\nnode {n} size: {machine.sizes[n]} MB\n"
    numactl += "node distances:\nnode  " + "".join(f"{n:>4}" for n in numbers) + "\n"
    for n in numbers:
        numactl += f"{n:>3}: " + "".join(f"{d:>4}" for d in machine.distances[n]) + "\n"
    gpus = range(len(machine.on))
    topo = "\t".join(["", *(f"GPU{g}" for g in gpus), "CPU Affinity", "NUMA Affinity"]) + "\n"
    for g in gpus:
        links = ["X" if g == o else "NODE" if machine.on[g] == machine.on[o] else "SYS"
                 for o in gpus]  # fmt: skip
        topo += "\t".join([f"GPU{g}", *links, machine.nodes[machine.on[g]], str(machine.on[g])])
        topo += "\n"
    return {"lscpu.txt": lscpu, "numactl.txt": numactl, "topo.txt": topo}


def _gpu(machine: Machine) -> Gpu:
    gpu = load_catalog().gpu(machine.gpu)
    assert gpu is not None
    return gpu


@cache
def inventory(name: str) -> Inventory:
    """The import of the machine's texts, with addresses and what guests need of a host; and with
    its nodes of memory alone, which an import leaves out and a document may have."""
    machine = MACHINES[name]
    answer = imported(given(texts(machine), name), "test", likely)
    [tree] = YAML(typ="safe").load(answer.text)["hosts"]
    counted: list[dict[str, Any]] = [
        {k: v for k, v in gpu.items() if k != "count"}
        for gpu in tree["gpus"]
        for _ in range(gpu.get("count", 1))
    ]
    [pci_id, *_] = _gpu(machine).pci_ids
    gpus = [
        gpu
        | {"type": machine.gpu, "address": f"0000:{16 + n:02x}:00.0"}
        | {"pci_id": pci_id, "iommu_group": 1 + n}
        | ({"module_id": n + 1} if "sxm" in machine.gpu else {})
        for n, gpu in enumerate(counted)
    ]
    for number, (size, row) in enumerate(zip(machine.sizes, machine.distances, strict=True)):
        if not machine.nodes[number]:
            tree["numa_nodes"].append({"memory": f"{size} MB"})
        tree["numa_nodes"][number]["distances"] = list(row)
    hypervisor = {"disk_path": "/dev/vg0", "bridge": "br0"}
    tree |= {"names": [name], "gpus": gpus, "hypervisor": hypervisor}
    document = {"apiVersion": "gpuplan.dev/inventory/v1", "name": "odd", "hosts": [tree]}
    return Inventory.model_validate(document)


CASES = [
    (name, gpus)
    for name, machine in MACHINES.items()
    for gpus in (1, 2, 4, 8)
    if gpus <= len(machine.on)
]


def placed(name: str, gpus: int) -> Placement:
    """As many guests of so many GPUs as the machine has, with six cores for each GPU."""
    machine = MACHINES[name]
    resources = HostResources(
        cpu_cores=6 * gpus,
        host_memory_bytes=32 * gpus * GIB,
        shared_memory_bytes=0,
        scratch_bytes=0,
    )
    asked = workload(
        "tune",
        gpu=machine.gpu,
        node_pool=machine.gpu,
        gpus_per_node=gpus,
        replicas=len(machine.on) // gpus,
        isolation="vm",
        resources=resources,
    )
    offers = [offer(_gpu(machine), gpus_per_node=len(machine.on), node_count=1)]
    return place("rack", "libvirt", [asked], offers, inventory(name))
