"""What is left of a host while guests are placed on it. The only mutable state of placement."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from gpuplan.placement.machines.guests import Guest
from gpuplan.placement.machines.hypervisors import HostDevice, Hypervisor
from gpuplan.plan import window
from gpuplan.plan.isolation import own_node
from gpuplan.plan.model import Core, NumaNode, Shortfall, record
from gpuplan.sizing.hardware.locality import Locality

OVERHEAD_PAGES = window.pages(window.GUEST_OVERHEAD_BYTES)


@record
class Pick:
    """One GPU of a guest: the device, and the virtual function of a vGPU."""

    gpu: HostDevice
    function: str | None = None


@record
class GpuChoice:
    """GPUs for one guest; `partition` is the NVSwitch partition that they are."""

    picks: tuple[Pick, ...]
    partition: int | None = None

    @property
    def nodes(self) -> tuple[int, ...]:
        return tuple(sorted({p.gpu.node for p in self.picks}))

    def gpus_of(self, node: int) -> int:
        return sum(p.gpu.node == node for p in self.picks)


@dataclass(slots=True)
class GpuState:
    """`users` are the guests on one GPU, once for each vGPU: several of one time-sliced type or on
    MIG instances, or one with the whole GPU."""

    gpu: HostDevice
    free_functions: list[str]
    users: list[Guest] = field(default_factory=list)

    @property
    def address(self) -> str:
        return self.gpu.address

    @property
    def node(self) -> int:
        return self.gpu.node


@dataclass(slots=True)
class NodeState:
    """What guests have of a NUMA node; its pages hold their memory and what each needs beside. The
    `reserved` cores serve them; where the node keeps none, they are other nodes'."""

    cores: list[Core]
    reserved: tuple[Core, ...]
    gpus: int
    usable_cores: int
    usable_pages: int
    free_pages: int
    taken_pages: int = 0
    guests: int = 0


@dataclass(slots=True)
class HostState:
    """One host. `owner` is the tenant that keeps it to itself; `strangers`: tenants may take turns
    on one GPU."""

    hypervisor: Hypervisor
    nodes: list[NodeState]
    gpus: dict[str, GpuState]
    network_functions: dict[str, list[str]]
    drives: list[HostDevice]
    used: bool = False
    owner: str | None = None
    strangers: bool = False

    def admits(self, guest: Guest) -> bool:
        """Whether tenancy allows `guest` here: no stranger owns the host, nor meets a guest that
        keeps it to itself."""
        tenant = guest.workload.tenant
        if own_node(guest.workload.isolation):
            users = (user for gpu in self.gpus.values() for user in gpu.users)
            return all(user.workload.tenant == tenant for user in users)
        return self.owner in (None, tenant)

    def only(self, addresses: Collection[str], guest: Guest) -> HostState:
        """The host as `guest` sees it that is to have no other GPUs or functions than those of
        `addresses`. To look at, not to fill."""
        gpus = {}
        for address, gpu in self.gpus.items():
            functions = [f for f in gpu.free_functions if f in addresses]
            if address in addresses or functions:
                gpus[address] = replace(gpu, free_functions=functions)
            elif guest.vgpu is None:  # a board counts all of its GPUs
                gpus[address] = replace(gpu, users=[*gpu.users, guest])
        return replace(self, gpus=gpus)

    def shortfalls(self, guest: Guest, choice: GpuChoice) -> tuple[Shortfall, ...]:
        """What the nodes of `choice` lack for `guest`."""
        lacking: list[Shortfall] = []
        for node in choice.nodes:
            state, gpus = self.nodes[node], choice.gpus_of(node)
            if guest.cores * gpus > len(state.cores):
                lacking.append(_cores(state, node, guest.cores * gpus))
            if guest.pages * gpus + OVERHEAD_PAGES > state.free_pages:
                lacking.append(_memory(state, node, guest.pages * gpus + OVERHEAD_PAGES))
        return tuple(lacking)

    def take(
        self, guest: Guest, choice: GpuChoice, former_cpus: frozenset[int] = frozenset()
    ) -> tuple[tuple[Core, ...], ...]:
        """Give `guest` its GPUs, pages and cores, those of `former_cpus` first; the cores of each
        node of `choice`."""
        for pick in choice.picks:
            gpu = self.gpus[pick.gpu.address]
            gpu.users.append(guest)
            if pick.function is not None and pick.function in gpu.free_functions:
                gpu.free_functions.remove(pick.function)
        self.used = True
        if own_node(guest.workload.isolation):
            self.owner = guest.workload.tenant
        taken: list[tuple[Core, ...]] = []
        for node in choice.nodes:
            state, gpus = self.nodes[node], choice.gpus_of(node)
            first = sorted(state.cores, key=lambda core: former_cpus.isdisjoint(core.cpus))
            own = {*first[: guest.cores * gpus]}
            taken.append(tuple(core for core in state.cores if core in own))
            state.cores = [core for core in state.cores if core not in own]
            state.free_pages -= guest.pages * gpus + OVERHEAD_PAGES
            state.taken_pages += guest.pages * gpus
        return tuple(taken)

    def copy(self) -> HostState:
        """One that can be filled without a trace here."""
        return replace(
            self,
            nodes=[replace(n, cores=list(n.cores)) for n in self.nodes],
            gpus={
                address: replace(g, free_functions=list(g.free_functions), users=list(g.users))
                for address, g in self.gpus.items()
            },
            network_functions={a: list(free) for a, free in self.network_functions.items()},
            drives=list(self.drives),
        )


def _cores(state: NodeState, node: int, wanted: int) -> Shortfall:
    return Shortfall(
        resource=f"cores of node {node}",
        requested=wanted,
        used=state.usable_cores - len(state.cores),
        capacity=state.usable_cores,
        unit="1",
    )


def _memory(state: NodeState, node: int, wanted: int) -> Shortfall:
    page = window.PAGE_BYTES
    return Shortfall(
        resource=f"memory of node {node}",
        requested=wanted * page,
        used=(state.usable_pages - state.free_pages) * page,
        capacity=state.usable_pages * page,
        unit="B",
    )


def empty(hypervisor: Hypervisor, *, strangers: bool = False) -> HostState:
    """A host with nothing on it."""
    return HostState(
        strangers=strangers,
        hypervisor=hypervisor,
        nodes=[
            _node(node, locality, window.helpers(hypervisor.host.numa_nodes, node.node))
            for node, locality in zip(
                hypervisor.host.numa_nodes, hypervisor.localities, strict=True
            )
        ],
        gpus={d.address: GpuState(d, list(d.functions)) for d in hypervisor.of("gpu")},
        network_functions={d.address: list(d.functions) for d in hypervisor.of("nic") if d.free},
        drives=[d for d in hypervisor.of("nvme") if d.free],
    )


def _node(node: NumaNode, locality: Locality, reserved: tuple[Core, ...]) -> NodeState:
    """No guest is on a node without GPUs, or without CPUs, as one that is a GPU's own memory
    (Grace Hopper): pages there would only take memory from the host."""
    pages = locality.free_pages if locality.gpus and node.cores else 0
    return NodeState(
        cores=[c for c in node.cores if c not in node.reserved_cores],
        reserved=reserved,
        gpus=locality.gpus,
        usable_cores=len(node.cores) - len(node.reserved_cores),
        usable_pages=pages,
        free_pages=pages,
    )
