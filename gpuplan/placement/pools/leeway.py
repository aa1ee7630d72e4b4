"""Whose pods may take the room of others: pods are bound one by one, in an order that nobody says.

A pod is bound wherever it fits, so that small ones may begin every node of a pool and leave none of
them whole for a large one, though all fit together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from gpuplan.catalog.model import Gpu
from gpuplan.placement.pools.bins import Ask, Capacity, Item, Node, items
from gpuplan.plan.model import record

GPUS, CORES, MEMORY = "GPUs", "cores", "memory"


@record
class Size:
    """What a pod asks for, or a node has, of each resource. `device`: what a pod has of GPUs, whole
    ones or instances of one profile. What nobody knows limits nothing."""

    device: str = GPUS
    amounts: tuple[tuple[str, int], ...]

    def of(self, name: str) -> int:
        return dict(self.amounts).get(name, 0)

    def within(self, place: Size) -> bool:
        has = dict(place.amounts)
        return all(has.get(name, 0) >= amount for name, amount in self.amounts)


def crowding(
    asks: Sequence[Ask], nodes: Sequence[Node], room: Capacity, gpu: Gpu
) -> frozenset[str]:
    """The workloads whose pods may leave another pod of the pool without a node, if they are bound
    where it suits nobody; pods that take all GPUs of a node cannot. `nodes` are those of the pool,
    each of which had `room`. No workload is missing, one or the other may be too many."""
    places = Counter(_node(node, room) for node in nodes)
    known = frozenset(name for place in places for name, _ in place.amounts)
    sizes = {a.workload: _pod(item, known) for a in asks for item in items((a,), gpu)[:1]}
    pods = Counter[Size]()
    for ask in asks:
        pods[sizes[ask.workload]] += ask.replicas * ask.nodes
    several = pods if len(pods) > 1 else ()  # equal pods never mind
    crowds = {other for size in several for other in _in_the_way(size, pods, places)}
    return frozenset(name for name, size in sizes.items() if size in crowds)


def _in_the_way(size: Size, pods: Counter[Size], places: Mapping[Size, int]) -> Iterator[Size]:
    """Of pods, those that may together leave the last one of `size` no node."""
    able = [place for place in places if size.within(place)]
    others = pods - Counter((size,))
    parts = {
        other: max((_taken(other, size, others, p) for p in able if other.within(p)), default=0)
        for other in others
    }
    if sum(parts[o] * n for o, n in others.items()) >= sum(places[place] for place in able):
        for other, part in parts.items():
            beside = (p for p in able if other.within(p))
            if part and any(other.of(GPUS) < p.of(GPUS) for p in beside):
                yield other


def _taken(other: Size, size: Size, others: Mapping[Size, int], place: Size) -> Fraction:
    """The largest part that one pod can have in taking a node like `place` from a pod of `size`."""
    parts = [Fraction(0)]
    for name, asked in size.amounts:
        least = place.of(name) - asked + 1
        if name in (CORES, MEMORY):
            reached = least if least <= _most(name, others, place) else None
        else:
            reached = _reached(name, least, others)
        if reached:
            parts.append(Fraction(other.of(name), reached))
    return min(max(parts), Fraction(1))


def _reached(name: str, least: int, others: Mapping[Size, int]) -> int | None:
    """The smallest number of devices, from `least` on, that pods add up to."""
    amounts = Counter[int]()
    for other, count in others.items():
        amounts[other.of(name)] += count
    most = least + max(amounts)
    sums = 1  # the bit of each number that some of the pods add up to
    for amount, count in amounts.items():
        for _ in range(min(count, most // amount) if amount else 0):
            sums = (sums | sums << amount) & ((2 << most) - 1)
    above = sums >> least
    return least + (above & -above).bit_length() - 1 if above else None


def _most(name: str, others: Mapping[Size, int], place: Size) -> int:
    """The most of a resource that pods on a node like `place` ask for, as far as its devices go."""
    total = 0
    for device in {o.device for o in others}:
        best = [0] * (place.of(device) + 1)  # by the devices that are taken
        for other, count in others.items():
            each = other.of(device) if other.device == device else 0
            for _ in range(min(count, place.of(device) // each) if each else 0):
                for taken in range(len(best) - 1, each - 1, -1):
                    best[taken] = max(best[taken], best[taken - each] + other.of(name))
        total += best[-1]
    return total


def _pod(item: Item, known: frozenset[str]) -> Size:
    device = GPUS if item.profile is None else item.profile.name
    asked = {device: item.gpus, CORES: item.cores, MEMORY: item.memory_bytes}
    amounts = tuple((name, amount) for name, amount in asked.items() if name in known and amount)
    return Size(device=device, amounts=amounts)


def _node(node: Node, room: Capacity) -> Size:
    has: dict[str, int] = {GPUS: room.gpus - len(node.cut)}
    for profile, count in (pair for cut in node.cut for pair in cut):
        has[profile.name] = has.get(profile.name, 0) + count
    if room.cores is not None:
        has[CORES] = room.cores
    if room.memory_bytes is not None:
        has[MEMORY] = room.memory_bytes
    return Size(amounts=tuple(sorted(has.items())))
