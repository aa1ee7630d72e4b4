"""What a node can hold as a whole, and the sites that have such nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from gpuplan.fleet.solver.classes import Choice, Pool
from gpuplan.fleet.solver.outline.formulate import Load, Model, takes_nodes

NodeSite = tuple[int, str | None, int]  # chassis, owner of the host, kind of node
Slot = tuple[int, int | None]  # part, start


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
        by_class: dict[int, int] = {}
        for item in self.items:
            by_class[item.kind] = by_class.get(item.kind, 0) + item.number
        return by_class

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
    """The loads that each site's nodes may take, and the workloads that fill several nodes.
    `whole`: no load is left out, so that every packing is made of contents."""

    inside: dict[NodeSite, list[Load]] = field(default_factory=dict)
    across: list[Content] = field(default_factory=list)
    whole: bool = True

    @property
    def all(self) -> list[NodeSite]:
        return list(dict.fromkeys([*self.inside, *(content.site for content in self.across)]))


def sites_of(model: Model) -> Sites:
    """By site, from the aggregated model. Workloads on parts of several nodes are not columns."""
    sites = Sites()
    for load in model.loads.values():
        site = (load.choice.chassis, load.pool[0], load.node)
        if load.spans:
            _across(model, load, site, sites, sum(map(bool, load.shape)))
        elif not load.choice.whole and model.fleet.geometries[load.choice.geometry].layouts is None:
            sites.whole = False
        else:
            sites.inside.setdefault(site, []).append(load)
    return sites


def _across(model: Model, load: Load, site: NodeSite, sites: Sites, nodes: int) -> None:
    kind = model.fleet.chassis[site[0]].kinds[site[2]]
    number = takes_nodes(kind, load.shape[site[2]], spans=True) if nodes == 1 else 0
    if number:
        item = Item(load.kind.index, load.choice, load.pool, 1)
        sites.across.append(Content(site, (item,), spans=number))
    else:
        sites.whole = False
