"""GPUs of hosts in use that no guest has, and what would fit on them beside the guests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from gpuplan.placement.machines.guests import Guest, guests
from gpuplan.placement.machines.machines import Machines, fitting, stayed
from gpuplan.placement.machines.state import HostState
from gpuplan.plan.model import NodePool, Room, Workload
from gpuplan.sizing.hardware.offers import GpuOffer


def with_idle(
    plan: str,
    pool: NodePool,
    machines: Machines,
    workloads: Sequence[Workload],
    offers: Sequence[GpuOffer],
) -> NodePool:
    """The pool with its idle GPUs; `workloads` are all of the plan. No guest moves for another:
    so many replicas can be started as things stand."""
    hosts = [h for h in machines.hypervisors if h.host.name in pool.node_names]
    taken = {(m.host, d.parent or d.address) for m in machines.virtual_machines for d in m.devices}
    every = [
        (h.host.name, d.address) for h in hosts for d in h.of("gpu") if d.device.model == pool.gpu
    ]
    free = sum(gpu not in taken for gpu in every)
    if not free:
        return pool
    gpus = {o.gpu.identifier: o.gpu for o in reversed(offers)}
    wanted = [guest for w in workloads for guest in guests(w, gpus[w.gpu])]
    state = stayed(plan, machines, wanted)
    room = []
    for workload in workloads:
        if workload.node_pool == pool.name and workload.gpu == pool.gpu:
            replica = tuple(
                islice(guests(workload, gpus[workload.gpu]), workload.nodes_per_replica)
            )
            most = len(every) * replica[0].per_gpu // (replica[0].gpus * len(replica))
            held = _held([host.copy() for host in state], replica, most)
            room.append(Room(workload=workload.name, replicas=held))
    return replace(pool, idle_gpus=free, room=tuple(room))


def _held(hosts: Sequence[HostState], replica: Sequence[Guest], most: int) -> int:
    """The further replicas that `hosts` hold, at most `most`, each of these guests; first on one
    NUMA node of a host. A host that has no place for one has none for the next: looks are as many
    as replicas and hosts."""
    open_hosts = list(hosts)
    for number in range(most):
        if not all(_put(open_hosts, guest) for guest in replica):
            return number
    return most


def _put(hosts: list[HostState], guest: Guest) -> bool:
    best = None
    for host in tuple(hosts):
        choice, _ = fitting(host, guest)
        if choice is None:
            hosts.remove(host)
        elif best is None or len(choice.nodes) < len(best[1].nodes):
            best = host, choice
        if best is not None and len(best[1].nodes) == 1:
            break
    if best is not None:
        best[0].take(guest, best[1])
    return best is not None
