"""How the nodes of a pool are cut, from what was put on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from gpuplan.catalog.model import MigProfile
from gpuplan.placement.pools.bins import Node
from gpuplan.placement.pools.packing import Need
from gpuplan.plan.model import GpuLayout, NodeLayout, Partition
from gpuplan.sharing.mig import completed, cut
from gpuplan.sharing.partitions import mig_partition, vgpu_of, vgpu_partition
from gpuplan.sizing.hardware.offers import GpuOffer


def layouts(nodes: Sequence[Node], names: Sequence[str], offer: GpuOffer) -> tuple[NodeLayout, ...]:
    """Nodes that are cut alike together, in the order of the nodes. `names` are theirs, or none.
    The last GPUs of a node are cut, so that the first stay whole side by side."""
    used = {name for node in nodes for cut in node.cut for name in cut}
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
    of_each = [completed(counts, profiles) for counts in node.cut]
    kinds = Counter(tuple(sorted(c.items())) for c in of_each)
    found, first = [], count - len(of_each)
    for counts, gpus in sorted(kinds.items(), key=lambda pair: (-pair[1], pair[0])):
        numbers = tuple(range(first, first + gpus))
        found.append(GpuLayout(gpus=numbers, instances=cut(dict(counts), profiles)))
        first += gpus
    return tuple(found)


def partitions(
    partition: str | None, nodes: Sequence[NodeLayout], need: Need
) -> tuple[Partition, ...]:
    """What the pool's workloads can ask for beside whole GPUs."""
    gpu = need.offer.gpu
    vgpu = vgpu_of(partition, gpu)
    if vgpu is not None:
        return (vgpu_partition(vgpu, need.nodes * need.offer.gpus_per_node),)
    counts = instances(nodes)
    return tuple(mig_partition(p, counts[p.name]) for p in gpu.mig_profiles if counts.get(p.name))


def instances(nodes: Sequence[NodeLayout]) -> Mapping[str, int]:
    """Instances of all nodes by profile."""
    found: Counter[str] = Counter()
    for node in nodes:
        for gpus in node.gpus:
            for profile, count in gpus.counts.items():
                found[profile] += node.node_count * len(gpus.gpus) * count
    return found
