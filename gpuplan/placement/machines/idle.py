"""GPUs of hosts in use that no guest has, and what would fit on them beside the guests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gpuplan.placement.machines.guests import guests
from gpuplan.placement.machines.machines import Machines, place_machines
from gpuplan.plan.model import NodePool, Room, Workload
from gpuplan.sizing.hardware.offers import GpuOffer


def with_idle(
    plan: str,
    pool: NodePool,
    machines: Machines,
    workloads: Sequence[Workload],
    offers: Sequence[GpuOffer],
) -> NodePool:
    """The pool with its idle GPUs; `workloads` are all of the plan."""
    hosts = [h for h in machines.hypervisors if h.host.name in pool.node_names]
    taken = {(m.host, d.parent or d.address) for m in machines.virtual_machines for d in m.devices}
    there = [
        (h.host.name, d.address) for h in hosts for d in h.of("gpu") if d.device.model == pool.gpu
    ]
    free = sum(gpu not in taken for gpu in there)
    if not free:
        return pool
    gpus = {o.gpu.identifier: o.gpu for o in reversed(offers)}

    def holds(workload: Workload, more: int) -> bool:
        larger = replace(workload, replicas=workload.replicas + more)
        every = (larger if w.name == workload.name else w for w in workloads)
        wanted = [guest for w in every for guest in guests(w, gpus[w.gpu])]
        tried = place_machines(plan, machines.hypervisors, wanted, machines.virtual_machines)
        return not tried.shortfalls

    room = []
    for workload in workloads:
        if workload.node_pool == pool.name and workload.gpu == pool.gpu:
            (guest, *_) = guests(workload, gpus[workload.gpu])
            most = len(there) * guest.per_gpu // (guest.gpus * workload.nodes_per_replica)
            room.append(Room(workload=workload.name, replicas=_most(holds, workload, most)))
    return replace(pool, idle_gpus=free, room=tuple(room))


def _most(holds: Callable[[Workload, int], bool], workload: Workload, high: int) -> int:
    """The most further replicas of the workload, at most `high`, that `holds` allows."""
    low = 0
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(workload, middle) else (low, middle - 1)
    return low
