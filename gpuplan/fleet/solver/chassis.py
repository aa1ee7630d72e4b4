"""Host types as the packer sees them: GPUs as bits, nodes of one kind, and the sets of GPUs that a
workload on several may take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from gpuplan.fleet.divisions import divisions, exactly, ways
from gpuplan.fleet.problem import HostType
from gpuplan.fleet.solver.effort import MOST_SHARES, MOST_SPANS

Amounts = tuple[int, int, int]  # cores, bytes of memory, virtual functions


@dataclass(frozen=True, slots=True)
class NodeKind:
    """Nodes of a host type that are alike: `count` on a host; `most[k]` workloads on k GPUs fit
    one."""

    gpus: int
    room: Amounts
    count: int
    most: tuple[int, ...]


def _bits(numbers: tuple[int, ...], index: dict[int, int]) -> int:
    return sum(1 << index[n] for n in numbers if n in index)


class Chassis:
    """One host type. GPU `i` here is the i-th of the nodes' GPUs; `numbers[i]` is its number, and
    `mask` has them all, `whole` those that a workload on whole GPUs may have."""

    def __init__(self, index: int, host: HostType) -> None:
        self.index, self.host = index, host
        self.cost, self.available = host.cost, host.available
        self.numbers = tuple(n for node in host.nodes for n in node.gpus)
        position = {n: i for i, n in enumerate(self.numbers)}
        self.masks = tuple(_bits(node.gpus, position) for node in host.nodes)
        self.gpus, self.mask = len(self.numbers), sum(self.masks)
        self.node_of = tuple(j for j, node in enumerate(host.nodes) for _ in node.gpus)
        self.room: tuple[Amounts, ...] = tuple(
            (node.cores, node.memory_bytes, sum(card.functions for card in node.cards))
            for node in host.nodes
        )
        self.everything = tuple(sum(each) for each in zip(*self.room, strict=True))
        self.islands = tuple(_bits(island, position) for island in host.islands)
        self.whole = self.mask & ~_bits(host.unpassed, position)
        groups = [_bits(group, position) for group in host.together]
        alone = self.whole & ~sum(groups)
        singles = (1 << i for i in range(self.gpus) if alone >> i & 1)
        self.atoms = tuple(sorted([*groups, *singles]))
        self._picked: dict[tuple[int, int], int] = {}
        self._singles: dict[int, int] = {}
        self._spanned: dict[tuple[int, int], tuple[int, ...]] = {}
        self._within: dict[int, bool] = {}
        self._parts: dict[int, tuple[tuple[int, int], ...]] = {}
        self.kind_of: tuple[int, ...] = ()
        self.kinds: tuple[NodeKind, ...] = ()
        self._sort_nodes()

    def _sort_nodes(self) -> None:
        keys = [self._key(j) for j in range(len(self.masks))]
        order = sorted(dict.fromkeys(keys))
        self.kind_of = tuple(order.index(key) for key in keys)
        self.kinds = tuple(
            NodeKind(gpus=gpus, room=room, count=keys.count((gpus, room, most)), most=most)
            for gpus, room, most in order
        )

    def _key(self, j: int) -> tuple[int, Amounts, tuple[int, ...]]:
        width = self.masks[j].bit_count()
        most = (width, *(self._most(j, k) for k in range(1, width + 1)))
        return width, self.room[j], most

    def _most(self, j: int, k: int) -> int:
        """At most so many workloads on k GPUs stand on node j at once."""
        free = self.masks[j] & self.whole
        if self.islands and k > 1:
            sets = [m for m in self.islands if m.bit_count() == k and m & free == m]
            return min(free.bit_count() // k, len(sets))
        return free.bit_count() // k if self.pick(free, k) else 0

    def damage(self, taken: int, free: int) -> int:
        """How many sets of GPUs that were free as a whole are not any more."""
        whole = (m for m in (*self.islands, *self.atoms) if m & free == m and m.bit_count() > 1)
        return sum(1 for m in whole if m & taken)

    def single(self, free: int) -> int:
        """The GPU of `free` to share; it may be one of an IOMMU group."""
        if free not in self._singles:
            ones = [1 << i for i in range(self.gpus) if free >> i & 1]
            self._singles[free] = self._best(ones, free)
        return self._singles[free]

    def pick(self, free: int, k: int) -> int:
        """`k` of a node's free GPUs for one workload, as bits, or 0."""
        key = (free, k)
        if key not in self._picked:
            self._picked[key] = self._pick(free, k)
        return self._picked[key]

    def _pick(self, free: int, k: int) -> int:
        if self.islands and k > 1:
            fit = [m for m in self.islands if m.bit_count() == k and m & free == m]
            return self._best([m for m in fit if self._closed(m)], free)
        atoms = [a for a in self.atoms if a & free == a]
        if k == 1:
            return self._best([a for a in atoms if a.bit_count() == 1], free)
        return exactly(sorted(atoms, key=lambda a: (-a.bit_count(), a)), k)

    def _best(self, sets: list[int], free: int) -> int:
        return min(sets, key=lambda m: (self.damage(m, free), m), default=0)

    def _closed(self, mask: int) -> bool:
        return not mask & ~self.whole and all(a & mask in {0, a} for a in self.atoms)

    def within_node(self, k: int) -> bool:
        """Whether a workload on k GPUs stands on one node of this host type, if on any."""
        known = self._within.get(k)
        if known is None:
            known = self._within[k] = self._fits_node(k)
        return known

    def _fits_node(self, k: int) -> bool:
        if self.islands and k > 1:
            return any(m.bit_count() == k and self._in_node(m) for m in self.islands)
        return any((mask & self.whole).bit_count() >= k for mask in self.masks)

    def _in_node(self, mask: int) -> bool:
        return any(mask & node == mask for node in self.masks)

    def spans(self, free: int, k: int) -> tuple[int, ...]:
        """Sets of k free GPUs on several nodes, those on few nodes first; none where a node has
        room for k at all."""
        key = (free, k)
        if key not in self._spanned:
            self._spanned[key] = tuple(self._spans(free, k)[:MOST_SPANS])
        return self._spanned[key]

    def _spans(self, free: int, k: int) -> list[int]:
        if self.islands and k > 1:
            fit = [m for m in self.islands if m.bit_count() == k and m & free == m]
            return [m for m in fit if self._closed(m) and not self._in_node(m)]
        if self.within_node(k):
            return []
        free &= self.whole
        shares_of = divisions([(free & node).bit_count() for node in self.masks], k)
        spans = [self._cut(free, shares) for shares in self._first(shares_of)]
        return sorted({m for m in spans if m and self._closed(m)}, key=self._spread)

    def _spread(self, mask: int) -> tuple[int, int]:
        return sum(1 for node in self.masks if node & mask), mask

    def _first(self, every: Iterator[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
        """Enough to choose from; all, where groups may forbid those on few nodes."""
        return islice(every, MOST_SHARES) if self._alike() else every

    def _cut(self, free: int, shares: tuple[int, ...]) -> int:
        """The first free GPUs of each node; whole groups where groups there are."""
        mask = 0
        for node, share in zip(self.masks, shares, strict=True):
            if not share:
                continue
            atoms = [a & node for a in self.atoms if a & node & free == a & node and a & node]
            mask |= exactly(sorted(atoms, key=lambda a: (-a.bit_count(), a)), share)
        return mask if mask.bit_count() == sum(shares) else 0

    def shapes(self, k: int) -> tuple[tuple[tuple[int, ...], bool], ...]:
        """The numbers of GPUs on each kind of node that a workload on k GPUs may take, and whether
        they are on several nodes."""
        width = range(len(self.kinds))
        fit = sorted({self.kind_of[j] for j, mask in enumerate(self.masks) if self.pick(mask, k)})
        inside = [(tuple(k if i == kind else 0 for i in width), False) for kind in fit]
        if k == 1 or (self.within_node(k) and not self.islands):
            return tuple(inside)
        across = sorted(set(self._across(k)))
        return (*inside, *((shape, True) for shape in across))

    def _across(self, k: int) -> Iterable[tuple[int, ...]]:
        """The shapes of sets on several nodes."""
        if self._alike():
            rooms = [kind.gpus * kind.count for kind in self.kinds]
            return divisions(rooms, k)
        return [self._shape(mask) for mask in self._spans(self.mask, k)]

    def _alike(self) -> bool:
        """Whether the GPUs of a kind of node are told apart by nothing."""
        return not self.islands and len(self.atoms) == self.gpus

    def ways(self, k: int) -> int:
        """How many divisions of k GPUs between nodes have to be looked at; 1 within a node."""
        if self.islands or self.within_node(k):
            return 1
        if self._alike():
            return ways([kind.gpus * kind.count for kind in self.kinds], k)
        return ways([(mask & self.whole).bit_count() for mask in self.masks], k)

    def _shape(self, mask: int) -> tuple[int, ...]:
        counts = [0] * len(self.kinds)
        for j, kind in enumerate(self.kind_of):
            counts[kind] += self._on(mask, j)
        return tuple(counts)

    def allows(self, mask: int) -> bool:
        """Whether one workload may take just these GPUs."""
        k = mask.bit_count()
        if not self._closed(mask):
            return False
        if self.islands and k > 1:
            return mask in self.islands
        return self._in_node(mask) or not self.within_node(k)

    def _on(self, mask: int, j: int) -> int:
        return (mask & self.masks[j]).bit_count()

    def parts_of(self, mask: int) -> tuple[tuple[int, int], ...]:
        """(node, GPUs of `mask` on it)."""
        known = self._parts.get(mask)
        if known is None:
            pairs = ((j, self._on(mask, j)) for j in range(len(self.masks)))
            known = self._parts[mask] = tuple((j, n) for j, n in pairs if n)
        return known
