"""Notebooks: one environment per user, each with a whole GPU or with a partition of one."""

from __future__ import annotations

from gpuplan.plan.model import Alternative, MemoryBudget, Notebook
from gpuplan.sizing.ask.demand import NotebookDemand
from gpuplan.sizing.candidates.assemble import finish, record_cost, storage
from gpuplan.sizing.candidates.choose import Candidate, nodes_gate
from gpuplan.sizing.candidates.devices import devices
from gpuplan.sizing.candidates.gates import memory_gate, refused, stopped
from gpuplan.sizing.candidates.interruptions import interruption
from gpuplan.sizing.candidates.resources import host_resources, own_volume
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.evidence.formula import Formula, constant
from gpuplan.sizing.hardware.devices import Device
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.units import GIB

MEMORY, NODES = range(2)
HOME = constant(50 * GIB / 1.1, "B", "files, packages and small data sets of one user")
_USERS = Formula("users", "1", "one environment a user")


def candidates(demand: NotebookDemand, site: Site) -> list[tuple[GpuOffer, list[Candidate[float]]]]:
    """Every device of every offer that has the memory."""
    return [
        (offer, [_candidate(demand, d) for d in devices(demand, offer, site)])
        for offer in site.gpus
    ]


def _candidate(demand: NotebookDemand, device: Device) -> Candidate[float]:
    needed, users = demand.gpu_memory.value, demand.users.value
    capacity = device.memory_bytes.value
    if capacity < needed:
        gate, flip = memory_gate(device, needed, capacity, needed)
        return refused(demand, device, 1, gate, passed=MEMORY, flip=flip)
    candidate = Candidate(
        device=device, gpus=1, replicas=int(users), isolation=demand.isolation, detail=needed
    )
    short, few = nodes_gate(candidate)
    return stopped(candidate, short, passed=NODES, flip=few)


def recorded(
    settled: Settled[NotebookDemand],
    site: Site,
    candidate: Candidate[float],
    alternatives: tuple[Alternative, ...],
) -> Sized:
    ledger, device, demand = settled.ledger, candidate.device, settled.demand
    users = ledger.derive("replicas", _USERS, users=demand.users)
    memory = ledger.given("memory_bytes", device.memory_bytes)
    cost = record_cost(settled, candidate, users)
    home = storage(settled, "home_storage_bytes", HOME, demand.overrides.home_storage)
    wanted = int(demand.gpu_memory)
    return finish(
        settled,
        site,
        candidate,
        alternatives,
        cost,
        memory=MemoryBudget(
            weights_bytes=0,
            activations_bytes=wanted,
            capacity_bytes=int(memory),
            usable_bytes=int(memory),
        ),
        bound_by="memory capacity",
        resources=host_resources(settled, device, 1),
        volumes=(own_volume(site, "home", home),),
        interruption=interruption(settled, site, candidate, cost, {"replicas": users}),
        notebook=Notebook(users=int(users), gpu_memory_bytes=wanted),
        concurrency=int(users),
    )
