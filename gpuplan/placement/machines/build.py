"""One placed guest as the plan's virtual machine: its NUMA cells, pins, pages and disks."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence

from gpuplan.diagnostics import Diagnostic
from gpuplan.placement.machines.attach import MacAddresses, attach
from gpuplan.placement.machines.choose import board_of
from gpuplan.placement.machines.free import Choice, HostState
from gpuplan.placement.machines.guests import CORES_PER_GPU, Guest
from gpuplan.placement.machines.inventory import Site
from gpuplan.placement.problems import (
    idle_nodes,
    reduced,
    shared_board,
    unchecked_fact,
    unknown_board,
)
from gpuplan.plan.model import Core, CpuPin, Disk, GuestCell, GuestDevice, VirtualMachine
from gpuplan.sharing.fabric import undescribed
from gpuplan.units import GIB, format_bytes

NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "gpuplan.dev")
ROOT_DISK_BYTES = 64 * GIB  # operating system, driver and container runtime


def build(
    plan: str, state: HostState, guest: Guest, choice: Choice, macs: MacAddresses
) -> tuple[VirtualMachine, tuple[Diagnostic, ...]]:
    """The virtual machine of `guest`, which takes its parts from `state`, and what it lacks."""
    identity = uuid.uuid5(NAMESPACE, f"{plan}/{guest.name}")
    cells = _cells(state, choice, state.take(guest, choice), state.pages(guest, choice))
    devices, far = attach(state, guest, choice, identity, macs)
    host = state.site.host
    machine = VirtualMachine(
        name=guest.name,
        uuid=str(identity),
        host=host.name,
        workload=guest.workload.name,
        cells=cells,
        threads_per_core=host.threads_per_core,
        memory_bytes=sum(c.memory_bytes for c in cells),
        hugepage_bytes=host.hugepage_bytes,
        devices=devices,
        disks=tuple(_disks(state.site, guest, devices)),
        bridge=state.site.bridge,
        mac=macs.of(identity, "bridge"),
        physical_address_bits=host.physical_address_bits,
        fabric_partition=choice.partition,
        origin=guest.workload.origin,
    )
    return machine, (*_findings(state, guest, choice), *far)


def _cells(
    state: HostState, choice: Choice, taken: Sequence[Sequence[Core]], pages: Sequence[int]
) -> tuple[GuestCell, ...]:
    """One cell a host node, of the cores and pages `taken` there. Threads of a core are neighbours
    in the guest too."""
    cells: list[GuestCell] = []
    first = 0
    for number, node in enumerate(choice.nodes):
        resources = state.nodes[node]
        cpus = [cpu for core in taken[number] for cpu in core.cpus]
        emulator, iothread = _housekeeping(resources.reserved, resources.guests)
        resources.guests += 1
        cells.append(
            GuestCell(
                cell=number,
                host_node=node,
                pins=tuple(CpuPin(vcpu=first + i, cpu=cpu) for i, cpu in enumerate(cpus)),
                memory_bytes=pages[number] * state.site.host.hugepage_bytes,
                emulator_cpus=(emulator,),
                iothread_cpus=(iothread,),
            )
        )
        first += len(cpus)
    return tuple(cells)


def _housekeeping(reserved: Sequence[Core], guest: int) -> tuple[int, int]:
    """CPUs for the emulator and the I/O thread of a node's n-th guest: the two threads of one core
    that the host keeps, or two such cores where cores have one thread."""
    core = reserved[guest % len(reserved)]
    other = core.cpus[1:] or reserved[(guest + 1) % len(reserved)].cpus
    return core.cpus[0], other[0]


def _disks(site: Site, guest: Guest, devices: Sequence[GuestDevice]) -> Iterator[Disk]:
    """A root disk, with the scratch space where no drive holds it, and a disk for each volume that
    one guest can own. A volume that several guests share is not a disk."""
    drives = {s.device.address: s.size_bytes for s in site.of("nvme")}
    held = sum(drives.get(d.address, 0) for d in devices)
    scratch = guest.scratch_bytes if held < guest.scratch_bytes else 0
    sizes = {"root": ROOT_DISK_BYTES + scratch}
    workload = guest.workload
    alone = workload.replicas * workload.nodes_per_replica == 1
    sizes |= {v.name: v.size_bytes for v in workload.volumes if alone or not v.shared}
    for name, size in sizes.items():
        source = f"{site.disk_path}/{guest.name}-{name}"
        yield Disk(name=name, source=source, size_bytes=size)


def _findings(state: HostState, guest: Guest, choice: Choice) -> Iterator[Diagnostic]:
    workload, host = guest.workload, state.site.host
    short = [d for node in choice.nodes for d in _reduced(state, guest, node)]
    yield from short
    idle = [n for n in host.numa_nodes if n.cores and not state.nodes[n.node].gpus]
    if short and idle:
        cores = sum(len(n.cores) - len(n.reserved_cores) for n in idle)
        yield idle_nodes(host.name, [n.node for n in idle], cores, host.origin)
    if len(choice.nodes) > 1 and not host.numa_nodes[0].distances:
        yield unchecked_fact(
            "'distances' of the NUMA nodes",
            f"guests of '{workload.name}' see the default distances",
            host.origin or state.site.slots[0].origin,
            "add the rows that `numactl -H` prints",
        )
    if guest.vgpu is not None and board_of(state, guest):
        yield shared_board(workload.name, workload.origin)
    elif choice.partition is None and board_of(state, guest):
        yield unchecked_fact(
            "'module_id'",
            f"the NVSwitch partition of guests of '{workload.name}' is not known",
            choice.picks[0].slot.origin,
            'add the number that `nvidia-smi -q` prints as "Module ID"',
        )
    elif guest.vgpu is None and guest.gpus > 1 and undescribed(guest.gpu):
        guests = f"guests of '{workload.name}'"
        yield unknown_board(guest.gpu.identifier, guests, choice.picks[0].slot.origin)


def _reduced(state: HostState, guest: Guest, node: int) -> Iterator[Diagnostic]:
    """What a guest gets of `node` that is less than it should have."""
    workload, host = guest.workload, state.site.host
    cores, pages = state.share(guest, node)
    memory = pages * host.hugepage_bytes
    part = f"that is its part of node {node} of {host.name}"
    least = 1 if guest.vgpu else CORES_PER_GPU[0]
    if not guest.fixed_cores and cores < min(least, guest.cores):
        window = f"{CORES_PER_GPU[0]} to {CORES_PER_GPU[1]} cores per GPU"
        yield reduced(f"'{workload.name}'", f"{cores}", window, part, workload.origin)
    if memory < guest.memory_bytes:
        wanted = f"{format_bytes(guest.memory_bytes)} of memory per GPU"
        given = format_bytes(memory)
        yield reduced(f"'{workload.name}'", given, wanted, part, workload.origin)
