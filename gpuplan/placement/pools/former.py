"""Pools over those of the stack that is there: nodes keep their pool, and how they are cut.

A node whose MIG layout changes is drained first, so all who work there are stopped. Where the
inventory has another node, that one takes what is new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace

from gpuplan.placement.pools.bins import Ask, Item, Node, capacity, filled, fitted, items
from gpuplan.placement.pools.cutting import cut_whole, layouts
from gpuplan.placement.pools.packing import Need
from gpuplan.plan.model import GpuLayout, NodeLayout, NodePool, record
from gpuplan.sizing.hardware.offers import GpuOffer

Cut = tuple[GpuLayout, ...]  # of a node; empty where its GPUs are whole


@record
class Chosen:
    """The need of a pool with its nodes' names and cuts; those that are `kept` stay cut as they
    are, although fewer nodes or other cuts would do."""

    need: Need
    names: tuple[str, ...]
    layouts: tuple[NodeLayout, ...]
    kept: tuple[str, ...] = ()


class Names:
    """The names of an inventory's nodes, by the offer's place, that no pool has yet."""

    def __init__(self, offers: Sequence[GpuOffer], former: Iterable[NodePool]) -> None:
        self._left = {place: list(offer.node_names) for place, offer in enumerate(offers)}
        self._former = {p.name: p for p in former if p.node_names}

    def take(
        self, pool: str, need: Need, count: int, others: Iterable[str], first: Container[str] = ()
    ) -> tuple[str, ...]:
        """`count` names for `pool`: the `first`; its own of before, those that are cut before
        others; then such as none of the `others` had; in the order of the inventory."""
        place = need.place
        left = self._left[place]
        own = self._of(pool)
        cut = {n for n, gpus in cuts(own).items() if gpus} if own else set()
        foreign = {n for p in others if p != pool and (f := self._of(p)) for n in f.node_names}
        mine = set(own.node_names) if own else set()

        def rank(name: str) -> tuple[bool, ...]:
            return name not in first, name not in mine, name not in cut, name in foreign

        chosen = set(sorted(left, key=rank)[:count])
        names = tuple(n for n in left if n in chosen)
        self._left[place] = [n for n in left if n not in chosen]
        return names

    def _of(self, pool: str) -> NodePool | None:
        return self._former.get(pool)

    def choose(
        self, pool: str, asks: Sequence[Ask], need: Need, spare: int, others: Iterable[str]
    ) -> Chosen:
        """Names and cuts for the nodes of `need`. Where some that are there would be cut anew or
        given up, they stay as they are if somebody uses them and that takes no more than `spare`
        further nodes."""
        former, place = self._of(pool), need.place
        alike: list[str] = []
        if former and former.gpu == need.offer.gpu.identifier:
            left = self._left[place]
            cut_nodes = {n: gpus for n, gpus in cuts(former).items() if gpus and n in left}
            alike = _alike(need, cut_nodes)
            more = _beside(asks, need, cut_nodes) if len(alike) < len(cut_nodes) else None
            room = need.nodes + spare - len(cut_nodes) - need.spares
            if more is not None and len(more) <= room:
                self._left[place] = [n for n in left if n not in cut_nodes]
                names = self.take(pool, need, len(more), others)
                idle = self.take(pool, need, need.spares, others)
                of_all = cut_nodes | _by_name(layouts(more, names, need.offer))
                of_all |= {n: () for n in names if n not in of_all}
                ordered = {n: of_all[n] for n in need.offer.node_names if n in of_all}
                chosen = _as_they_are(asks, need, ordered, tuple(cut_nodes), idle)
                if chosen is not None:
                    return chosen
                self._left[place] = left
        names = self.take(pool, need, need.nodes, others, alike)
        need = replace(need, filled=cut_whole(need.filled, need.offer))
        return Chosen(need=need, names=names, layouts=layouts(need.filled, names, need.offer))


def _alike(need: Need, cut_nodes: Mapping[str, Cut]) -> list[str]:
    """Those of the nodes of `cut_nodes` that the need cuts as they are."""
    now = Counter(i.gpus for i in layouts(need.filled, (), need.offer) for _ in range(i.node_count))
    names = []
    for name, gpus in cut_nodes.items():
        if now[gpus]:
            now[gpus] -= 1
            names.append(name)
    return names


def _beside(asks: Sequence[Ask], need: Need, cut_nodes: dict[str, Cut]) -> list[Node] | None:
    """The further nodes that are taken where `cut_nodes` stay as they are cut; None
    where they serve nothing. Those whose instances nobody takes are left out of `cut_nodes`."""
    while cut_nodes:
        nodes = {name: _as_cut(gpus, need.offer) for name, gpus in cut_nodes.items()}
        rest = fitted(_items(asks, need), list(nodes.values()))
        idle = [
            n for n, node in nodes.items() if node.slots == _as_cut(cut_nodes[n], need.offer).slots
        ]
        if not idle:
            return filled(rest, capacity(need.offer, 1))
        for name in idle:
            del cut_nodes[name]
    return None


def _as_they_are(
    asks: Sequence[Ask],
    need: Need,
    ordered: Mapping[str, Cut],
    kept: tuple[str, ...],
    idle: Container[str],
) -> Chosen | None:
    """Everything put on nodes that are cut already, beside those that stand `idle`; None where that
    leaves something over, or one of those `kept` to nobody."""
    nodes = [_as_cut(gpus, need.offer) for gpus in ordered.values()]
    if fitted(_items(asks, need), nodes):
        return None
    used = {name for name, node in zip(ordered, nodes, strict=True) if node.replicas}
    if not used.issuperset(kept):
        return None
    alike: dict[Cut, list[str]] = {}
    for name, gpus in ordered.items():
        if gpus:
            alike.setdefault(gpus, []).append(name)
    names = tuple(n for n in need.offer.node_names if n in ordered or n in idle)
    return Chosen(
        need=replace(need, nodes=len(names), filled=tuple(nodes)),
        names=names,
        layouts=tuple(
            NodeLayout(node_count=len(own), node_names=tuple(own), gpus=gpus)
            for gpus, own in alike.items()
        ),
        kept=tuple(n for n in ordered if n in kept),
    )


def _items(asks: Sequence[Ask], need: Need) -> list[Item]:
    return [i for i in items(asks, need.offer.gpu) if i.workload not in need.refused]


def _by_name(nodes: Iterable[NodeLayout]) -> dict[str, Cut]:
    return {name: item.gpus for item in nodes for name in item.node_names}


def cuts(pool: NodePool) -> dict[str, Cut]:
    """How the GPUs of each node are cut, in the pool's order."""
    own = _by_name(pool.layouts)
    return {name: own.get(name, ()) for name in pool.node_names}


def _as_cut(gpus: Cut, offer: GpuOffer) -> Node:
    """A node that nobody uses, cut so."""
    profiles = {p.name: p for p in offer.gpu.mig_profiles}
    node = Node(offer.gpus_per_node, offer.cpu_cores_per_node, offer.memory_bytes_per_node)
    for layout in gpus:
        for _ in layout.gpus:
            node.gpus -= 1
            node.cut.append(tuple((profiles[name], n) for name, n in layout.counts.items()))
            node.slots.update(layout.counts)
    return node
