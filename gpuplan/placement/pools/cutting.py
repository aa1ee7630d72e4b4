"""How the nodes of a pool are cut, from what was put on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpuplan.catalog.model import Gpu, MigProfile, VgpuType
from gpuplan.placement.pools.bins import Node
from gpuplan.plan.model import GpuLayout, NodeLayout, Partition
from gpuplan.plan.partitions import PartitionName
from gpuplan.sharing.mig import ProfileCounts, completed, instances
from gpuplan.sharing.partitions import in_pool
from gpuplan.sizing.hardware.offers import GpuOffer


def layouts(nodes: Sequence[Node], names: Sequence[str], offer: GpuOffer) -> tuple[NodeLayout, ...]:
    """Nodes that are cut alike together, in the order of the nodes. `names` are theirs, or those of
    the first ones where further nodes are lacking, or none.
    The last GPUs of a node are cut, so that the first stay whole side by side."""
    used = {profile.name for node in nodes for cut in node.cut for profile, _ in cut}
    profiles = [p for p in offer.gpu.mig_profiles if p.name in used]
    alike: dict[tuple[GpuLayout, ...], list[int]] = {}
    for number, node in enumerate(nodes):
        if node.cut:
            gpus = _gpus(node, offer.gpus_per_node, profiles)
            alike.setdefault(gpus, []).append(number)
    return tuple(
        NodeLayout(
            node_count=len(numbers),
            node_names=tuple(names[n] for n in numbers if n < len(names)),
            gpus=gpus,
        )
        for gpus, numbers in alike.items()
    )


def cut_whole(nodes: Sequence[Node], offer: GpuOffer) -> tuple[Node, ...]:
    """The nodes with each GPU that is cut as full of instances as `layouts` cuts it: those that
    nobody took are free."""
    used = {profile.name for node in nodes for cut in node.cut for profile, _ in cut}
    profiles = [p for p in offer.gpu.mig_profiles if p.name in used]
    return tuple(_cut_whole(node, profiles) if node.cut else node for node in nodes)


def _cut_whole(node: Node, profiles: Sequence[MigProfile]) -> Node:
    cut = [completed(gpu, profiles) for gpu in node.cut]
    slots = Counter(node.slots)
    for gpus, sign in ((cut, 1), (node.cut, -1)):
        for profile, number in (pair for gpu in gpus for pair in gpu):
            slots[profile.name] += sign * number
    return replace(node, cut=cut, slots=slots)


def _gpus(node: Node, count: int, profiles: Sequence[MigProfile]) -> tuple[GpuLayout, ...]:
    kinds = Counter(completed(cut, profiles) for cut in node.cut)
    alike, first = [], count - len(node.cut)
    for cut, gpus in sorted(kinds.items(), key=lambda pair: (-pair[1], _names(pair[0]))):
        numbers = tuple(range(first, first + gpus))
        alike.append(GpuLayout(gpus=numbers, instances=instances(cut)))
        first += gpus
    return tuple(alike)


def _names(cut: ProfileCounts) -> list[tuple[PartitionName, int]]:
    return [(profile.name, number) for profile, number in cut]


def partitions(
    gpu: Gpu, vgpu: VgpuType | None, gpus: int, nodes: Sequence[NodeLayout]
) -> tuple[Partition, ...]:
    """What the pool's workloads can ask for beside whole GPUs: parts of all its `gpus` where they
    are vGPUs, else the instances of its nodes."""
    if vgpu is not None:
        return (in_pool(vgpu, gpus * vgpu.maximum),)
    counts = _instances(nodes)
    return tuple(in_pool(p, counts[p.name]) for p in gpu.mig_profiles if counts.get(p.name))


def _instances(nodes: Sequence[NodeLayout]) -> Mapping[PartitionName, int]:
    """Instances of all nodes by profile."""
    total: Counter[PartitionName] = Counter()
    for node in nodes:
        for gpus in node.gpus:
            for profile, count in gpus.counts.items():
                total[profile] += node.node_count * len(gpus.gpus) * count
    return total
