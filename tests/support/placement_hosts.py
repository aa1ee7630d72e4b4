"""Hosts of many shapes for tests of placement: nodes, threads, groups, bridges, cards, drives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuplan.inventory.v1 import Inventory
from gpuplan.placement.api import Placement
from gpuplan.placement.place import place
from gpuplan.plan.model import HostResources, VirtualMachine, Workload
from gpuplan.units import GIB
from tests.support.placement_samples import l40s, offer, workload


def cpus(node: int, nodes: int, cores: int, threads: int, siblings: str = "split") -> list[int]:
    """CPU numbers of a node as Linux gives them on hosts of equal nodes."""
    if siblings == "adjacent":
        return list(range(node * cores * threads, (node + 1) * cores * threads))
    first = range(node * cores, (node + 1) * cores)
    return [cpu + thread * nodes * cores for thread in range(threads) for cpu in first]


def gpu_address(number: int) -> str:
    return f"0000:{16 + number:02x}:00.0"


def host(
    gpus: Sequence[int],
    *,
    nodes: int = 2,
    cores: int = 32,
    memory: float = 512,
    threads: int = 2,
    siblings: str = "split",
    names: Sequence[str] = ("hv-1",),
    **more: Any,
) -> dict[str, Any]:
    """A host of L40S cards: `gpus` are their NUMA nodes, `memory` is GiB of a node. Of each GPU
    `gpu` says more, by number."""
    extra = more.pop("gpu", {})
    return {
        "names": list(names),
        "cpu_vendor": "amd",
        "physical_address_bits": 48,
        "threads_per_core": threads,
        "numa_nodes": [
            {
                "cpus": ",".join(map(str, cpus(n, nodes, cores, threads, siblings))),
                "siblings": siblings,
                "memory": f"{memory} GiB",
            }
            for n in range(nodes)
        ],
        "hypervisor": {"disk_path": "/dev/vg0", "bridge": "br0"},
        "gpus": [
            {
                "type": "l40s",
                "address": gpu_address(number),
                "pci_id": "10de:26b9",
                "numa_node": node,
                "iommu_group": 10 + number,
            }
            | extra.get(number, {})
            for number, node in enumerate(gpus)
        ],
    } | more


def card(number: int, node: int, *, functions: int = 4, **more: Any) -> dict[str, Any]:
    """A network card with its virtual functions."""
    listed = [f"0000:{128 + number:02x}:{f // 8:02x}.{f % 8}" for f in range(1, functions + 1)]
    return {
        "type": "connectx-7",
        "address": f"0000:{128 + number:02x}:00.0",
        "pci_id": "15b3:1021",
        "in_use": [],
        "numa_node": node,
        "iommu_group": 100 + number,
        "virtual_functions": listed,
    } | more


def drive(number: int, node: int, **more: Any) -> dict[str, Any]:
    return {
        "address": f"0000:{192 + number:02x}:00.0",
        "pci_id": "144d:a824",
        "in_use": [],
        "numa_node": node,
        "iommu_group": 150 + number,
        "size": "1 TB",
    } | more


def as_inventory(*hosts: dict[str, Any]) -> Inventory:
    tree = {"apiVersion": "gpuplan.dev/inventory/v1", "name": "x", "hosts": list(hosts)}
    return Inventory.model_validate(tree)


def placed(*wanted: Workload, hosts: Sequence[dict[str, Any]]) -> Placement:
    offers = [offer(l40s(), gpus_per_node=len(hosts[0]["gpus"]))]
    return place("rack", "libvirt", wanted, offers, as_inventory(*hosts))


def cards(
    name: str = "tune",
    gpus: int = 1,
    *,
    cores: int | None = None,
    memory_gib: int | None = None,
    scratch_bytes: int = 0,
    **changes: Any,
) -> Workload:
    """A workload on whole L40S, with 8 cores and 48 GiB a GPU unless it says otherwise."""
    asked = HostResources(
        cpu_cores=cores or 8 * gpus,
        host_memory_bytes=(memory_gib or 48 * gpus) * GIB,
        shared_memory_bytes=0,
        scratch_bytes=scratch_bytes,
    )
    return workload(
        name, gpu="l40s", node_pool="l40s", gpus_per_node=gpus, resources=asked, **changes
    )


def numbers(machine: VirtualMachine) -> list[int]:
    """The GPUs of a guest by number, as `host` counts them."""
    gpus = [d for d in machine.devices if d.kind == "gpu"]
    return sorted(int(d.address[5:7], 16) - 16 for d in gpus)


def cores_of(machine: VirtualMachine) -> list[int]:
    """Physical cores of each cell."""
    return [len(c.pins) // machine.threads_per_core for c in machine.cells]
