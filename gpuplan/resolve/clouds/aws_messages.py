"""What EKS alone says of a cluster: one constructor a message."""

from __future__ import annotations

from gpuplan.diagnostics import Diagnostic, error, note, warning
from gpuplan.plan.model import NodePool, Workload
from gpuplan.source import Origin


def large_block(pool: NodePool, longest: int, at: Origin) -> Diagnostic:
    return error(
        "GP016",
        f"pool {pool.name} has {pool.node_count} nodes, and a Capacity Block at most {longest}",
        at,
        help="use an on-demand reservation, or less work",
    )


def cut_by_karpenter(pool: NodePool) -> Diagnostic:
    return error(
        "GP016",
        f"pool {pool.name} is cut by MIG, and Karpenter starts no node for a pod that asks for a"
        " part of a GPU",
        pool.origin,
        help="write scaling: autoscaler or fixed in platform.cluster",
    )


def no_efa(pool: NodePool, machine: str) -> Diagnostic:
    return error(
        "GP016",
        f"pool {pool.name}: no source states EFA of {machine}, and its pods talk to other nodes",
        pool.origin,
        help="name a type with EFA in platform.nodes: `gpuplan catalog list instances`",
    )


def image_without_plugin(workload: Workload) -> Diagnostic:
    return warning(
        "GP017",
        f"{workload.name}: NCCL uses EFA only through aws-ofi-nccl, and no source says that"
        f" {workload.engine.image} has it",
        workload.origin,
        help="use an image with aws-ofi-nccl and libfabric in engine.image; without, traffic goes"
        " over TCP at a fraction of the speed",
    )


def no_memory_manager(pool: NodePool, machine: str) -> Diagnostic:
    return note(
        "GP014",
        f"pool {pool.name}: no source counts the NUMA nodes of {machine}, so its kubelet aligns"
        " CPUs and GPUs, and not memory",
        pool.origin,
        help="`lscpu` on such a machine counts them",
    )
