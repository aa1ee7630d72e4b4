"""One machine, a DGX H100 as NVIDIA describes it, in the words of each tool.

Every text is written here from `GPUS` and `CARDS`; addresses are those of `examples/inventories`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

GPUS = ("1b", "43", "52", "61", "9d", "c3", "d1", "df")
CARDS = ("18", "40", "4f", "5e", "9a", "c0", "ce", "dc")
DRIVES = ("2a", "2b", "aa", "ab")
CPUS = (((0, 56), (112, 168)), ((56, 112), (168, 224)))  # of each node, ranges
NODE_KIB = 1_056_700_000
PRODUCT = "NVIDIA H100 80GB HBM3"


def node_of(number: int) -> int:
    """The NUMA node of GPU or card `number`."""
    return number // 4


def listed(node: int) -> str:
    return ",".join(f"{a}-{b - 1}" for a, b in CPUS[node])


def numbers(node: int) -> list[int]:
    return [c for a, b in CPUS[node] for c in range(a, b)]


def lscpu() -> str:
    return f"""Architecture:                    x86_64
CPU op-mode(s):                  32-bit, 64-bit
Address sizes:                   46 bits physical, 57 bits virtual
Byte Order:                      Little Endian
CPU(s):                          224
On-line CPU(s) list:             0-223
Vendor ID:                       GenuineIntel
Model name:                      Intel(R) Xeon(R) Platinum 8480C
CPU family:                      6
Thread(s) per core:              2
Core(s) per socket:              56
Socket(s):                       2
NUMA node(s):                    2
NUMA node0 CPU(s):               {listed(0)}
NUMA node1 CPU(s):               {listed(1)}
"""


def lscpu_p() -> str:
    rows = ["# The following is the parsable format, which can be fed to other", "# programs."]
    rows.append("# CPU,Core,Socket,Node")
    for cpu in range(224):
        core = cpu % 112
        rows.append(f"{cpu},{core},{core // 56},{core // 56}")
    return "\n".join(rows) + "\n"


def numactl() -> str:
    rows = ["available: 2 nodes (0-1)"]
    for node in (0, 1):
        rows += [
            f"node {node} cpus: {' '.join(map(str, numbers(node)))}",
            f"node {node} size: {NODE_KIB // 1024} MB",
            f"node {node} free: 900000 MB",
        ]
    return "\n".join(
        [*rows, "node distances:", "node   0   1 ", "  0:  10  21 ", "  1:  21  10 ", ""]
    )


def meminfo() -> str:
    total = f"MemTotal:       {2 * NODE_KIB} kB\n"
    return f"{total}MemFree:        1800000000 kB\nHugePages_Total:       0\n"


def nvidia_xml(uuid: str = "0") -> str:
    gpus = "".join(_gpu_xml(n, bus, uuid) for n, bus in enumerate(GPUS))
    return f"""<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
\t<driver_version>570.148.08</driver_version>
\t<attached_gpus>8</attached_gpus>
{gpus}</nvidia_smi_log>
"""


def _gpu_xml(number: int, bus: str, uuid: str) -> str:
    return f"""\t<gpu id="00000000:{bus.upper()}:00.0">
\t\t<product_name>{PRODUCT}</product_name>
\t\t<mig_mode>
\t\t\t<current_mig>Disabled</current_mig>
\t\t</mig_mode>
\t\t<uuid>GPU-{uuid}000000{number}-0000-0000-0000-000000000000</uuid>
\t\t<minor_number>{number}</minor_number>
\t\t<platformInfo>
\t\t\t<module_id>{number + 1}</module_id>
\t\t</platformInfo>
\t\t<pci>
\t\t\t<pci_device_id>233010DE</pci_device_id>
\t\t\t<pci_bus_id>00000000:{bus.upper()}:00.0</pci_bus_id>
\t\t\t<pci_gpu_link_info>
\t\t\t\t<pcie_gen>
\t\t\t\t\t<max_link_gen>5</max_link_gen>
\t\t\t\t\t<current_link_gen>1</current_link_gen>
\t\t\t\t</pcie_gen>
\t\t\t\t<link_widths>
\t\t\t\t\t<max_link_width>16x</max_link_width>
\t\t\t\t</link_widths>
\t\t\t</pci_gpu_link_info>
\t\t</pci>
\t\t<fb_memory_usage>
\t\t\t<total>81559 MiB</total>
\t\t</fb_memory_usage>
\t\t<bar1_memory_usage>
\t\t\t<total>131072 MiB</total>
\t\t</bar1_memory_usage>
\t\t<gpu_power_readings>
\t\t\t<current_power_limit>700.00 W</current_power_limit>
\t\t\t<default_power_limit>700.00 W</default_power_limit>
\t\t</gpu_power_readings>
\t</gpu>
"""


def nvidia_list(uuid: str = "0") -> str:
    return "".join(
        f"GPU {n}: {PRODUCT} (UUID: GPU-{uuid}000000{n}-0000-0000-0000-000000000000)\n"
        for n in range(8)
    )


def topo() -> str:
    names = [f"GPU{n}" for n in range(8)] + [f"NIC{n}" for n in range(8)]
    rows = ["\t" + "\t".join([*names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])]
    for row, name in enumerate(names):
        cells = [_link(row, column) for column in range(16)]
        node = node_of(row % 8)
        tail = [listed(node), str(node), "", "N/A"] if row < 8 else ["", "", "", ""]
        rows.append("\t".join([name, *cells, *tail]))
    legend = [f"  NIC{n}: mlx5_{n}" for n in range(8)]
    return "\n".join(
        [*rows, "", "Legend:", "", "  X    = Self", "", "NIC Legend:", "", *legend, ""]
    )


def _link(row: int, column: int) -> str:
    here, there = row % 8, column % 8
    if row == column:
        return " X "
    if row < 8 and column < 8:
        return "NV18"
    if here == there:
        return "PXB"
    return "NODE" if node_of(here) == node_of(there) else "SYS"


def _ports(bus: str, card: str) -> tuple[str, str, str, str]:
    """Root port, upstream port, and downstream ports of the switch above a GPU and its card."""
    first = int(card, 16) - 3
    root, up = f"0000:{first:02x}:01.0", f"0000:{first + 1:02x}:00.0"
    return root, up, f"0000:{first + 2:02x}:00.0", f"0000:{first + 2:02x}:01.0"


def lspci() -> str:
    blocks: list[str] = []
    for number, (bus, card) in enumerate(zip(GPUS, CARDS, strict=True)):
        node, first = node_of(number), int(card, 16) - 3
        root, up, down, other = _ports(bus, card)
        last = bus
        buses = ((first, first + 1, last), (first + 1, first + 2, last))
        names = ("Intel Corporation Device [8086:352a]", *["Broadcom / LSI Device [1000:c030]"] * 3)
        spans = (*buses, (first + 2, int(card, 16), card), (first + 2, int(bus, 16), bus))
        for address, name, (one, two, end) in zip(
            (root, up, down, other), names, spans, strict=True
        ):
            span = f"primary={one:02x}, secondary={two:02x}, subordinate={end}, sec-latency=0"
            blocks.append(
                f"{address} PCI bridge [0604]: {name}\n\tNUMA node: {node}\n\tBus: {span}\n"
            )
        blocks.append(
            f"0000:{card}:00.0 Infiniband controller [0207]: Mellanox Technologies MT2910 Family "
            f"[ConnectX-7] [15b3:1021]\n\tNUMA node: {node}\n\tIOMMU group: {200 + number}\n"
        )
        blocks.append(
            f"0000:{bus}:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] "
            f"[10de:2330] (rev a1)\n\tNUMA node: {node}\n\tIOMMU group: {100 + number}\n"
        )
    for number, bus in enumerate(DRIVES):
        blocks.append(
            f"0000:{bus}:00.0 Non-Volatile memory controller [0108]: Samsung Electronics Co Ltd "
            f"NVMe SSD Controller PM173X [144d:a824]\n\tNUMA node: {number // 2}\n"
            f"\tIOMMU group: {300 + number}\n"
        )
    return "\n".join(sorted(blocks)) + "\n"


def device_links() -> str:
    rows = ["/sys/class/infiniband:", "total 0"]
    for number, (bus, card) in enumerate(zip(GPUS, CARDS, strict=True)):
        root, up, down, _ = _ports(bus, card)
        path = f"pci{root[:7]}/{root}/{up}/{down}/0000:{card}:00.0"
        rows.append(
            f"lrwxrwxrwx 1 root root 0 Mar  4 10:12 mlx5_{number} -> "
            f"../../devices/{path}/infiniband/mlx5_{number}"
        )
    rows += ["", "/sys/class/net:", "total 0"]
    for number, (bus, card) in enumerate(zip(GPUS, CARDS, strict=True)):
        root, up, down, _ = _ports(bus, card)
        rows.append(
            f"lrwxrwxrwx 1 root root 0 Mar  4 10:12 ib{number} -> "
            f"../../devices/pci{root[:7]}/{root}/{up}/{down}/0000:{card}:00.0/net/ib{number}"
        )
    rows += ["", "/sys/class/nvme:", "total 0"]
    rows += [
        f"lrwxrwxrwx 1 root root 0 Mar  4 10:12 nvme{number} -> "
        f"../../devices/pci0000:{bus}/0000:{bus}:00.0/nvme/nvme{number}"
        for number, bus in enumerate(DRIVES)
    ]
    return "\n".join([*rows, ""])


def lsblk() -> str:
    """The host starts from a SATA drive, and uses none of its NVMe drives."""
    free = {"type": "disk", "fstype": None, "mountpoints": [None]}
    drives = [
        {"name": f"nvme{n}n1", "size": 3840755982336, "tran": "nvme", "serial": f"S6{n}"} | free
        for n in range(4)
    ]
    root = {"name": "sda1", "type": "part", "fstype": "ext4", "mountpoints": ["/"]}
    boot = {"name": "sda", "size": 480103981056, "tran": "sata", "children": [root]} | free
    return json.dumps({"blockdevices": [boot, *drives]}, indent=3)


def ip_route() -> str:
    near = {"dst": "192.0.2.0/24", "dev": "br0", "scope": "link"}
    return json.dumps([{"dst": "default", "gateway": "192.0.2.1", "dev": "br0"}, near])


def ip_address() -> str:
    """The default route is on a bridge on a VLAN on the first card."""
    reached = [{"family": "inet", "local": "192.0.2.7", "scope": "global"}]
    rows = [{"ifindex": 1, "ifname": "lo", "addr_info": [{"scope": "host"}]}]
    rows += [
        {"ifindex": 2 + n, "ifname": f"ib{n}", "address": f"b8:3f:d2:00:00:0{n}", "addr_info": []}
        for n in range(8)
    ]
    rows.append({"ifindex": 20, "ifname": "ib0.7", "link": "ib0", "master": "br0"})
    rows.append({"ifindex": 21, "ifname": "br0", "addr_info": reached})
    return json.dumps(rows)


def _mask(cpus: Iterable[int]) -> str:
    """A set as hwloc writes it: words of 32 bits, the highest first."""
    bits = sum(1 << cpu for cpu in cpus)
    words = [f"0x{bits >> 32 * n & 0xFFFFFFFF:08x}" for n in reversed(range(7))]
    return ",".join(words)


def hwloc() -> str:
    everything = _mask(range(224))
    rows = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<!DOCTYPE topology SYSTEM "hwloc2.dtd">',
        '<topology version="2.0">',
        f'<object type="Machine" os_index="0" cpuset="{everything}" nodeset="0x00000003">',
        '<info name="CPUVendor" value="GenuineIntel"/>',
        '<info name="Architecture" value="x86_64"/>',
    ]
    for node in (0, 1):
        cpus = _mask(numbers(node))
        rows.append(f'<object type="Package" os_index="{node}" cpuset="{cpus}">')
        rows.append(
            f'<object type="NUMANode" os_index="{node}" cpuset="{cpus}" '
            f'nodeset="0x0000000{node + 1}" local_memory="{NODE_KIB * 1024}"/>'
        )
        for core in range(56 * node, 56 * node + 56):
            rows.append(
                f'<object type="Core" os_index="{core}" cpuset="{_mask((core, core + 112))}">'
            )
            rows += [
                f'<object type="PU" os_index="{cpu}" cpuset="{_mask((cpu,))}"/>'
                for cpu in (core, core + 112)
            ]
            rows.append("</object>")
        rows += [line for n in range(8) if node_of(n) == node for line in _hwloc_switch(n)]
        rows += [line for n in range(4) if n // 2 == node for line in _hwloc_drive(n)]
        rows.append("</object>")
    rows += [
        "</object>",
        '<distances2 type="NUMANode" nbobjs="2" kind="5" name="NUMALatency" indexing="os">',
        '<indexes length="4">0 1 </indexes>',
        '<u64values length="12">10 21 21 10 </u64values>',
        "</distances2>",
        "</topology>",
    ]
    return "\n".join(rows) + "\n"


def _bridge(span: str, address: str) -> str:
    identity = "8086:352a" if address.endswith("01.0") else "1000:c030"
    return (
        f'<object type="Bridge" bridge_type="1-1" depth="1" bridge_pci="0000:[{span}]" '
        f'pci_busid="{address}" pci_type="0604 [{identity}] [0000:0000] 01 00">'
    )


def _device(bus: str, kind: str) -> str:
    return f'<object type="PCIDev" pci_busid="0000:{bus}:00.0" pci_type="{kind}">'


def _hwloc_switch(number: int) -> list[str]:
    bus, card = GPUS[number], CARDS[number]
    root, up, down, other = _ports(bus, card)
    first = int(card, 16) - 3
    return [
        f'<object type="Bridge" bridge_type="0-1" depth="0" bridge_pci="0000:[{first:02x}-{bus}]">',
        _bridge(f"{first + 1:02x}-{bus}", root),
        _bridge(f"{first + 2:02x}-{bus}", up),
        _bridge(f"{card}-{card}", down),
        _device(card, "0207 [15b3:1021] [15b3:0041] 00 00"),
        '<info name="PCIVendor" value="Mellanox Technologies"/>',
        '<info name="PCIDevice" value="MT2910 Family [ConnectX-7]"/>',
        f'<object type="OSDev" name="mlx5_{number}" osdev_type="3"/>',
        "</object></object>",
        _bridge(f"{bus}-{bus}", other),
        _device(bus, "0302 [10de:2330] [10de:16c1] a1 00"),
        '<info name="PCIVendor" value="NVIDIA Corporation"/>',
        '<info name="PCIDevice" value="GH100 [H100 SXM5 80GB]"/>',
        "</object></object>",
        "</object></object></object>",
    ]


def _hwloc_drive(number: int) -> list[str]:
    bus = DRIVES[number]
    return [
        f'<object type="Bridge" bridge_type="0-1" depth="0" bridge_pci="0000:[{bus}-{bus}]">',
        _device(bus, "0108 [144d:a824] [144d:a801] 00 00"),
        f'<object type="OSDev" name="nvme{number}n1" subtype="Disk" osdev_type="0">',
        f'<info name="Size" value="{3840755982336 // 1024}"/>',
        "</object></object></object>",
    ]


def dcgmi() -> str:
    bar = "+--------+----------------------------------------------------------------------+"
    rows = [
        "8 GPUs found.",
        bar,
        "| GPU ID | Device Information                                   |",
        bar,
    ]
    for number, bus in enumerate(GPUS):
        rows += [
            f"| {number}      | Name: {PRODUCT}                                          |",
            f"|        | PCI Bus ID: 00000000:{bus.upper()}:00.0                               |",
            f"|        | Device UUID: GPU-0000000{number}-0000-0000-0000-000000000000    |",
            bar,
        ]
    return "\n".join([*rows, "0 NvSwitches found.", ""])


def kubectl(names: Iterable[str] = ("gpu-01",)) -> str:
    return json.dumps(
        {"apiVersion": "v1", "kind": "List", "items": [_node(n) for n in names]}, indent=1
    )


def _node(name: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "node.kubernetes.io/instance-type": "dgx-h100",
                "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                "nvidia.com/gpu.count": "8",
                "nvidia.com/gpu.memory": "81559",
            },
        },
        "status": {
            "capacity": {
                "cpu": "224",
                "memory": f"{2 * NODE_KIB}Ki",
                "nvidia.com/gpu": "8",
            },
            "nodeInfo": {"architecture": "amd64", "kernelVersion": "5.15.0"},
        },
    }


TEXTS = {
    "lscpu.txt": lscpu,
    "lscpu-p.txt": lscpu_p,
    "numactl.txt": numactl,
    "meminfo.txt": meminfo,
    "nvidia-smi.xml": nvidia_xml,
    "nvidia-smi-L.txt": nvidia_list,
    "topo.txt": topo,
    "lspci.txt": lspci,
    "dcgmi.txt": dcgmi,
    "kubectl.json": kubectl,
    "device-links.txt": device_links,
    "lsblk.json": lsblk,
    "ip-route.json": ip_route,
    "ip-address.json": ip_address,
    "hwloc.xml": hwloc,
}
