"""One placed guest as the plan's virtual machine: its NUMA cells, pins, pages and disks."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence

from gpuplan.diagnostics import Diagnostic
from gpuplan.placement.boards import shared_board, unknown_board
from gpuplan.placement.machines.attach import MacAddresses, attach
from gpuplan.placement.machines.choose import board_of
from gpuplan.placement.machines.guests import Guest
from gpuplan.placement.machines.hypervisors import Hypervisor
from gpuplan.placement.machines.state import GpuChoice, HostState
from gpuplan.placement.problems import idle_nodes, unchecked_fact
from gpuplan.plan import window
from gpuplan.plan.model import Core, CpuPin, Disk, GuestCell, GuestDevice, VirtualMachine
from gpuplan.sharing.fabric import undescribed
from gpuplan.units import GIB

NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "gpuplan.dev")
ROOT_DISK_BYTES = 64 * GIB  # operating system, driver and container runtime


def build(
    plan: str,
    state: HostState,
    guest: Guest,
    choice: GpuChoice,
    macs: MacAddresses,
    *,
    former: VirtualMachine | None = None,
) -> tuple[VirtualMachine, tuple[Diagnostic, ...]]:
    """The virtual machine of `guest`, which takes its parts from `state`, and what it lacks. Of the
    machine that it was, on whichever host, it keeps the parts that are free."""
    identity = uuid.uuid5(NAMESPACE, f"{plan}/{guest.name}")
    host = state.hypervisor.host
    here = former if former is not None and former.host == host.name else None
    cells = _cells(state, guest, choice, here.cells if here else ())
    devices, far = attach(state, guest, choice, identity, macs, former=here.devices if here else ())
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
        disks=tuple(_disks(state.hypervisor, guest, devices)),
        bridge=state.hypervisor.bridge,
        mac=macs.of(identity, "bridge"),
        physical_address_bits=host.physical_address_bits,
        fabric_partition=choice.partition,
        origin=guest.workload.origin,
    )
    return machine, (*_findings(state, guest, choice), *far)


def _cells(
    state: HostState, guest: Guest, choice: GpuChoice, former: Sequence[GuestCell]
) -> tuple[GuestCell, ...]:
    """One cell a host node, of the cores and pages that the guest takes there. Threads of a core
    are neighbours in the guest too."""
    cells: list[GuestCell] = []
    first = 0
    pinned = frozenset(pin.cpu for cell in former for pin in cell.pins)
    for number, (node, taken) in enumerate(
        zip(choice.nodes, state.take(guest, choice, pinned), strict=True)
    ):
        resources = state.nodes[node]
        cpus = [cpu for core in taken for cpu in core.cpus]
        before = next((cell for cell in former if cell.host_node == node), None)
        turn = sum(n.guests for n in state.nodes if n.reserved == resources.reserved)
        emulator, iothread = _housekeeping(resources.reserved, turn, before)
        resources.guests += 1
        cells.append(
            GuestCell(
                cell=number,
                host_node=node,
                pins=tuple(CpuPin(vcpu=first + i, cpu=cpu) for i, cpu in enumerate(cpus)),
                memory_bytes=guest.pages * choice.gpus_of(node) * window.PAGE_BYTES,
                emulator_cpus=(emulator,),
                iothread_cpus=(iothread,),
            )
        )
        first += len(cpus)
    return tuple(cells)


def _housekeeping(
    reserved: Sequence[Core], guest: int, former: GuestCell | None
) -> tuple[int, int]:
    """CPUs for the emulator and the I/O thread of the n-th guest of these cores: those that it had,
    else the two threads of one core that the host keeps, or two such cores where cores have one
    thread."""
    kept = {cpu for core in reserved for cpu in core.cpus}
    if former is not None and kept.issuperset((*former.emulator_cpus, *former.iothread_cpus)):
        return former.emulator_cpus[0], former.iothread_cpus[0]
    core = reserved[guest % len(reserved)]
    second = core.cpus[1:] or reserved[(guest + 1) % len(reserved)].cpus
    return core.cpus[0], second[0]


def _disks(hypervisor: Hypervisor, guest: Guest, devices: Sequence[GuestDevice]) -> Iterator[Disk]:
    """A root disk, with the scratch space where no drive holds it, and a disk for each volume that
    one guest can own. A volume that several guests share is not a disk."""
    drives = {d.address: d.size_bytes for d in hypervisor.of("nvme")}
    held = sum(drives.get(d.address, 0) for d in devices)
    scratch = guest.scratch_bytes if held < guest.scratch_bytes else 0
    sizes = {"root": ROOT_DISK_BYTES + scratch}
    workload = guest.workload
    alone = workload.members == 1
    sizes |= {v.name: v.size_bytes for v in workload.volumes if alone or not v.shared}
    for name, size in sizes.items():
        source = f"{hypervisor.disk_path}/{guest.name}-{name}"
        yield Disk(name=name, source=source, size_bytes=size)


def _findings(state: HostState, guest: Guest, choice: GpuChoice) -> Iterator[Diagnostic]:
    workload, host = guest.workload, state.hypervisor.host
    idle = [n for n in host.numa_nodes if n.cores and not state.nodes[n.node].gpus]
    if idle and guest.vgpu is None and any(_scarce(state, node) for node in choice.nodes):
        cores = sum(len(n.cores) - len(n.reserved_cores) for n in idle)
        yield idle_nodes(host.name, [n.node for n in idle], cores, host.origin)
    if len(choice.nodes) > 1 and not host.numa_nodes[0].distances:
        yield unchecked_fact(
            "'distances' of the NUMA nodes",
            f"guests of '{workload.name}' see the default distances",
            host.origin or choice.picks[0].gpu.origin,
            "add the rows that `numactl -H` prints",
        )
    yield from _unchecked_board(state, guest, choice)


def _scarce(state: HostState, node: int) -> bool:
    """Whether a node has fewer cores for its GPUs than they should have."""
    return state.nodes[node].usable_cores < window.LEAST_CORES * state.nodes[node].gpus


def _unchecked_board(state: HostState, guest: Guest, choice: GpuChoice) -> Iterator[Diagnostic]:
    workload, at = guest.workload, choice.picks[0].gpu.origin
    if guest.vgpu is not None and board_of(state, guest):
        yield shared_board(workload.name, workload.origin)
    elif choice.partition is None and board_of(state, guest):
        yield unchecked_fact(
            "'module_id'",
            f"the NVSwitch partition of guests of '{workload.name}' is not known",
            at,
            'add the number that `nvidia-smi -q` prints as "Module ID"',
        )
    elif guest.vgpu is None and guest.gpus > 1 and undescribed(guest.gpu):
        yield unknown_board(guest.gpu.identifier, f"guests of '{workload.name}'", at)
