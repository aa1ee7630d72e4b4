"""What the NUMA nodes of an inventory's hosts mean for pods, which the kubelet places, not gpuplan.

The kubelet's topology manager admits a pod by hints: with the policy `single-numa-node` only if one
node has its GPUs, cores and memory. It counts nodes without CPUs too, and does not start above
eight nodes unless `max-allowable-numa-nodes` is set (Kubernetes documentation, "Control Topology
Management Policies on a Node"; KEP-4622).
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from gpuplan.diagnostics import Diagnostic
from gpuplan.placement.boards import off_fabric
from gpuplan.placement.problems import beyond_part, many_nodes, spanning_pod
from gpuplan.plan.model import NodePool, Workload
from gpuplan.sharing.islands import joined
from gpuplan.sizing.hardware.locality import Locality, localities
from gpuplan.source import Origin
from gpuplan.units import format_bytes

if TYPE_CHECKING:
    from gpuplan.inventory.v1 import HostSpec, Inventory

MOST_NODES = 8


def topology(
    workloads: Sequence[Workload],
    pools: Sequence[NodePool],
    inventory: Inventory,
    document: str,
    *,
    boards: Container[str] = (),
) -> Iterator[Diagnostic]:
    """Of each pool on hosts that `inventory` describes node by node. `boards` are the GPU types
    that are no cards: NVLink joins all GPUs of a host that is whole."""
    for number, spec in enumerate(inventory.hosts):
        at = Origin(document, ("hosts", number))
        used = {p.name for p in pools if set(p.node_names) & set(spec.names)}
        if not used:
            continue
        if any(g.type in boards for g in spec.gpus):
            yield from _unreached(workloads, used, spec)
        if len(spec.numa_nodes) > MOST_NODES:
            place = at.child("numa_nodes")
            yield many_nodes(spec.names[0], len(spec.numa_nodes), MOST_NODES, place)
        nodes = _with_gpus(spec, at)
        for workload in (w for w in workloads if w.node_pool in used and nodes):
            yield from _pods(workload, spec.names[0], nodes)


def _unreached(
    workloads: Sequence[Workload], used: Container[str], spec: HostSpec
) -> Iterator[Diagnostic]:
    """Workloads whose pods may get a GPU that NVLink does not join to the others."""
    links = joined(spec)
    gpus = sum(g.count or 1 for g in spec.gpus)
    alone = [f"gpu{n}" for n in range(gpus) if links and n not in links]
    for workload in workloads if alone else ():
        if workload.node_pool in used and workload.gpus_per_node > 1 and not workload.partition:
            yield off_fabric(
                workload.name, workload.gpus_per_node, alone, spec.names[0], workload.origin
            )


def _with_gpus(spec: HostSpec, at: Origin) -> tuple[Locality, ...]:
    """The NUMA nodes that have GPUs; none where the inventory does not say it of all GPUs."""
    known = len(spec.numa_nodes) > 1 and all(g.numa_node is not None for g in spec.gpus)
    return tuple(n for n in localities(spec, at, guests=False) if n.gpus) if known else ()


def _pods(workload: Workload, host: str, nodes: Sequence[Locality]) -> Iterator[Diagnostic]:
    if workload.partition is not None:
        return
    most = max(node.gpus for node in nodes)
    if workload.gpus_per_node > most:
        yield spanning_pod(workload.name, workload.gpus_per_node, most, host, workload.origin)
    yield from islice(_short(workload, nodes), 1)


def _short(workload: Workload, nodes: Sequence[Locality]) -> Iterator[Diagnostic]:
    """Nodes with less for each of their GPUs than the pods ask."""
    cpu = workload.resources.cpu_cores / workload.gpus_per_node
    memory = workload.resources.host_memory_bytes / workload.gpus_per_node
    for node in nodes:
        if cpu * node.gpus > node.free_cores:
            wanted, have = f"{math.ceil(cpu)} cores a GPU", f"{node.free_cores // node.gpus}"
        elif node.memory_bytes is not None and memory * node.gpus > node.memory_bytes:
            wanted = f"{format_bytes(memory)} of memory a GPU"
            have = format_bytes(node.memory_bytes / node.gpus)
        else:
            continue
        have = f"{have} for each of its GPUs"
        yield beyond_part(workload.name, wanted, node.name, have, workload.origin)
