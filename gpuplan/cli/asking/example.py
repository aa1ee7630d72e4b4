"""The inventory that `gpuplan init` writes beside a manifest for hypervisors, to be replaced."""

from __future__ import annotations

HEAD = """\
# An example, not your hosts: replace all of it before you compile.
# `gpuplan schema inventory` gives the schema; lscpu, numactl -H, lspci -D and nvidia-smi the facts.
apiVersion: gpuplan.dev/inventory/v1
name: example
hosts:
- names: [example-01]
  cpu_vendor: intel
  physical_address_bits: 46
  sockets: 2
  numa_nodes:
  - {cpus: "0-55,112-167", memory: 1 TiB, distances: [10, 21]}
  - {cpus: "56-111,168-223", memory: 1 TiB, distances: [21, 10]}
  hypervisor: {disk_path: /dev/vg0, bridge: br0}
  gpus:
"""
BUSES = ("1b", "43", "52", "61", "9d", "c3", "d1", "df")


def inventory() -> str:
    """One host with eight H100, as its board numbers them."""
    return HEAD + "".join(_gpu(number, f"0000:{bus}:00") for number, bus in enumerate(BUSES))


def _gpu(number: int, device: str) -> str:
    functions = ", ".join(f'"{device}.{function}"' for function in range(4, 8))
    return (
        f'  - {{type: h100-sxm-80gb, address: "{device}.0", module_id: {number + 1}, '
        f"numa_node: {number // 4}, iommu_group: {101 + number},\n"
        f"     virtual_functions: [{functions}]}}\n"
    )
