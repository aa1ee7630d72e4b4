"""What libvirt reads in /sys of a host's CPUs and NUMA nodes, for a host that is not there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from gpuplan.plan.model import Host

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
    for name in ("online", "possible", "has_cpu", "has_memory", "has_normal_memory"):
        _put(root / "node" / name, _list(nodes))
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
    words = (value.bit_length() + 31) // 32
    return ",".join(f"{value >> 32 * word & 0xFFFFFFFF:08x}" for word in reversed(range(words)))
