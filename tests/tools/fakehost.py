"""What libvirt and a host's own scripts read in /sys and /proc, for a host that is not there."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuplan.plan.model import Host
from gpuplan.units import format_ranges

KIB = 1024
CACHES = (
    (1, "Data", "48K"),
    (1, "Instruction", "32K"),
    (2, "Unified", "2048K"),
    (3, "Unified", "107520K"),
)


def write(root: Path, host: Host) -> None:
    """`root`/cpu and `root`/node as /sys/devices/system has them on `host`."""
    cpus = sorted(cpu for n in host.numa_nodes for core in n.cores for cpu in core.cpus)
    nodes = [n.node for n in host.numa_nodes]
    for name in ("present", "online", "possible"):
        _put(root / "cpu" / name, _list(cpus))
    _put(root / "cpu" / "offline", "")
    _put(root / "cpu" / "isolated", "")
    _put(root / "cpu" / "kernel_max", str(cpus[-1]))
    for name in ("online", "possible", "has_memory", "has_normal_memory"):
        _put(root / "node" / name, _list(nodes))
    _put(root / "node" / "has_cpu", _list([n.node for n in host.numa_nodes if n.cores]))
    for node in host.numa_nodes:
        package = sorted(cpu for core in node.cores for cpu in core.cpus)
        for number, core in enumerate(node.cores):
            for cpu in core.cpus:
                folder = root / "cpu" / f"cpu{cpu}"
                _topology(folder / "topology", (node.node, number), core.cpus, package)
                _caches(folder / "cache", node.node, core.cpus, package)
                _put(folder / "online", "1")
        folder = root / "node" / f"node{node.node}"
        _put(folder / "cpumap", _mask(package))
        _put(folder / "cpulist", _list(package))
        distances = node.distances or tuple(10 if n == node.node else 20 for n in nodes)
        _put(folder / "distance", " ".join(map(str, distances)))
        _memory(folder, node.node, node.memory_bytes, node.hugepages, host.hugepage_bytes)


def _topology(
    folder: Path, place: tuple[int, int], siblings: Sequence[int], package: Sequence[int]
) -> None:
    for name, value in (
        ("physical_package_id", str(place[0])),
        ("core_id", str(place[1])),
        ("die_id", "0"),
        ("cluster_id", "0"),
        ("thread_siblings", _mask(siblings)),
        ("thread_siblings_list", _list(siblings)),
        ("core_siblings", _mask(package)),
        ("core_siblings_list", _list(package)),
    ):
        _put(folder / name, value)


def _caches(folder: Path, node: int, siblings: Sequence[int], package: Sequence[int]) -> None:
    for index, (level, kind, size) in enumerate(CACHES):
        shared = package if level == 3 else siblings
        for name, value in (
            ("level", str(level)),
            ("type", kind),
            ("size", size),
            ("id", str(node if level == 3 else siblings[0])),
            ("shared_cpu_map", _mask(shared)),
            ("shared_cpu_list", _list(shared)),
        ):
            _put(folder / f"index{index}" / name, value)


def _memory(folder: Path, node: int, size: int, pages: int, page: int) -> None:
    free = size - pages * page
    rows = (("MemTotal", f"{size // KIB} kB"), ("MemFree", f"{free // KIB} kB"))
    _put(folder / "meminfo", "\n".join(f"Node {node} {name}: {value}" for name, value in rows))
    for kib, count in ((page // KIB, pages), (2048, 0)):
        pool = folder / "hugepages" / f"hugepages-{kib}kB"
        _put(pool / "nr_hugepages", str(count))
        _put(pool / "free_hugepages", str(count))
        _put(pool / "surplus_hugepages", "0")


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="ascii")


def _list(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


def _mask(cpus: Iterable[int]) -> str:
    """Comma-separated words of 32 bits, the highest first."""
    value = sum(1 << cpu for cpu in cpus)
    words = max(1, (value.bit_length() + 31) // 32)
    return ",".join(f"{value >> 32 * word & 0xFFFFFFFF:08x}" for word in reversed(range(words)))


# --- the devices of a host ---------------------------------------------------------------------

DRIVERS = {"gpu": "nvidia", "nic": "mlx5_core", "nvme": "nvme", "function": "snd_hda_intel"}
PROGRAMS = {
    # Without a claim on the disk, it may be opened for itself alone.
    "wipefs": 'for disk; do :; done; test ! -e "{root}/claims/${{disk##*/}}"',
    # The kernel's drivers_probe: the driver that driver_override names takes the device.
    "probe": 'read address; cd "{root}/sys/bus/pci/devices/$address"; rm -rf driver; '
    'ln -s "../../drivers/$(cat driver_override)" driver',
    "virsh": "echo 11.3.0",
    "uname": "echo 6.12.0-amd64",
    "dpkg-query": "printf 2025.02-8",
    "systemctl": 'echo systemctl "$@"',
    "update-grub": "echo update-grub",
    "update-initramfs": 'echo update-initramfs "$@"',
    "nvidia-smi": 'echo nvidia-smi "$@" >>{root}/log',
}


@dataclass
class FakeHost:
    """A host's devices, network and programs below `root`, for its scripts to be run on."""

    root: Path

    def device(self, address: str) -> Path:
        return self.root / "sys/bus/pci/devices" / address

    def disk(self, address: str) -> Path:
        return next(self.device(address).glob("nvme/nvme*/nvme*n1"))

    def driver(self, address: str) -> str:
        link = self.device(address) / "driver"
        return link.readlink().name if link.is_symlink() else ""

    def program(self, name: str, text: str) -> None:
        path = self.root / "bin" / name
        _put(path, f"#!/bin/sh\n{text.format(root=self.root)}")
        path.chmod(0o755)

    def link(self, upper: str, lower: str) -> None:
        """The interface `upper` stands on `lower`."""
        folder = self.root / "sys/class/net"
        (folder / upper).mkdir(parents=True, exist_ok=True)
        (folder / upper / f"lower_{lower}").symlink_to(folder / lower)

    def route(self, interface: str) -> None:
        """The default route is on `interface`."""
        row = f"{interface}\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0"
        _put(self.root / "proc/net/route", f"Iface\tDestination\tGateway\n{row}")

    def rooted(self, script: str) -> str:
        script = script.replace(">/sys/bus/pci/drivers_probe", "| probe")
        return re.sub(
            r"(?<![\w.])/(?=(?:sys|proc|usr|etc|run|var/lib/gpuplan)/)", f"{self.root}/", script
        )

    def install(self, path: str, script: str) -> None:
        _put(self.root / path, self.rooted(script))
        (self.root / path).chmod(0o755)

    def run(self, script: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """`script` as root would run it there: its paths are those of the host, and what it writes
        to the kernel's `drivers_probe` binds a driver."""
        environment = {"PATH": f"{self.root}/bin:{os.environ['PATH']}"}
        return subprocess.run(
            ["sh", "-c", self.rooted(script), "sh", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )


def populate(root: Path, host: Host) -> FakeHost:
    """`host` as it was when it was collected: its own drivers have the devices, the drives are not
    used, and the default route is on a card that no guest has to do with."""
    fake = FakeHost(root)
    (root / "run").mkdir()
    for node in host.numa_nodes:
        cpus = sorted(cpu for core in node.cores for cpu in core.cpus)
        _put(root / f"sys/devices/system/node/node{node.node}/cpulist", format_ranges(cpus))
    for number, device in enumerate(host.devices):
        folder = fake.device(device.address)
        vendor, _, model = (device.pci_id or "ffff:ffff").partition(":")
        _put(folder / "vendor", f"0x{vendor}")
        _put(folder / "device", f"0x{model}")
        _put(folder / "driver_override", "(null)")
        driver = root / "sys/bus/pci/drivers" / DRIVERS[device.kind]
        _put(driver / "unbind", "")
        (folder / "driver").symlink_to(f"../../drivers/{DRIVERS[device.kind]}")
        if device.kind == "nvme":
            disk = folder / f"nvme/nvme{number}/nvme{number}n1"
            _put(folder / f"nvme/nvme{number}/serial", f"{device.serial}   ")
            for part, name in enumerate((disk, disk / f"{disk.name}p1")):
                _put(name / "dev", f"259:{number * 8 + part}")
                (name / "holders").mkdir()
        if device.kind == "nic":
            _card(root, folder, f"ens{number}", device.serial or "02:00:00:00:00:01")
    _card(root, root / "sys/devices/0000:00:1f.6", "eno1", "02:00:00:00:00:02")
    _put(root / "proc/self/mountinfo", "36 35 8:2 / / rw shared:1 - ext4 /dev/sda2 rw")
    _put(root / "proc/swaps", "Filename Type Size Used Priority")
    fake.route("eno1")
    for name, text in PROGRAMS.items():
        fake.program(name, text)
    return fake


def _card(root: Path, device: Path, name: str, mac: str) -> None:
    port = device / "net" / name
    _put(port / "address", mac)
    (port / "device").symlink_to(device)
    interfaces = root / "sys/class/net"
    interfaces.mkdir(parents=True, exist_ok=True)
    (interfaces / name).symlink_to(port)
