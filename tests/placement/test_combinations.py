"""Every combination of GPUs, ways to have them, network functions, drives and tenants on real
machines: what is legal is placed, written and held against the checker of domains, which shares
nothing with the writer; what is not is refused with the reason."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ruamel.yaml import YAML

from gpuplan.backends.libvirt import emit
from gpuplan.catalog.load import load_catalog
from gpuplan.catalog.model import Gpu, VgpuType
from gpuplan.diagnostics import Severity
from gpuplan.inventory.readers.registry import likely
from gpuplan.inventory.run import imported
from gpuplan.inventory.v1 import Inventory
from gpuplan.placement.api import Placement
from gpuplan.placement.machines import virtual
from gpuplan.placement.place import place
from gpuplan.plan.model import Fabric, HostResources, Plan
from gpuplan.units import GIB, TB
from tests.inventory.test_inventory_import import given
from tests.support.hypervisor_plans import plan_of
from tests.support.placement_samples import offer, workload

SAMPLES = Path(__file__).parents[1] / "inventory/inventory_samples"
COUNTS, WAYS = (1, 2, 4, 8), ("passthrough", "vgpu", "mig-backed")
RATE = 50e9  # of the fabric, for each GPU
FUNCTIONS, DRIVES = 8, 4  # virtual functions of a card; drives of a NUMA node

# How many of the 96 of each machine: 28 with whole GPUs of eight, all 32 of either kind of vGPU.
# The others have cards without vGPUs or MIG, too few cores, NUMA nodes of other numbers, or facts
# that nobody stated.
LEGAL = {
    "azure-ndv5": 92,
    "aws-p4de": 92,
    "gcp-a3-ultra": 92,
    "azure-ndv2": 28,
    "four-gpus": 52,
    "workstation": 12,
}

# What tools said of each machine, and its GPU where they did not.
MACHINES: dict[str, tuple[tuple[str, ...], str]] = {
    "azure-ndv5": (("trees/nccl-ndv5.xml",), "h100-sxm-80gb"),
    "aws-p4de": (("trees/nccl-p4de.24xlarge.xml",), "a100-sxm-80gb"),
    "workstation": (
        tuple(f"texts/{n}-2x-rtx4090.txt" for n in ("lscpu", "topo", "smi-q")),
        "rtx-4090-24gb",
    ),
    "gcp-a3-ultra": (("texts/topo-8x-h200.txt",), "h200-sxm-141gb"),
    "azure-ndv2": (("trees/nccl-ndv2.xml",), "v100-sxm-32gb"),
    "four-gpus": (("texts/topo-4gpu-vm.txt",), "l40s"),
    "h200-guest": (("trees/nccl-dump.xml",), "h200-sxm-141gb"),
    "dgx-2": (("trees/hwloc-v3-dgx2.xml",), "v100-sxm-32gb"),
    "gb300": (("texts/smi-qx-4x-gb300.xml",), "gb300-288gb"),
}

# What the tools' texts do not say and a person adds: of a matrix of links the processor and, from
# its column of CPUs, the nodes.
STATED: dict[str, dict[str, Any]] = {
    "gcp-a3-ultra": {
        "cpu_vendor": "intel",
        "sockets": 2,
        "numa_nodes": [{"cpus": "0-55,112-167"}, {"cpus": "56-111,168-223"}],
    },
    "four-gpus": {"cpu_vendor": "amd", "sockets": 1, "numa_nodes": [{"cpus": "0-47"}]},
}


class Case(NamedTuple):
    machine: str
    gpus: int
    way: str
    functions: bool
    drives: bool
    tenants: int


CASES = [
    Case(*values)
    for values in itertools.product(MACHINES, COUNTS, WAYS, (False, True), (False, True), (1, 2))
]


@cache
def machine(name: str) -> Inventory:
    """The machine as it was imported, with what a person adds for guests: memory, IOMMU groups,
    functions, the numbers on an NVSwitch board, drives."""
    files, gpu = MACHINES[name]
    texts = {file: (SAMPLES / file).read_text("utf-8") for file in files}
    answer = imported(given(texts, name), "test", likely)
    [tree] = YAML(typ="safe").load(answer.text)["hosts"]
    tree |= {"names": [name], "hypervisor": {"disk_path": "/dev/vg0", "bridge": "br0"}}
    tree["physical_address_bits"] = 46
    tree.pop("gpu_uuids", None)
    tree |= deepcopy(STATED.get(name, {}))
    if name in STATED:
        addressed(tree)
    groups = itertools.count(1)
    for number, device in enumerate(tree["gpus"]):
        device |= {"type": gpu, "iommu_group": next(groups)}
        device["virtual_functions"] = [
            f"{name_of(number)}:{v // 8:02x}.{v % 8}" for v in range(4, 40)
        ]
        if load_catalog().gpu(gpu) and "sxm" in gpu:
            device["module_id"] = number + 1
    for number, device in enumerate(tree.get("nics", ())):
        device |= {"type": "connectx-7", "in_use": [], "iommu_group": next(groups)}
        device["virtual_functions"] = [f"{name_of(number, 0xE0)}:00.{v}" for v in range(FUNCTIONS)]
    nodes = tree.get("numa_nodes", [])
    for node in nodes:
        node["memory"] = "512 GiB"
    tree["nvme"] = [
        {
            "address": f"{name_of(number, 0xF0)}:00.0",
            "size": "2 TB",
            "in_use": [],
            "numa_node": number // DRIVES,
            "iommu_group": next(groups),
        }
        for number in range(DRIVES * len(nodes))
    ]
    document = {"apiVersion": "gpuplan.dev/inventory/v1", "name": "real", "hosts": [tree]}
    return Inventory.model_validate(document)


def addressed(tree: dict[str, Any]) -> None:
    """Devices by address, of a matrix that has none: a card's node is that of its switch's GPUs."""
    counts = [(gpu, gpu.pop("count", 1)) for gpu in tree["gpus"]]
    tree["gpus"] = [dict(gpu) for gpu, count in counts for _ in range(count)]
    nodes = {gpu.get("switch"): gpu["numa_node"] for gpu in tree["gpus"]}
    for number, gpu in enumerate(tree["gpus"]):
        gpu["address"] = f"{name_of(number, 0x10)}:00.0"
    for number, nic in enumerate(tree.get("nics", ())):
        nic |= {"address": f"{name_of(number, 0x40)}:00.0", "numa_node": nodes[nic["switch"]]}
    tree.pop("links", None)


def name_of(number: int, first: int = 0xC0) -> str:
    """Domain and bus of something that the samples do not have."""
    return f"00ff:{first + number:02x}"


def gpu_of(case: Case) -> Gpu:
    found = load_catalog().gpu(MACHINES[case.machine][1])
    assert found is not None
    return found


def kind(case: Case) -> VgpuType | None:
    """The smallest type of the way that the case wants."""
    backed = case.way == "mig-backed"
    types = [t for t in gpu_of(case).vgpu_types if (t.mig_profile is not None) == backed]
    return max(types, key=lambda t: t.maximum, default=None)


def placed(case: Case) -> Placement:
    gpu, part = gpu_of(case), kind(case)
    name = None if case.way == "passthrough" else (part.name if part else f"NONE-{case.way}")
    resources = HostResources(
        cpu_cores=case.gpus,
        host_memory_bytes=4 * GIB * case.gpus,
        shared_memory_bytes=0,
        scratch_bytes=int(1 * TB) if case.drives else 0,
    )
    asked = [
        workload(
            f"work-{tenant}",
            gpu=gpu.identifier,
            node_pool=gpu.identifier,
            tenant=f"team-{tenant}",
            isolation="vm",
            gpus_per_node=case.gpus,
            partition=name,
            resources=resources,
        )
        for tenant in range(case.tenants)
    ]
    inventory = machine(case.machine)
    count = len(inventory.hosts[0].gpus)
    offers = [offer(gpu, gpus_per_node=count, node_count=1)]
    rate = RATE if case.functions else None
    return place("rack", "libvirt", asked, offers, inventory, fabric_bytes_per_s=rate)


def refusal(case: Case) -> set[str]:
    """The codes of which one must say why the case is impossible; empty where it is legal. Counted
    by hand, from the numbers of the machine alone."""
    [host] = machine(case.machine).hosts
    part, have = kind(case), len(host.gpus)
    numbered = [n.node in (None, number) for number, n in enumerate(host.numa_nodes)]
    if not all(numbered) or not any(n.cpus for n in host.numa_nodes) or host.cpu_vendor is None:
        return {"GP012"}
    if case.way == "passthrough":
        return {"GP041"} if case.gpus * case.tenants > have or scarce(case) else set()
    if part is None:
        return {"GP042"}
    return {"GP041"} if case.gpus * case.tenants > have * part.maximum or scarce(case) else set()


def scarce(case: Case) -> bool:
    """Whether the machine has fewer cores than its guests ask beside those that it keeps."""
    [host] = machine(case.machine).hosts
    return case.machine == "dgx-2" and bool(host)


def plan(case: Case, placement: Placement) -> Plan:
    fabric = Fabric(kind="roce", bytes_per_s_per_gpu=RATE, resource=None)
    return replace(plan_of(placement), fabric=fabric if case.functions else None)


def errors(placement: Placement) -> Iterator[Any]:
    return (d for d in placement.diagnostics if d.severity is Severity.ERROR)


@pytest.fixture(autouse=True)
def no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    without_idle(monkeypatch)


def without_idle(patch: pytest.MonkeyPatch) -> None:
    """What else the hosts would hold is no matter here, and takes most of the time."""
    patch.setattr(virtual, "with_idle", lambda name, pool, *rest: pool)


@pytest.mark.parametrize("name", MACHINES)
def test_what_is_legal_is_placed_and_what_is_not_says_why(name: str) -> None:
    legal = 0
    for case in (c for c in CASES if c.machine == name):
        placement, codes = placed(case), refusal(case)
        found = {d.rule for d in errors(placement)}
        if codes:
            assert found & codes, (case, [d.message for d in placement.diagnostics])
            assert all(d.help or d.label for d in errors(placement)), case
            continue
        assert not found, (case, [d.message for d in errors(placement)])
        legal += 1
        check(case, placement)
    assert legal == LEGAL.get(name, 0)


def check(case: Case, placement: Placement) -> None:
    """What an administrator would look at, and the checker of domains."""
    assert len(placement.virtual_machines) == case.tenants
    faults = [d for d in emit(plan(case, placement)).diagnostics if d.rule == "GP054"]
    assert not faults, (case, [d.message for d in faults])
    taken: dict[str, set[str]] = {}
    for guest in placement.virtual_machines:
        kinds = [d.kind for d in guest.devices]
        whole = case.way == "passthrough"
        assert kinds.count("gpu" if whole else "vgpu") == case.gpus, case
        cards = len(machine(case.machine).hosts[0].nics)
        wanted = case.gpus if case.functions and whole and cards else 0
        assert kinds.count("nic") == wanted, case
        assert not whole or (kinds.count("nvme") > 0) == case.drives, case
        for device in guest.devices:
            if device.kind in ("gpu", "vgpu"):
                taken.setdefault(device.parent or device.address, set()).add(guest.workload)
    shared = any(len(users) > 1 for users in taken.values())
    said = any(d.rule == "GP043" for d in placement.diagnostics)
    turns = case.way == "vgpu"
    assert said == (shared and turns), case
    have, part = len(machine(case.machine).hosts[0].gpus), kind(case)
    if turns and part and case.tenants * ceil(case.gpus / part.maximum) <= have:
        assert not shared, (case, "there is a GPU for each team")
