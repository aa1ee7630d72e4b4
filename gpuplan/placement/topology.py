"""What the NUMA nodes of an inventory's hosts mean for pods, which the kubelet places, not gpuplan.

The kubelet's topology manager admits a pod by hints: with the policy `single-numa-node` only if one
node has its GPUs, cores and memory. It counts nodes without CPUs too, and does not start above
eight nodes unless `max-allowable-numa-nodes` is set (Kubernetes documentation, "Control Topology
Management Policies on a Node"; KEP-4622).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from gpuplan.diagnostics import Diagnostic
from gpuplan.inventory.v1 import HostSpec, Inventory
from gpuplan.placement.machines.reserve import RESERVED_CORES, cores
from gpuplan.placement.problems import beyond_part, many_nodes, spanning_pod
from gpuplan.plan.model import NodePool, Workload
from gpuplan.source import Origin
from gpuplan.units import format_bytes

MOST_NODES = 8


def topology(
    workloads: Sequence[Workload], pools: Sequence[NodePool], inventory: Inventory, document: str
) -> Iterator[Diagnostic]:
    """Of each pool on hosts that `inventory` describes node by node."""
    for number, spec in enumerate(inventory.hosts):
        at = Origin(document, ("hosts", number))
        used = {p.name for p in pools if set(p.node_names) & set(spec.names)}
        if not used:
            continue
        if len(spec.numa_nodes) > MOST_NODES:
            place = at.child("numa_nodes")
            yield many_nodes(spec.names[0], len(spec.numa_nodes), MOST_NODES, place)
        gpus = _gpus_by_node(spec)
        for workload in (w for w in workloads if w.node_pool in used and gpus):
            yield from _pods(workload, spec, gpus)


def _gpus_by_node(spec: HostSpec) -> Counter[int]:
    """GPUs of each NUMA node; empty where the inventory does not say it of all."""
    known = len(spec.numa_nodes) > 1 and all(g.numa_node is not None for g in spec.gpus)
    found: Counter[int] = Counter()
    for gpu in spec.gpus if known else ():
        found[gpu.numa_node or 0] += gpu.count or 1
    return found


def _pods(workload: Workload, spec: HostSpec, gpus: Counter[int]) -> Iterator[Diagnostic]:
    if workload.partition is not None:
        return
    most = max(gpus.values())
    if workload.gpus_per_node > most:
        yield spanning_pod(
            workload.name, workload.gpus_per_node, most, spec.names[0], workload.origin
        )
    yield from islice(_short(workload, spec, gpus), 1)


def _short(workload: Workload, spec: HostSpec, gpus: Counter[int]) -> Iterator[Diagnostic]:
    """Nodes with less for each of their GPUs than the pods ask."""
    cpu = workload.resources.cpu_cores / workload.gpus_per_node
    memory = workload.resources.memory_bytes / workload.gpus_per_node
    for node, count in sorted(gpus.items()):
        here, where = spec.numa_nodes[node], f"node {node} of {spec.names[0]}"
        usable = max(0, len(cores(here, spec.threads_per_core)) - RESERVED_CORES)
        if cpu * count > usable:
            wanted, have = f"{math.ceil(cpu)} cores a GPU", f"{usable // count}"
        elif here.memory is not None and memory * count > here.memory:
            wanted = f"{format_bytes(memory)} of memory a GPU"
            have = format_bytes(here.memory / count)
        else:
            continue
        have = f"{have} for each of its GPUs"
        yield beyond_part(workload.name, wanted, where, have, workload.origin)
