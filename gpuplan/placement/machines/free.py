"""What is left of a host while guests are placed on it. The only mutable state of placement."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gpuplan.placement.machines.guests import Guest
from gpuplan.placement.machines.inventory import Site, Slot
from gpuplan.plan.model import Core, Shortfall, record


@record
class Pick:
    """One GPU of a guest: the device, and the virtual function of a vGPU."""

    slot: Slot
    function: str | None = None


@record
class Choice:
    """GPUs for one guest; `partition` is the NVSwitch partition that they are."""

    picks: tuple[Pick, ...]
    partition: int | None = None

    @property
    def nodes(self) -> tuple[int, ...]:
        return tuple(sorted({p.slot.device.numa_node for p in self.picks}))

    def gpus_of(self, node: int) -> int:
        return sum(p.slot.device.numa_node == node for p in self.picks)


@dataclass(slots=True)
class GpuState:
    """`users` are the guests on one GPU, once for each vGPU: several of one time-sliced type or on
    MIG instances, or one with the whole GPU."""

    slot: Slot
    free_functions: list[str]
    users: list[Guest] = field(default_factory=list)


@dataclass(slots=True)
class NodeState:
    cores: list[Core]
    reserved: tuple[Core, ...]
    gpus: int
    usable_cores: int
    hugepages: int
    free_hugepages: int
    guests: int = 0


@dataclass(slots=True)
class HostState:
    """One host. `owner` is the tenant that keeps it to itself."""

    site: Site
    nodes: list[NodeState]
    gpus: dict[str, GpuState]
    network_functions: dict[str, list[str]]
    drives: list[Slot]
    used: bool = False
    owner: str | None = None

    def admits(self, guest: Guest) -> bool:
        """Whether tenancy allows `guest` here. Guests that keep a host to themselves are placed
        before all others, so they never meet a stranger."""
        return self.owner in (None, guest.workload.tenant)

    def share(self, guest: Guest, node: int) -> tuple[int, int]:
        """Cores and pages for each GPU of `guest`: what it wants, at most its part of the node, at
        least what it can run with."""
        state = self.nodes[node]
        parts = max(1, state.gpus * guest.per_gpu)
        page = self.site.host.hugepage_bytes
        cores, pages = guest.cores, -(-guest.memory_bytes // page)
        if not guest.fixed_cores:
            cores = max(1, min(cores, state.usable_cores // parts))
        if not guest.fixed_memory:
            floor = -(-guest.memory_floor_bytes // page)
            pages = max(floor, min(pages, state.hugepages // parts))
        return cores, pages

    def pages(self, guest: Guest, choice: Choice) -> tuple[int, ...]:
        """Pages of each node of `choice`."""
        return tuple(self.share(guest, n)[1] * choice.gpus_of(n) for n in choice.nodes)

    def shortfalls(self, guest: Guest, choice: Choice) -> tuple[Shortfall, ...]:
        """What the nodes of `choice` lack for `guest`."""
        found: list[Shortfall] = []
        page = self.site.host.hugepage_bytes
        for node in choice.nodes:
            state, gpus = self.nodes[node], choice.gpus_of(node)
            cores, pages = self.share(guest, node)
            if cores * gpus > len(state.cores):
                found.append(_cores(state, node, cores * gpus))
            if pages * gpus > state.free_hugepages:
                found.append(_memory(state, node, pages * gpus, page))
        return tuple(found)

    def take(self, guest: Guest, choice: Choice) -> tuple[tuple[Core, ...], ...]:
        """Give `guest` its GPUs, pages and cores; the cores of each node of `choice`."""
        for pick in choice.picks:
            gpu = self.gpus[pick.slot.device.address]
            gpu.users.append(guest)
            if pick.function is not None and pick.function in gpu.free_functions:
                gpu.free_functions.remove(pick.function)
        self.used = True
        if guest.workload.isolation == "node":
            self.owner = guest.workload.tenant
        taken: list[tuple[Core, ...]] = []
        for node in choice.nodes:
            state, gpus = self.nodes[node], choice.gpus_of(node)
            cores, pages = self.share(guest, node)
            taken.append(tuple(state.cores[: cores * gpus]))
            del state.cores[: cores * gpus]
            state.free_hugepages -= pages * gpus
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


def _memory(state: NodeState, node: int, wanted: int, page: int) -> Shortfall:
    return Shortfall(
        resource=f"memory of node {node}",
        requested=wanted * page,
        used=(state.hugepages - state.free_hugepages) * page,
        capacity=state.hugepages * page,
        unit="B",
    )


def empty(site: Site) -> HostState:
    """A host with nothing on it."""
    gpus = site.of("gpu")
    nodes = [
        NodeState(
            cores=[c for c in n.cores if c not in n.reserved_cores],
            reserved=n.reserved_cores,
            gpus=sum(s.device.numa_node == n.node for s in gpus),
            usable_cores=len(n.cores) - len(n.reserved_cores),
            hugepages=n.hugepages,
            free_hugepages=n.hugepages,
        )
        for n in site.host.numa_nodes
    ]
    return HostState(
        site=site,
        nodes=nodes,
        gpus={s.device.address: GpuState(s, list(s.functions)) for s in gpus},
        network_functions={s.device.address: list(s.functions) for s in site.of("nic")},
        drives=list(site.of("nvme")),
    )
