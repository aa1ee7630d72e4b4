"""What guests have less of than was asked, once for each workload or GPU and not once a guest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gpuplan.diagnostics import Diagnostic
from gpuplan.placement.boards import far_devices, no_network_functions, shared_port
from gpuplan.placement.machines.attach import ROUNDING, port_rate
from gpuplan.placement.machines.guests import Guest
from gpuplan.placement.machines.state import HostState
from gpuplan.placement.problems import take_turns
from gpuplan.plan.model import GuestDevice, VirtualMachine
from gpuplan.sharing.partitions import takes_turns


def turns(hosts: Iterable[HostState]) -> Iterator[Diagnostic]:
    """GPUs on which guests of several tenants take turns."""
    for state in hosts:
        for gpu in state.gpus.values():
            users = [u for u in gpu.users if takes_turns(u.vgpu)]
            tenants = dict.fromkeys(u.workload.tenant for u in users)
            if len(tenants) > 1:
                host = state.hypervisor.host.name
                yield take_turns(tuple(tenants), gpu.address, host, users[0].workload.origin)


def ports(
    hosts: Iterable[HostState], placed: Mapping[str, VirtualMachine], guests: Sequence[Guest]
) -> Iterator[Diagnostic]:
    """Ports that give functions to more GPUs than they can carry what each of them is to have; one
    for each workload."""
    known = {g.name: g for g in guests if g.networked}
    said: set[str] = set()
    for state in hosts:
        here = [m for m in placed.values() if m.host == state.hypervisor.host.name]
        for nic in state.hypervisor.of("nic"):
            users = [
                known[m.name]
                for m in here
                for d in m.devices
                if m.name in known and d.kind == "nic" and d.parent == nic.address
            ]
            wanted = sum(port_rate(state, guest) or 0.0 for guest in users)
            if nic.bytes_per_s is None or wanted <= nic.bytes_per_s * ROUNDING:
                continue
            work = users[0].workload
            if work.name not in said:
                said.add(work.name)
                yield shared_port(
                    work.name,
                    nic.address,
                    state.hypervisor.host.name,
                    len(users),
                    rates=(nic.bytes_per_s, wanted / len(users)),
                    origin=work.origin,
                )


def networks(placed: Mapping[str, VirtualMachine], guests: Sequence[Guest]) -> Iterator[Diagnostic]:
    """Workloads with GPUs that no function of a network card is beside, though a fabric is asked
    for: an error where guests on several hosts exchange data, which would go over the bridge."""
    for name in dict.fromkeys(g.workload.name for g in guests if g.networked):
        own = [g for g in guests if g.workload.name == name]
        machines = [placed[g.name] for g in own if g.name in placed]
        gpus = sum(d.kind == "gpu" for m in machines for d in m.devices)
        nics = sum(d.kind == "nic" for m in machines for d in m.devices)
        if nics < gpus:
            lacking = gpus - nics
            yield no_network_functions(
                name, lacking, gpus, own[0].workload.origin, between_hosts=own[0].between_hosts
            )


def distant(
    hosts: Iterable[HostState], placed: Mapping[str, VirtualMachine], guests: Sequence[Guest]
) -> Iterator[Diagnostic]:
    """Workloads with GPUs whose function is of a card on another NUMA node."""
    nodes = {
        (state.hypervisor.host.name, device.address): device.node
        for state in hosts
        for kind in ("gpu", "nic")
        for device in state.hypervisor.of(kind)
    }
    for name in dict.fromkeys(g.workload.name for g in guests if g.networked):
        own = [g for g in guests if g.workload.name == name]
        machines = [placed[g.name] for g in own if g.name in placed]
        far = [
            (gpu.address, nic.parent or "", m.host)
            for m in machines
            for gpu, nic in _pairs(m)
            if nodes[m.host, gpu.address] != nodes[m.host, nic.parent or ""]
        ]
        if far:
            gpus = sum(d.kind == "gpu" for m in machines for d in m.devices)
            yield far_devices(name, len(far), gpus, far[0], own[0].workload.origin)


def _pairs(machine: VirtualMachine) -> Iterator[tuple[GuestDevice, GuestDevice]]:
    """Each GPU with its network function, which has its number."""
    nics = {d.name: d for d in machine.devices if d.kind == "nic"}
    for device in machine.devices:
        nic = nics.get(f"nic{device.group}")
        if device.kind == "gpu" and nic is not None:
            yield device, nic
