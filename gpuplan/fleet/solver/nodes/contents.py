"""What a node can hold as a whole, and the sites that have such nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from gpuplan.fleet.solver.classes import Choice, Pool
from gpuplan.fleet.solver.outline.formulate import Load, Model, takes_nodes

NodeSite = tuple[int, str | None, int]  # chassis, owner of the host, kind of node
Slot = tuple[int, int]  # part, start


@dataclass(frozen=True, slots=True)
class Item:
    """`number` items of a class by one choice."""

    kind: int
    choice: Choice
    pool: Pool
    number: int


@dataclass(frozen=True, slots=True)
class Shared:
    """A GPU that is shared: its slots, each of a part and a start."""

    pool: Pool
    geometry: int
    slots: tuple[Slot, ...]


@dataclass(frozen=True)
class Content:
    """Everything on one node of a site; or, of `spans` nodes, one workload that takes them all."""

    site: NodeSite
    items: tuple[Item, ...]
    shared: tuple[Shared, ...] = ()
    spans: int = 1

    @cached_property
    def counts(self) -> dict[int, int]:
        """Items by class."""
        found: dict[int, int] = {}
        for item in self.items:
            found[item.kind] = found.get(item.kind, 0) + item.number
        return found

    @cached_property
    def gpus(self) -> int:
        return len(self.shared) + sum(item.number * item.choice.gpus for item in self.items)

    @cached_property
    def _hash(self) -> int:
        return hash((self.site, self.items, self.shared, self.spans))

    def __hash__(self) -> int:
        return self._hash


@dataclass(slots=True)
class Sites:
    """The loads that each site's nodes may take, and the workloads that fill several nodes."""

    inside: dict[NodeSite, list[Load]] = field(default_factory=dict)
    across: list[Content] = field(default_factory=list)


def sites_of(model: Model) -> Sites:
    """By site, from the aggregated model. Workloads on parts of several nodes are not columns."""
    found = Sites()
    for load in model.loads.values():
        chassis, owner = load.choice.chassis, load.pool[0]
        if not load.choice.whole:
            geometry = model.fleet.geometries[load.choice.geometry]
            if geometry.layouts is not None:
                found.inside.setdefault((chassis, owner, load.node), []).append(load)
            continue
        nodes = [node for node, gpus in enumerate(load.shape) if gpus]
        if not load.spans:
            found.inside.setdefault((chassis, owner, nodes[0]), []).append(load)
        elif len(nodes) == 1:
            kind = model.fleet.chassis[chassis].kinds[nodes[0]]
            number = takes_nodes(kind, load.shape[nodes[0]], spans=True)
            if number:
                item = Item(load.kind.index, load.choice, load.pool, 1)
                found.across.append(Content((chassis, owner, nodes[0]), (item,), spans=number))
    return found
