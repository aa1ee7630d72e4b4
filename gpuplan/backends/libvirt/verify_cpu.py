"""Faults of a domain's CPUs: topology, pins, threads of a core, emulator and I/O threads."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator

from gpuplan.plan import window
from gpuplan.plan.model import Host, VirtualMachine

Pins = list[tuple[int, set[int]]]
MOST_CPUS = 16_384  # of libvirt's masks: VIR_DOMAIN_CPUMASK_LEN of its src/conf/domain_conf.h


def cpu_faults(root: ET.Element, machine: VirtualMachine, host: Host) -> Iterator[str]:
    yield from _vcpus(root, machine, host)
    yield from _helpers(root, machine, host)


def integer(text: str | None) -> int:
    """A whole number, or -1 for anything else."""
    return int(text) if text and text.strip().isdecimal() else -1


def numbers(text: str | None) -> set[int]:
    """`0-3,8` → {0, 1, 2, 3, 8}; nothing for a text that is no such list."""
    listed: set[int] = set()
    for part in (text or "").split(","):
        first, _, last = part.partition("-")
        if integer(first) >= 0 and (not last or integer(last) >= 0):
            start, end = int(first), int(last or first)
            listed.update(_numbered(start, end + 1))
            listed |= {end} if start <= end else set()  # also beyond: no host has it
    return listed


def _numbered(first: int, end: int) -> range:
    """From `first` until `end`, or as far as libvirt itself numbers: a typing error in a count must
    not fill the memory."""
    return range(first, min(end, MOST_CPUS))


def _vcpus(root: ET.Element, machine: VirtualMachine, host: Host) -> Iterator[str]:
    count = integer(root.findtext("vcpu"))
    topology = root.find("cpu/topology")
    shape = {k: integer(v) for k, v in topology.items()} if topology is not None else {}
    threads = shape.get("threads", 1)
    if shape.get("sockets", 1) * shape.get("dies", 1) * shape.get("cores", 1) * threads != count:
        yield f"the topology has not {count} vCPUs"
    pins = [
        (integer(p.get("vcpu")), numbers(p.get("cpuset"))) for p in root.iterfind("cputune/vcpupin")
    ]
    yield from _existence(count, pins)
    yield from _rooms(pins, host)
    yield from _locality(root, dict(pins), machine, host)
    yield from _siblings(dict(pins), threads, host)


def _existence(count: int, pins: Pins) -> Iterator[str]:
    times = Counter(vcpu for vcpu, _ in pins)
    for vcpu in _numbered(0, count):
        if times[vcpu] != 1:
            yield f"vCPU {vcpu} is pinned {times[vcpu]} times"
    for vcpu in sorted(v for v in times if not 0 <= v < count):
        yield f"vCPU {vcpu} is pinned but does not exist"


def _rooms(pins: Pins, host: Host) -> Iterator[str]:
    reserved = {cpu for n in host.numa_nodes for core in n.reserved_cores for cpu in core.cpus}
    known = {cpu for n in host.numa_nodes for core in n.cores for cpu in core.cpus}
    for vcpu, cpus in pins:
        if len(cpus) != 1 or not cpus <= known:
            yield f"vCPU {vcpu} is not pinned to one CPU of the host: {sorted(cpus)}"
        if cpus & reserved:
            yield f"vCPU {vcpu} takes CPU {min(cpus & reserved)}, which the host keeps"
    for cpu, users in sorted(Counter(cpu for _, cpus in pins for cpu in cpus).items()):
        if users > 1:
            yield f"{users} vCPUs share CPU {cpu}"


def _locality(
    root: ET.Element, pinned: dict[int, set[int]], machine: VirtualMachine, host: Host
) -> Iterator[str]:
    """Each vCPU runs on the node that its cell's memory is on."""
    nodes = {cpu: n.node for n in host.numa_nodes for core in n.cores for cpu in core.cpus}
    homes = {str(c.cell): c.host_node for c in machine.cells}
    counted: Counter[int] = Counter()
    for element in root.iterfind("cpu/numa/cell"):
        home = homes.get(element.get("id", ""))
        for vcpu in sorted(numbers(element.get("cpus"))):
            counted[vcpu] += 1
            remote = {nodes[c] for c in pinned.get(vcpu, ()) if c in nodes} - {home}
            if remote:
                yield f"vCPU {vcpu} runs on node {min(remote)}, its memory is on node {home}"
    for vcpu in sorted(pinned):
        if counted[vcpu] != 1:
            yield f"vCPU {vcpu} is in {counted[vcpu]} cells"


def _siblings(pinned: dict[int, set[int]], threads: int, host: Host) -> Iterator[str]:
    """Threads of a guest core are threads of one host core."""
    cores = {
        cpu: (n.node, number)
        for n in host.numa_nodes
        for number, core in enumerate(n.cores)
        for cpu in core.cpus
    }
    step = max(1, threads)
    for first in range(0, len(pinned), step):
        used = {cores.get(c) for v in _numbered(first, first + step) for c in pinned.get(v, ())}
        if len(used) > 1:
            yield f"vCPUs {first} to {first + step - 1} are one core of the guest, not of the host"


def _helpers(root: ET.Element, machine: VirtualMachine, host: Host) -> Iterator[str]:
    """Emulator and I/O threads run where the host's own do, on the guest's nodes or near them."""
    kept = {
        cpu
        for node in {c.host_node for c in machine.cells}
        for core in window.helpers(host.numa_nodes, node)
        for cpu in core.cpus
    }
    threads = max(0, integer(root.findtext("iothreads")))
    pins = {f"I/O thread {p.get('iothread')}": p for p in root.iterfind("cputune/iothreadpin")}
    emulator = root.find("cputune/emulatorpin")
    if emulator is None:
        yield "the emulator is not pinned"
    else:
        pins["the emulator"] = emulator
    for name, pin in pins.items():
        cpus = numbers(pin.get("cpuset"))
        if not cpus or not cpus <= kept:
            yield f"{name} is not on CPUs that the host keeps for the guest's nodes: {sorted(cpus)}"
    missing = {f"I/O thread {n}" for n in _numbered(1, threads + 1)} - pins.keys()
    for name in sorted(missing):
        yield f"{name} is not pinned"
    used = [
        driver.get("iothread") for driver in root.iterfind("devices/disk[@device='disk']/driver")
    ]
    for text in used:
        if not 1 <= integer(text) <= threads:
            yield f"a disk uses I/O thread {text}, which does not exist"
    for number in sorted(set(_numbered(1, threads + 1)) - set(map(integer, used))):
        yield f"I/O thread {number} serves no disk"
