"""Replicas on equal nodes, first fit decreasing: how many nodes a pool needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from gpuplan.plan.model import Shortfall, record
from gpuplan.sizing.api import GpuOffer


@record
class Ask:
    """What one workload asks of its pool: `replicas` of `nodes` parts, each of `gpus` devices with
    their cores and memory."""

    workload: str
    pool: str
    gpu: str
    partition: str | None
    replicas: int
    nodes: int
    gpus: int
    cores: int
    memory_bytes: int


@record
class Item:
    """One node's part of one replica. Parts of one replica stand on different nodes."""

    workload: str
    replica: int
    part: int
    gpus: int
    cores: int
    memory_bytes: int


@record
class Capacity:
    """Of one node; None is unknown and limits nothing."""

    gpus: int
    cores: int | None
    memory_bytes: int | None


@dataclass(slots=True)
class _Node:
    gpus: int
    cores: int | None
    memory_bytes: int | None
    replicas: set[tuple[str, int]] = field(default_factory=set)

    def holds(self, item: Item) -> bool:
        return (
            item.gpus <= self.gpus
            and (self.cores is None or item.cores <= self.cores)
            and (self.memory_bytes is None or item.memory_bytes <= self.memory_bytes)
        )

    def admits(self, item: Item) -> bool:
        return self.holds(item) and (item.workload, item.replica) not in self.replicas

    def take(self, item: Item) -> None:
        self.gpus -= item.gpus
        self.cores = None if self.cores is None else self.cores - item.cores
        if self.memory_bytes is not None:
            self.memory_bytes -= item.memory_bytes
        self.replicas.add((item.workload, item.replica))


def items(asks: Iterable[Ask]) -> list[Item]:
    """Every node's part of every replica, the biggest first."""
    found = [
        Item(
            workload=a.workload,
            replica=replica,
            part=part,
            gpus=a.gpus,
            cores=a.cores,
            memory_bytes=a.memory_bytes,
        )
        for a in asks
        for replica in range(a.replicas)
        for part in range(a.nodes)
    ]
    return sorted(
        found, key=lambda i: (-i.gpus, -i.cores, -i.memory_bytes, i.workload, i.replica, i.part)
    )


def capacity(offer: GpuOffer, per_gpu: int) -> Capacity:
    """Of one node of `offer` whose GPUs are cut into `per_gpu` parts."""
    return Capacity(
        gpus=offer.gpus_per_node * per_gpu,
        cores=offer.cpu_cores_per_node,
        memory_bytes=offer.memory_bytes_per_node,
    )


def nodes_needed(wanted: Sequence[Item], room: Capacity) -> int:
    """Nodes of `room` for all of `wanted`, each of which fits an empty node."""
    nodes: list[_Node] = []
    size: tuple[int, int, int] | None = None
    first = 0  # the first node that may hold another item of this size
    for item in wanted:
        if size != (size := (item.gpus, item.cores, item.memory_bytes)):
            first = 0
        while first < len(nodes) and not nodes[first].holds(item):
            first += 1
        node = next((n for n in islice(nodes, first, None) if n.admits(item)), None)
        if node is None:
            node = _Node(room.gpus, room.cores, room.memory_bytes)
            nodes.append(node)
        node.take(item)
    return len(nodes)


def beyond(item: Item, room: Capacity, gpu: str) -> tuple[Shortfall, ...]:
    """What one item asks that an empty node does not have."""
    asked: tuple[tuple[str, int, int | None, str], ...] = (
        (f"{gpu} of one node", item.gpus, room.gpus, "1"),
        ("cores of one node", item.cores, room.cores, "1"),
        ("memory of one node", item.memory_bytes, room.memory_bytes, "B"),
    )
    return tuple(
        Shortfall(resource=resource, requested=need, used=0, capacity=have, unit=unit)
        for resource, need, have, unit in asked
        if have is not None and need > have
    )
