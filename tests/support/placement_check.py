"""A second opinion on a placement: what must hold, from the inventory and the workloads alone.

Nothing of `gpuplan.placement` is used here, so that a mistake there is not repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpuplan.plan.model import GuestCell, GuestDevice, Host, VirtualMachine, Workload

GIB = 2**30
PARTITIONS = {  # NVIDIA Fabric Manager User Guide, HGX H100
    0: {1, 2, 3, 4, 5, 6, 7, 8},
    1: {1, 2, 3, 4},
    2: {5, 6, 7, 8},
    3: {1, 3},
    4: {2, 4},
    5: {5, 7},
    6: {6, 8},
    **{6 + module: {module} for module in range(1, 9)},
}


def faults(
    spec: Mapping[str, Any],
    hosts: Sequence[Host],
    machines: Sequence[VirtualMachine],
    workloads: Sequence[Workload],
) -> list[str]:
    """Everything wrong with `machines` on hosts that one inventory entry `spec` describes. Memory
    in `spec` is in GiB, CPU lists are lists."""
    by_name = {w.name: w for w in workloads}
    found: list[str] = []
    for host in hosts:
        own = [m for m in machines if m.host == host.name]
        found += [f"{host.name}: {text}" for text in _host(spec, host, own, by_name)]
    for machine in machines:
        workload = by_name[machine.workload]
        found += [f"{machine.name}: {text}" for text in _machine(spec, machine, workload)]
    for what, values in (
        ("uuid", [m.uuid for m in machines]),
        ("name", [m.name for m in machines]),
        ("MAC", [mac for m in machines for mac in _macs(m)]),
    ):
        found += [f"{what} {v} twice" for v, times in Counter(values).items() if times > 1]
    return found


def _macs(machine: VirtualMachine) -> list[str]:
    return [machine.mac, *(d.mac for d in machine.devices if d.mac)]


def _cores(node: Mapping[str, Any], threads: int) -> list[list[int]]:
    """Cores as the kernel numbers them on this host: second threads after all first ones."""
    cpus = node["cpus"]
    half = len(cpus) // threads
    return [[cpus[i + t * half] for t in range(threads)] for i in range(half)]


def _host(
    spec: Mapping[str, Any],
    host: Host,
    machines: Sequence[VirtualMachine],
    workloads: Mapping[str, Workload],
) -> Iterator[str]:
    cpus = Counter(p.cpu for m in machines for c in m.cells for p in c.pins)
    yield from (f"CPU {cpu} used {n} times" for cpu, n in cpus.items() if n > 1)
    for number, node in enumerate(spec["numa_nodes"]):
        cells = [c for m in machines for c in m.cells if c.host_node == number]
        pages = host.numa_nodes[number].hugepages
        if sum(c.memory_bytes for c in cells) > pages * GIB:
            yield f"node {number}: cells exceed its pages"
        left = node["memory"] - pages
        if left < max(8, node["memory"] / 16) + len(cells):
            yield f"node {number}: {left} GiB left for the host and {len(cells)} guests"
    attached = [(m, d) for m in machines for d in m.devices]
    functions = Counter(d.address for _, d in attached)
    yield from (f"{a} attached {n} times" for a, n in functions.items() if n > 1)
    for gpu in spec["gpus"]:
        users = [(m, d) for m, d in attached if gpu["address"] in (d.address, d.parent)]
        yield from _gpu(gpu, users, workloads)
    tenants = {workloads[m.workload].tenant for m in machines}
    if any(workloads[m.workload].isolation == "node" for m in machines) and len(tenants) > 1:
        yield f"tenants {sorted(tenants)} share a host that one keeps to itself"


def _gpu(
    gpu: Mapping[str, Any],
    users: Sequence[tuple[VirtualMachine, GuestDevice]],
    workloads: Mapping[str, Workload],
) -> Iterator[str]:
    whole = [d for _, d in users if d.kind == "gpu"]
    if whole and len(users) > 1:
        yield f"{gpu['address']} is whole in one guest and used by another"
    types = {d.vgpu_type for _, d in users}
    if len(types) > 1:
        yield f"{gpu['address']} has {types}"
    for kind in types - {None}:
        if len(users) > 48 // int(str(kind)[5:-1]):
            yield f"{gpu['address']} has {len(users)} × {kind}"
    owners = [workloads[m.workload] for m, _ in users]
    if any(w.isolation == "gpu" for w in owners) and len({w.tenant for w in owners}) > 1:
        yield f"{gpu['address']} is shared by tenants that do not want to"


def _machine(spec: Mapping[str, Any], machine: VirtualMachine, workload: Workload) -> Iterator[str]:
    for cell in machine.cells:
        yield from (f"cell {cell.cell} {text}" for text in _cell(spec, cell))
        if not any(d.cell == cell.cell and d.kind in ("gpu", "vgpu") for d in machine.devices):
            yield f"cell {cell.cell} has no GPU"
    vcpus = sorted(p.vcpu for c in machine.cells for p in c.pins)
    if vcpus != list(range(len(vcpus))):
        yield "vCPUs are not numbered without gaps"
    if machine.memory_bytes != sum(c.memory_bytes for c in machine.cells):
        yield "memory is not the sum of the cells"
    if any(int(mac[:2], 16) & 3 != 2 for mac in _macs(machine)):
        yield "a MAC address is not local and unicast"
    yield from _gpus(spec, machine, workload)
    yield from _networks(spec, machine, workload)


def _cell(spec: Mapping[str, Any], cell: GuestCell) -> Iterator[str]:
    threads = spec["threads_per_core"]
    cores = _cores(spec["numa_nodes"][cell.host_node], threads)
    lent, elsewhere = _lent(spec)
    own = 0 if cell.host_node in lent else 2
    usable = {cpu for core in cores[own:] for cpu in core}
    kept = {cpu for core in cores[:own] for cpu in core} or elsewhere
    pinned = [p.cpu for p in sorted(cell.pins, key=lambda p: p.vcpu)]
    if not set(pinned) <= usable:
        yield "uses CPUs that are not the node's to give"
    groups = [pinned[i : i + threads] for i in range(0, len(pinned), threads)]
    if any(sorted(group) not in [sorted(core) for core in cores] for group in groups):
        yield "tears cores apart"
    if not {*cell.emulator_cpus, *cell.iothread_cpus} <= kept:
        yield "runs the emulator on guest cores"
    if set(cell.emulator_cpus) & set(cell.iothread_cpus):
        yield "has emulator and I/O threads on one CPU"
    if cell.memory_bytes % GIB:
        yield "is no whole number of pages"


def _lent(spec: Mapping[str, Any]) -> tuple[set[int], set[int]]:
    """The nodes with GPUs that give guests all of their cores, as nodes without GPUs have two for
    the host beside their own two, and the CPUs that it may have on all others: as no distances are
    known, each of these is near."""
    busy = sorted({g["numa_node"] for g in spec["gpus"]})
    threads = spec["threads_per_core"]
    idle = [_cores(n, threads) for i, n in enumerate(spec["numa_nodes"]) if i not in busy]
    lent = busy[: sum(max(0, len(cores) // 2 - 1) for cores in idle)]
    most = 2 + 2 * len(lent)
    kept = [core for cores in idle for core in cores[:most]]
    for number in busy[len(lent) :]:
        kept += _cores(spec["numa_nodes"][number], threads)[:2]
    return set(lent), {cpu for core in kept for cpu in core}


def _gpus(spec: Mapping[str, Any], machine: VirtualMachine, workload: Workload) -> Iterator[str]:
    gpus = [d for d in machine.devices if d.kind in ("gpu", "vgpu")]
    if len(gpus) != workload.gpus_per_node:
        yield f"{len(gpus)} GPUs instead of {workload.gpus_per_node}"
    if {d.vgpu_type for d in gpus} != {workload.partition}:
        yield "the wrong type of GPU"
    listed = {g["address"]: g for g in spec["gpus"]}
    for device in gpus:
        entry = listed.get(device.parent or device.address)
        if entry is None or entry["type"] != workload.gpu:
            yield f"{device.address} is no {workload.gpu} of the host"
            continue
        if device.parent and device.address not in entry.get("virtual_functions", []):
            yield f"{device.address} is no function of {device.parent}"
        if machine.cells[device.cell].host_node != entry["numa_node"]:
            yield f"{device.name} is on another node than its cell"
    yield from _board(listed, gpus, machine)


def _board(
    listed: Mapping[str, Any], gpus: Sequence[GuestDevice], machine: VirtualMachine
) -> Iterator[str]:
    if len(listed) == 8 and all(d.kind == "gpu" for d in gpus):
        modules = {g.get("module_id") for a, g in listed.items() if a in {d.address for d in gpus}}
        if PARTITIONS.get(machine.fabric_partition or 0) != modules:
            yield f"GPUs {modules} are not partition {machine.fabric_partition}"


def _networks(
    spec: Mapping[str, Any], machine: VirtualMachine, workload: Workload
) -> Iterator[str]:
    nics = {n["address"]: n for n in spec.get("nics", [])}
    switches = {g["address"]: g.get("switch") for g in spec["gpus"]}
    for device in machine.devices:
        if device.kind != "nic":
            continue
        entry = nics.get(device.parent or "")
        if entry is None or device.address not in entry["virtual_functions"]:
            yield f"{device.address} is no function of a NIC"
            continue
        peers = [d for d in machine.devices if d.group == device.group and d.kind == "gpu"]
        if any(switches[d.address] != entry.get("switch") for d in peers):
            yield f"{device.name} shares a switch in the guest but not on the host"
    if workload.nodes_per_replica == 1 and any(d.kind == "nic" for d in machine.devices):
        yield "a NIC function that nothing asked for"
