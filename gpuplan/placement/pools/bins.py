"""Replicas on equal nodes, first fit decreasing: the nodes that a pool needs, and how their GPUs
are cut.

Whole GPUs and MIG instances share nodes; a GPU that is cut is one that nobody has whole. Layouts
come from `cover`, which holds all instances on the fewest GPUs; where a node lacks cores or memory
for all that its GPUs could hold, further GPUs are cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from gpuplan.catalog.model import Gpu, MigProfile
from gpuplan.plan import window
from gpuplan.plan.model import Shortfall, record
from gpuplan.plan.partitions import PartitionName
from gpuplan.sharing.covering import cover
from gpuplan.sharing.mig import ProfileCounts
from gpuplan.sizing.candidates.resources import localities_of
from gpuplan.sizing.hardware.offers import GpuOffer


@record
class Ask:
    """What one workload asks of its pool: `replicas` of `nodes` parts, each of `gpus` devices with
    their cores and memory. `kind` is the pool's name where every tenant has it; `hours` is how long
    a run takes, of what `recurs` in a month, None: it stays. `spares` are nodes that stand by."""

    workload: str
    pool: str
    kind: str
    gpu: str
    partition: PartitionName | None
    replicas: int
    nodes: int
    gpus: int
    cores: int
    memory_bytes: int
    hours: Decimal | None = None
    recurs: bool = False
    spares: int = 0


@record
class Item:
    """One node's part of one replica: `gpus` whole GPUs, or as many instances of `profile`. Parts
    of one replica stand on different nodes."""

    workload: str
    replica: int
    part: int
    gpus: int
    cores: int
    memory_bytes: int
    profile: MigProfile | None = None

    @property
    def order(self) -> tuple[object, ...]:
        """The biggest first: whole GPUs before instances."""
        slices = (self.profile.memory_slices, self.profile.name) if self.profile else (0, "")
        sizes = (-self.gpus, -self.cores, -self.memory_bytes)
        return (
            self.profile is not None,
            -slices[0],
            slices[1],
            *sizes,
            self.workload,
            self.replica,
            self.part,
        )


@record
class Capacity:
    """Of one node; None is unknown and limits nothing."""

    gpus: int
    cores: int | None
    memory_bytes: int | None


@dataclass(slots=True)
class Node:
    """What is left of a node. `cut` are its GPUs' layouts, instances by profile; `slots` counts
    those of them that are free."""

    gpus: int
    cores: int | None
    memory_bytes: int | None
    replicas: set[tuple[str, int]] = field(default_factory=set)
    cut: list[ProfileCounts] = field(default_factory=list)
    slots: Counter[PartitionName] = field(default_factory=Counter)

    def admits(self, item: Item) -> bool:
        """Whether there are cores, memory and no other part of the replica; GPUs are not looked
        at."""
        return (
            (self.cores is None or item.cores <= self.cores)
            and (self.memory_bytes is None or item.memory_bytes <= self.memory_bytes)
            and (item.workload, item.replica) not in self.replicas
        )

    def take(self, item: Item) -> None:
        if item.profile is None:
            self.gpus -= item.gpus
        else:
            self.slots[item.profile.name] -= item.gpus
        self.cores = None if self.cores is None else self.cores - item.cores
        if self.memory_bytes is not None:
            self.memory_bytes -= item.memory_bytes
        self.replicas.add((item.workload, item.replica))


def items(asks: Iterable[Ask], gpu: Gpu) -> list[Item]:
    """Every node's part of every replica, the biggest first. Instances are of `gpu`'s profiles; a
    vGPU is one of the equal parts that the nodes are counted in."""
    profiles = {p.name: p for p in gpu.mig_profiles}
    parts = [
        Item(
            workload=a.workload,
            replica=replica,
            part=part,
            gpus=a.gpus,
            cores=a.cores,
            memory_bytes=a.memory_bytes,
            profile=profiles.get(a.partition) if a.partition else None,
        )
        for a in asks
        for replica in range(a.replicas)
        for part in range(a.nodes)
    ]
    return sorted(parts, key=lambda i: i.order)


def capacity(offer: GpuOffer, per_gpu: int) -> Capacity:
    """Of one node of `offer`. `per_gpu`: into how many equal parts every GPU is cut. A cluster's
    node keeps cores and memory for the system, the kubelet and other pods; a core for each GPU is
    left in any case. What a hypervisor keeps is counted where its guests get their places."""
    cores, memory = offer.cpu_cores_per_node, offer.memory_bytes_per_node
    node = localities_of(offer)[0]
    if not node.guests:
        cores = cores and max(node.free_cores, min(cores, offer.gpus_per_node))
        memory = memory and node.free_pages * window.PAGE_BYTES
    return Capacity(gpus=offer.gpus_per_node * per_gpu, cores=cores, memory_bytes=memory)


def filled(wanted: Sequence[Item], room: Capacity) -> list[Node]:
    """Nodes of `room` for all of `wanted`, each of which fits an empty node."""
    nodes: list[Node] = []
    layouts = _layouts(wanted)
    size: tuple[object, ...] = ()
    first = 0  # the first node that may hold another item of this size
    for item in wanted:
        kind = (item.profile, item.gpus, item.cores, item.memory_bytes)
        if size != (size := kind):
            first = 0
        while first < len(nodes) and not _holds(nodes[first], item):
            first += 1
        _place(item, nodes, first, room, layouts)
    return nodes


def fitted(wanted: Iterable[Item], nodes: Sequence[Node]) -> list[Item]:
    """What does not find a place on `nodes` as they are cut; the rest is put there."""
    left = []
    for item in wanted:
        node = next((n for n in nodes if n.admits(item) and _has(n, item)), None)
        if node is None:
            left.append(item)
        else:
            node.take(item)
    return left


def _place(
    item: Item, nodes: list[Node], first: int, room: Capacity, layouts: list[ProfileCounts]
) -> None:
    """On the first node from `first` on that holds it; where instances are used up, one more GPU is
    cut; a new node where there is no other."""
    able = [n for n in nodes[first:] if n.admits(item)]
    node = next((n for n in able if _has(n, item)), None)
    if node is None:
        node = next((n for n in able if _holds(n, item)), None)
    if node is None:
        node = Node(room.gpus, room.cores, room.memory_bytes)
        nodes.append(node)
    while not _has(node, item):
        _cut(node, item, layouts)
    node.take(item)


def _has(node: Node, item: Item) -> bool:
    """Whether GPUs or instances are free as they are."""
    free = node.gpus if item.profile is None else node.slots[item.profile.name]
    return item.gpus <= free


def _holds(node: Node, item: Item) -> bool:
    """As `_has`, with more GPUs cut where the item wants instances; with cores and memory."""
    fits = (node.cores is None or item.cores <= node.cores) and (
        node.memory_bytes is None or item.memory_bytes <= node.memory_bytes
    )
    if item.profile is None or not fits:
        return fits and item.gpus <= node.gpus
    return item.gpus <= node.slots[item.profile.name] + node.gpus * item.profile.maximum


def more(nodes: Sequence[Node], ask: Ask, gpu: Gpu) -> int:
    """Further replicas of a workload that the nodes hold as they are filled; each part of one on a
    node of its own."""
    item = items((replace(ask, replicas=1, nodes=1),), gpu)[0]
    parts = [_times(node, item) for node in nodes]
    return sum(parts) if ask.nodes == 1 else sum(map(bool, parts)) // ask.nodes


def _times(node: Node, item: Item) -> int:
    devices = node.gpus
    if item.profile is not None:
        devices = node.slots[item.profile.name] + node.gpus * item.profile.maximum
    sizes = (
        (devices, item.gpus),
        (node.cores, item.cores),
        (node.memory_bytes, item.memory_bytes),
    )
    return min(free // size for free, size in sizes if free is not None and size)


def _layouts(wanted: Sequence[Item]) -> list[ProfileCounts]:
    profiles = {i.profile.name: i.profile for i in wanted if i.profile}
    needed: Counter[PartitionName] = Counter()
    for item in wanted:
        if item.profile is not None:
            needed[item.profile.name] += item.gpus
    return cover(tuple((profile, needed[name]) for name, profile in profiles.items()))


def _cut(node: Node, item: Item, layouts: list[ProfileCounts]) -> None:
    """One more GPU, as the next of `layouts` that has the item's profile says; full of it where
    none is left."""
    assert item.profile is not None
    name, chosen = item.profile.name, None
    if item.gpus == 1:
        having = (n for n, cut in enumerate(layouts) if any(p.name == name for p, _ in cut))
        chosen = next(having, None)
    cut = ((item.profile, item.profile.maximum),) if chosen is None else layouts.pop(chosen)
    node.gpus -= 1
    node.cut.append(cut)
    for profile, number in cut:
        node.slots[profile.name] += number


def beyond(item: Item, room: Capacity, gpu: str) -> tuple[Shortfall, ...]:
    """What one item asks that an empty node does not have."""
    devices = room.gpus * (item.profile.maximum if item.profile else 1)
    asked: tuple[tuple[str, int, int | None, str], ...] = (
        (f"{item.profile.name if item.profile else gpu} of one node", item.gpus, devices, "1"),
        ("cores of one node", item.cores, room.cores, "1"),
        ("memory of one node", item.memory_bytes, room.memory_bytes, "B"),
    )
    return tuple(
        Shortfall(resource=resource, requested=need, used=0, capacity=have, unit=unit)
        for resource, need, have, unit in asked
        if have is not None and need > have
    )
