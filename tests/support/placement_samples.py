"""Hosts, GPUs and workloads with round numbers, for tests of placement and of hypervisor files."""

from __future__ import annotations

from typing import Any

from gpuplan.catalog.load import load_catalog
from gpuplan.catalog.model import Fact, Gpu, MigProfile, NvlinkFabric, VgpuHost, VgpuType
from gpuplan.inventory.v1 import Inventory
from gpuplan.manifest.load import validate
from gpuplan.manifest.text import read_yaml
from gpuplan.placement.api import Placement
from gpuplan.placement.place import place
from gpuplan.plan.model import HostResources, Workload
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.hardware.offers import GpuOffer
from gpuplan.source import Origin, SourceDocument
from gpuplan.units import GB, GIB, TB
from tests.support.samples import serving_workload

SOURCE = "sample"
HGX_H100 = load_catalog().gpu("h100-sxm-80gb")
_SEVEN = (
    ("1g", 1, 1, 7, (0, 1, 2, 3, 4, 5, 6)),
    ("1g2", 1, 2, 4, (0, 2, 4, 6)),
    ("2g", 2, 2, 3, (0, 2, 4)),
    ("3g", 3, 4, 2, (0, 4)),
    ("4g", 4, 4, 1, (0,)),
    ("7g", 7, 8, 1, (0,)),
)
_NAMES = ("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")


def _fact(value: float, unit: str) -> Fact:
    return Fact(value=value, unit=unit, source=SOURCE)


def gpu(identifier: str = "h100-sxm-80gb", **changes: Any) -> Gpu:
    """An H100 on an NVSwitch board, unless `changes` say otherwise."""
    values: dict[str, Any] = {
        "identifier": identifier,
        "name": identifier.upper(),
        "vendor": "nvidia",
        "line": "data center",
        "architecture": "hopper",
        "compute_capability": "9.0",
        "form_factor": "sxm5",
        "product": "NVIDIA-H100-80GB-HBM3",
        "memory_bytes": _fact(80 * GIB, "B"),
        "memory_bytes_per_s": _fact(3.35 * TB, "B/s"),
        "peak_bf16": _fact(989e12, "FLOP/s"),
        "peak_fp8": _fact(1978e12, "FLOP/s"),
        "peak_int8": None,
        "peak_fp4": None,
        "nvlink_bytes_per_s": _fact(450 * GB, "B/s"),
        "pcie_bytes_per_s": _fact(64 * GB, "B/s"),
        "watts": _fact(700, "W"),
        "bar_bytes": _fact(128 * GIB, "B"),
        "sm_count": 132,
        "nvlink_fabric": NvlinkFabric(kind="switch"),
        "fabric_board": HGX_H100 and HGX_H100.fabric_board,
        "vgpu_host": VgpuHost(interface="virtual-function"),
        "mig_slices": 7,
        "mig_profiles": tuple(
            MigProfile(
                name=name,
                compute_slices=compute,
                memory_slices=memory,
                memory_bytes=memory * 10 * GIB,
                maximum=maximum,
                starts=starts,
                source=SOURCE,
            )
            for name, (_, compute, memory, maximum, starts) in zip(_NAMES, _SEVEN, strict=True)
        ),
        "vgpu_types": (
            VgpuType(
                name="H100XM-20C",
                memory_bytes=20 * GIB,
                maximum=4,
                mig_profile=None,
                source=SOURCE,
            ),
            VgpuType(
                name="H100XM-1-10C",
                memory_bytes=10 * GIB,
                maximum=7,
                mig_profile="1g.10gb",
                source=SOURCE,
            ),
        ),
    }
    return Gpu(**(values | changes))


def l40s(**changes: Any) -> Gpu:
    """A PCIe card with time-sliced vGPUs and no MIG."""
    values: dict[str, Any] = {
        "architecture": "ada",
        "form_factor": "pcie",
        "product": "NVIDIA-L40S",
        "memory_bytes": _fact(48 * GIB, "B"),
        "nvlink_bytes_per_s": None,
        "nvlink_fabric": None,
        "fabric_board": None,
        "watts": _fact(350, "W"),
        "bar_bytes": _fact(64 * GIB, "B"),
        "mig_slices": 0,
        "mig_profiles": (),
        "vgpu_types": tuple(
            VgpuType(
                name=f"L40S-{size}C",
                memory_bytes=size * GIB,
                maximum=48 // size,
                mig_profile=None,
                source=SOURCE,
            )
            for size in (12, 24, 48)
        ),
    }
    return gpu("l40s", **(values | changes))


def offer(gpu: Gpu, **changes: Any) -> GpuOffer:
    """Nodes of eight such GPUs, two sockets of 56 cores, at $2.95 a GPU and hour."""
    values: dict[str, Any] = {
        "gpu": gpu,
        "gpus_per_node": 8,
        "cpu_cores_per_node": 112,
        "memory_bytes_per_node": 2048 * GIB,
        "numa_nodes": 2,
        "usd_per_gpu_hour": Quantity(2.95, "USD/h", "catalog: sample"),
    }
    return GpuOffer(**(values | changes))


# The board of NVIDIA's HGX H100 integration guide: addresses and modules are in different orders.
MODULES = {"0f": 5, "10": 7, "41": 6, "44": 8, "86": 1, "87": 3, "b8": 2, "bb": 4}
HGX = """\
apiVersion: gpuplan.dev/inventory/v1
name: rack-7
hosts:
  - names: [hv-01, hv-02]
    node_type: hgx-h100
    cpu_vendor: intel
    physical_address_bits: 46
    sockets: 2
    numa_nodes:
      - {cpus: "0-55,112-167", memory: 1024 GiB, distances: [10, 21]}
      - {cpus: "56-111,168-223", memory: 1024 GiB, distances: [21, 10]}
    hypervisor: {disk_path: /dev/vg0, bridge: br0}
    serials:
%s
    gpus:
%s
    nics:
%s
    nvme:
      - {address: "0000:2a:00.0", numa_node: 0, iommu_group: 90, size: 3840 GB,
         in_use: [], pci_id: "144d:a824"}
      - {address: "0000:2b:00.0", numa_node: 0, iommu_group: 91, size: 3840 GB,
         in_use: [], pci_id: "144d:a824"}
      - {address: "0000:aa:00.0", numa_node: 1, iommu_group: 92, size: 3840 GB,
         in_use: [], pci_id: "144d:a824"}
      - {address: "0000:ab:00.0", numa_node: 1, iommu_group: 93, size: 3840 GB,
         in_use: [], pci_id: "144d:a824"}
"""


def hgx_text(*, functions: bool = True, modules: bool = True) -> str:
    """Two HGX H100 hosts; GPU n and NIC n share a switch."""
    gpus, nics = [], []
    for number, (bus, module) in enumerate(MODULES.items()):
        node, nic_bus = number // 4, f"{int(bus, 16) + 1:02x}" if bus != "0f" else "0e"
        nic_bus = {"10": "12", "86": "85", "87": "89", "b8": "b7", "bb": "bd"}.get(bus, nic_bus)
        listed = ", ".join(f'"0000:{nic_bus}:00.{f}"' for f in (1, 2, 3))
        vgpus = ", ".join(f'"0000:{bus}:00.{f}"' for f in (4, 5, 6, 7))
        gpus.append(
            f'      - {{type: h100-sxm-80gb, address: "0000:{bus}:00.0", numa_node: {node}, '
            'pci_id: "10de:2330", '
            f"iommu_group: {10 + number}, switch: s{number}"
            + (f", module_id: {module}" if modules else "")
            + (f", virtual_functions: [{vgpus}]" if functions else "")
            + "}"
        )
        nics.append(
            f'      - {{type: connectx-7, address: "0000:{nic_bus}:00.0", numa_node: {node}, '
            'in_use: [], pci_id: "15b3:1021", '
            f"iommu_group: {30 + number}, switch: s{number}, vlan: 100, virtual_functions: "
            + (f"[{listed}]" if functions else "3")
            + "}"
        )
    drives = ("2a", "2b", "aa", "ab")
    serials = [
        f"      hv-0{host}: "
        "{" + ", ".join(f'"0000:{bus}:00.0": S{host}{n}' for n, bus in enumerate(drives)) + "}"
        for host in (1, 2)
    ]
    return HGX % ("\n".join(serials), "\n".join(gpus), "\n".join(nics))


L40S = """\
apiVersion: gpuplan.dev/inventory/v1
name: rack-8
hosts:
  - names: [hv-11]
    cpu_vendor: amd
    physical_address_bits: 48
    threads_per_core: 2
    numa_nodes:
      - {cpus: "0-31,64-95", memory: 384 GiB}
      - {cpus: "32-63,96-127", memory: 384 GiB}
    hypervisor: {disk_path: /var/lib/libvirt/images, bridge: br0}
    price: $4/hour
    gpus:
%s
"""


def l40s_text(gpus: int = 4) -> str:
    """A host with four cards, two a node, each with sixteen virtual functions."""
    lines = []
    for number in range(gpus):
        bus = f"{0x21 + 0x20 * number:02x}"
        listed = [f"0000:{bus}:{f // 8:02x}.{f % 8}" for f in range(4, 20)]
        lines.append(
            f'      - {{type: l40s, address: "0000:{bus}:00.0", numa_node: {number * 2 // gpus}, '
            f'iommu_group: {number + 1}, pci_id: "10de:26b9", virtual_functions: {listed}}}'
        )
    return L40S % "\n".join(lines)


def document(text: str) -> SourceDocument:
    (read,) = read_yaml("inventory.yaml", text)
    assert read[1] == []
    return read[0]


def inventory(text: str) -> Inventory:
    model, problems = validate(Inventory, document(text))
    assert model is not None, [p.message for p in problems]
    return model


def workload(name: str = "tune", **changes: Any) -> Workload:
    """One replica of four whole H100 on one node."""
    values: dict[str, Any] = {
        "name": name,
        "description": f"The workload {name}",
        "replicas": 1,
        "gpus_per_node": 4,
        "gpu_count": 4,
        "isolation": "vm",
        "volumes": (),
        "resources": HostResources(
            cpu_cores=32, host_memory_bytes=512 * GIB, shared_memory_bytes=0, scratch_bytes=0
        ),
        "origin": Origin("chat.yaml", ("workloads", 0)),
    }
    return serving_workload(**(values | changes))


def notebook(name: str = "lab", **changes: Any) -> Workload:
    """Six users with a quarter of an L40S each."""
    values: dict[str, Any] = {
        "gpu": "l40s",
        "node_pool": "l40s",
        "partition": "L40S-12C",
        "replicas": 6,
        "gpus_per_node": 1,
        "resources": HostResources(
            cpu_cores=2, host_memory_bytes=16 * GIB, shared_memory_bytes=0, scratch_bytes=0
        ),
    }
    return workload(name, **(values | changes))


def place_hgx(*workloads: Workload, text: str | None = None) -> Placement:
    return place("rack", "libvirt", workloads, [offer(gpu())], inventory(text or hgx_text()))


def place_l40s(*workloads: Workload, text: str | None = None) -> Placement:
    offers = [offer(l40s(), gpus_per_node=4)]
    return place("rack", "libvirt", workloads, offers, inventory(text or l40s_text()))
