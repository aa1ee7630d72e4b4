"""Which cores a hypervisor keeps for itself: those of NUMA nodes that no guest can be on, as long
as there are such (docs/decisions/0025-host-cores-where-gpus-are-not.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gpuplan.inventory.cores import cores
from gpuplan.plan import window

if TYPE_CHECKING:
    from gpuplan.inventory.v1 import HostSpec


def kept_cores(spec: HostSpec) -> Mapping[int, int]:
    """How many cores the host keeps of each NUMA node that has some, unless its inventory says: as
    many of each, which for a node with GPUs the nearest one without keeps, if it has them. Where
    the inventory does not say which node a GPU is on, each node keeps its own."""
    counts = {
        number: len(cores(node, spec.threads_per_core))
        for number, node in enumerate(spec.numa_nodes)
        if node.cpus
    }
    kept = dict.fromkeys(counts, window.KEPT_CORES)
    busy = {gpu.numa_node for gpu in spec.gpus}
    if None in busy:
        return kept
    for node in sorted(counts.keys() & busy):
        row, alike = spec.numa_nodes[node].distances or (), (0,) * len(spec.numa_nodes)
        far = row if len(row) == len(alike) else alike
        room = [n for n in counts.keys() - busy if counts[n] - kept[n] >= window.KEPT_CORES]
        if room:
            _, _, keeper = min((far[n], kept[n], n) for n in room)
            kept[keeper] += window.KEPT_CORES
            kept[node] = 0
    return kept
