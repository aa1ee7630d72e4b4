"""Which whole GPUs of a host without an NVSwitch board a guest may have, best first.

An IOMMU group goes to one guest as a whole: its GPUs are one bundle, and its drives and other
functions come along. A group with a device that the host keeps goes to none. Of the sets that are
left the best has the most pairs that NVLink joins, then the fewest NUMA nodes, then the nearest;
then it breaks up the fewest whole islands, and leaves the fewest GPUs on the nodes it uses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from gpuplan.placement.machines.hypervisors import HostDevice
from gpuplan.placement.machines.state import GpuState, HostState
from gpuplan.sharing.groups import group
from gpuplan.sharing.islands import joined_pairs

Bundle = tuple[GpuState, ...]
Likeness = tuple[int, frozenset[int], int]  # node, the GPUs it is joined to, companions
Rank = tuple[int, int, int, int, int, tuple[tuple[int, int], ...], tuple[str, ...]]


def companions(state: HostState, device: HostDevice) -> tuple[HostDevice, ...]:
    """The other devices of the host that go where `device` does."""
    own, every = group(device.device), state.hypervisor.devices
    return tuple(d for d in every if d is not device and group(d.device) == own)


def bundles(state: HostState, free: Sequence[GpuState]) -> list[Bundle]:
    """`free` in sets that go to one guest together; a group that is not free whole is left out."""
    by_address = {g.address: g for g in free}
    by_first: dict[str, Bundle] = {}
    for gpu in free:
        others = companions(state, gpu.gpu)
        if all(_available(state, other, by_address) for other in others):
            members = [gpu, *(by_address[o.address] for o in others if _is_gpu(o))]
            members.sort(key=lambda g: g.address)
            by_first[members[0].address] = tuple(members)
    return list(by_first.values())


def _available(state: HostState, device: HostDevice, free: Mapping[str, GpuState]) -> bool:
    if device.device.kind == "nvme":
        return device in state.drives
    if device.device.kind == "function":
        return device.free
    return _is_gpu(device) and device.address in free


def _is_gpu(device: HostDevice) -> bool:
    return device.device.kind == "gpu"


def sets(state: HostState, free: Sequence[GpuState], count: int) -> Iterator[Bundle]:
    """Every set of `count` GPUs that differs in its nodes or links from the others."""
    if len(free) < count:
        return
    alike: dict[tuple[Likeness, ...], list[Bundle]] = {}
    for bundle in bundles(state, free):
        alike.setdefault(tuple(_likeness(state, g) for g in bundle), []).append(bundle)
    room = Counter(g.node for g in free)
    whole = _whole_islands(free)
    drawn = _drawn(list(alike.values()), count)
    yield from sorted(drawn, key=lambda gpus: _rank(state, gpus, room, whole))


def _likeness(state: HostState, gpu: GpuState) -> Likeness:
    """GPUs that are alike in it are as good as each other."""
    return gpu.node, gpu.gpu.joined, len(companions(state, gpu.gpu))


def _drawn(alike: Sequence[Sequence[Bundle]], count: int) -> Iterator[Bundle]:
    """Sets of `count` GPUs: of those that are alike the first bundles, from none to all."""
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


def _whole_islands(free: Sequence[GpuState]) -> list[frozenset[int]]:
    """The GPUs that NVLink joins, where all of them are free."""
    numbers = {g.gpu.number for g in free}
    islands = dict.fromkeys(g.gpu.joined for g in free if g.gpu.joined)
    return [island for island in islands if island <= numbers]


def _rank(
    state: HostState, gpus: Bundle, room: Mapping[int, int], whole: Sequence[frozenset[int]]
) -> Rank:
    nodes = Counter(g.node for g in gpus)
    numbers = [g.gpu.number for g in gpus]
    links = {g.gpu.number: g.gpu.joined for g in gpus}
    return (
        -joined_pairs(numbers, links),
        len(nodes),
        _spread(state, sorted(nodes)),
        sum(0 < len(island.intersection(numbers)) < len(island) for island in whole),
        sum(room[node] for node in nodes),
        tuple((node, -nodes[node]) for node in sorted(nodes)),
        tuple(g.address for g in gpus),
    )


def _spread(state: HostState, nodes: Sequence[int]) -> int:
    """Distances between all pairs of `nodes`, 0 where the inventory states none."""
    rows = {n.node: n.distances for n in state.hypervisor.host.numa_nodes}
    return sum(rows[a][b] for a, b in combinations(nodes, 2) if rows[a])
