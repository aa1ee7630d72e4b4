"""How the nodes of a pool are cut, from what was put on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from gpuplan.catalog.model import Gpu, MigProfile, VgpuType
from gpuplan.placement.pools.bins import Node
from gpuplan.plan.model import GpuLayout, NodeLayout, Partition
from gpuplan.plan.partitions import PartitionName
from gpuplan.sharing.mig import ProfileCounts, completed, instances
from gpuplan.sharing.partitions import in_pool
from gpuplan.sizing.hardware.offers import GpuOffer


def layouts(nodes: Sequence[Node], names: Sequence[str], offer: GpuOffer) -> tuple[NodeLayout, ...]:
    """Nodes that are cut alike together, in the order of the nodes. `names` are theirs, or none.
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
            node_names=tuple(names[n] for n in numbers) if names else (),
            gpus=gpus,
        )
        for gpus, numbers in alike.items()
    )


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
