"""What guests have less of than was asked, once for each workload or GPU and not once a guest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gpuplan.diagnostics import Diagnostic
from gpuplan.placement.machines.guests import Guest
from gpuplan.placement.machines.state import HostState
from gpuplan.placement.problems import no_network_functions, take_turns
from gpuplan.plan.model import VirtualMachine
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
