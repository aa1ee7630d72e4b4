"""Which whole GPUs of a host without an NVSwitch board a guest may have, best first.

An IOMMU group goes to one guest as a whole: its GPUs are one bundle, and its drives come along. A
group with a network card goes to none, since the host keeps the card. Of the sets that are left the
best has its GPUs in the fewest NVLink islands, then on the fewest NUMA nodes, then on the nearest;
then it breaks up the fewest whole islands, and leaves the fewest GPUs on the nodes it uses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from gpuplan.placement.machines.free import GpuState, HostState
from gpuplan.placement.machines.inventory import Slot

Bundle = tuple[GpuState, ...]
Kind = tuple[int, int | None, int]
Rank = tuple[int, int, int, int, int, tuple[tuple[int, int], ...], tuple[str, ...]]


def companions(state: HostState, slot: Slot) -> tuple[Slot, ...]:
    """The other devices of the host in the IOMMU group of `slot`."""
    group = slot.device.iommu_group
    if group is None:
        return ()
    return tuple(s for s in state.site.slots if s.device.iommu_group == group and s is not slot)


def bundles(state: HostState, free: Sequence[GpuState]) -> list[Bundle]:
    """`free` in sets that go to one guest together; a group that is not free whole is left out."""
    by_address = {g.slot.device.address: g for g in free}
    found: dict[str, Bundle] = {}
    for gpu in free:
        others = companions(state, gpu.slot)
        if all(_available(state, other, by_address) for other in others):
            members = [gpu, *(by_address[o.device.address] for o in others if _is_gpu(o))]
            members.sort(key=lambda g: g.slot.device.address)
            found[members[0].slot.device.address] = tuple(members)
    return list(found.values())


def _available(state: HostState, slot: Slot, free: Mapping[str, GpuState]) -> bool:
    if slot.device.kind == "nvme":
        return slot in state.drives
    return _is_gpu(slot) and slot.device.address in free


def _is_gpu(slot: Slot) -> bool:
    return slot.device.kind == "gpu"


def sets(state: HostState, free: Sequence[GpuState], count: int) -> Iterator[Bundle]:
    """Every set of `count` GPUs that differs in its nodes or islands from the others."""
    if len(free) < count:
        return
    alike: dict[tuple[Kind, ...], list[Bundle]] = {}
    for bundle in bundles(state, free):
        alike.setdefault(tuple(_kind(state, g) for g in bundle), []).append(bundle)
    room = Counter(_node(g) for g in free)
    whole = _whole_islands(state, free)
    found = _drawn(list(alike.values()), count)
    yield from sorted(found, key=lambda gpus: _rank(state, gpus, room, whole))


def _kind(state: HostState, gpu: GpuState) -> Kind:
    """GPUs of one kind are as good as each other."""
    return _node(gpu), gpu.slot.island, len(companions(state, gpu.slot))


def _node(gpu: GpuState) -> int:
    return gpu.slot.device.numa_node


def _drawn(alike: Sequence[Sequence[Bundle]], count: int) -> Iterator[Bundle]:
    """Sets of `count` GPUs: of each kind the first bundles, from none to all."""
    if count == 0:
        yield ()
    elif alike:
        taken: Bundle = ()
        for bundle in ((), *alike[0]):
            taken = (*taken, *bundle)
            if len(taken) > count:
                return
            for others in _drawn(alike[1:], count - len(taken)):
                yield (*taken, *others)


def _whole_islands(state: HostState, free: Sequence[GpuState]) -> dict[int, int]:
    """How many GPUs each NVLink island has, of those all of whose GPUs are free."""
    size = Counter(s.island for s in state.site.of("gpu"))
    left = Counter(g.slot.island for g in free)
    return {island: n for island, n in size.items() if island is not None and left[island] == n}


def _rank(
    state: HostState, gpus: Bundle, room: Mapping[int, int], whole: Mapping[int, int]
) -> Rank:
    nodes = Counter(_node(g) for g in gpus)
    islands = Counter(g.slot.island for g in gpus)
    alone = islands.pop(None, 0)
    return (
        len(islands) + alone,
        len(nodes),
        _spread(state, sorted(nodes)),
        sum(islands[island] < count for island, count in whole.items() if islands[island]),
        sum(room[node] for node in nodes),
        tuple((node, -nodes[node]) for node in sorted(nodes)),
        tuple(g.slot.device.address for g in gpus),
    )


def _spread(state: HostState, nodes: Sequence[int]) -> int:
    """Distances between all pairs of `nodes`, 0 where the inventory states none."""
    rows = {n.node: n.distances for n in state.site.host.numa_nodes}
    return sum(rows[a][b] for a, b in combinations(nodes, 2) if b < len(rows[a]))
