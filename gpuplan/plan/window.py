"""The host window: the cores and the memory beside a GPU, once for all that sizes, places, packs
and checks them.

A GPU is fed by 4 to 8 physical cores of its own NUMA node, and has at least 16 GB of host memory,
usually 32 GB or as much as it has itself (hosts of RunPod and Vast are held to 4 cores and 1 x the
GPU's memory, training guides ask for 3.5 to 5.5 cores; of 60 AWS GPU shapes one has less than 16 GB
a GPU). Limits are in decimal gigabytes; what a pod or a guest is given is whole pages of 1 GiB:
what it should have is rounded up, its part of the host is rounded down.
`docs/decisions/0010-host-window.md` says why.

The texts are formulas (`gpuplan.sizing.evidence.formula`) over the numbers here.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor

from gpuplan.plan.site import Core, NumaNode
from gpuplan.units import GB, GIB

LEAST_CORES = 4
WANTED_CORES = 6
MOST_CORES = 8
LEAST_MEMORY_BYTES = 16 * GB
USUAL_MEMORY_BYTES = 32 * GB
PAGE_BYTES: int = GIB  # a huge page, as guests' memory is made of

# What a host keeps of each NUMA node, unless its inventory says otherwise, and a kubelet's node of
# all its memory. A guest with passed-through devices needs memory outside its pages (KubeVirt,
# overhead of VFIO guests).
KEPT_CORES = 2
KEPT_MEMORY_FRACTION = 1 / 16
KEPT_MEMORY_LEAST_BYTES = 8 * GIB
KEPT_BY_KUBELET_FRACTION = 1 / 10
GUEST_OVERHEAD_BYTES = GIB

KEPT_MEMORY = "max(memory * fraction, minimum)"
KEPT_BESIDE_PAGES = "max(least_kept, memory - hugepages * page)"
KEPT_BY_KUBELET = "memory * fraction"
CORES_PART = "floor((cores - kept_cores) / gpus)"
MEMORY_PART = "(memory - kept_memory) / gpus"
CORES = "max(1, floor(min(wanted_cores, cores_for_a_gpu) / per_gpu))"
CORES_ANYWHERE = "max(1, floor(wanted_cores / per_gpu))"
MEMORY = (
    "max(ceil(least_memory / per_gpu / page), min(ceil(max(usual_memory, gpu_memory) / per_gpu / "
    "page), floor((memory_for_a_gpu / per_gpu - guest_overhead) / page))) * page"
)
MEMORY_ANYWHERE = "ceil(max(usual_memory, gpu_memory) / per_gpu / page) * page"
ALL_CORES = "cores_per_device * devices"
ALL_MEMORY = "ceil(memory_per_device / page) * page * devices"


def pages(size_bytes: float) -> int:
    """Whole pages that hold so much."""
    return ceil(size_bytes / PAGE_BYTES)


def cores_of(cores_per_gpu: int, gpus: Fraction) -> int:
    """Cores for `gpus`; those of a share of a GPU are rounded down, to one at least."""
    return max(1, floor(cores_per_gpu * gpus))


def bytes_of(bytes_per_gpu: int, gpus: Fraction) -> int:
    """Memory for `gpus` or a share of one."""
    return ceil(bytes_per_gpu * gpus)


def helpers(nodes: Sequence[NumaNode], number: int) -> tuple[Core, ...]:
    """Cores for the emulators and I/O threads of guests on node `number`: those that the host keeps
    there, else those that it keeps on the nodes that are nearest."""
    home = next((node for node in nodes if node.node == number), None)
    if home is None or home.reserved_cores:
        return home.reserved_cores if home else ()
    far = dict(zip((node.node for node in nodes), home.distances, strict=False))
    keepers = [node for node in nodes if node.reserved_cores]
    least = min((far.get(node.node, 0) for node in keepers), default=0)
    near = (node for node in keepers if far.get(node.node, 0) == least)
    return tuple(core for node in near for core in node.reserved_cores)
