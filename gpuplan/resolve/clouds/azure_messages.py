"""What AKS has not, or has otherwise: one constructor a message."""

from __future__ import annotations

from gpuplan.catalog.market import Instance
from gpuplan.diagnostics import Diagnostic, error, note, warning
from gpuplan.plan.model import NodePool

OPERATOR = "write driver: operator in platform.cluster"


def cut_in_several_ways(pool: NodePool, number: int) -> Diagnostic:
    return error(
        "GP016",
        f"pool {pool.name}, layout {number}: AKS cuts all GPUs of a pool by one profile of 1g, 2g,"
        " 3g, 4g or 7g, and this layout is another one",
        pool.origin,
        help=f"{OPERATOR}: MIG manager then cuts each node as planned",
    )


def cut_and_scaled(pool: NodePool) -> Diagnostic:
    return warning(
        "GP014",
        f"pool {pool.name} is cut by MIG and keeps its size: AKS's autoscaler knows whole GPUs"
        " alone (Azure/AKS #5161)",
        pool.origin,
        help="without MIG the pool is at no node while nothing waits",
    )


def own_driver(pool: NodePool, machine: Instance) -> Diagnostic:
    return error(
        "GP016",
        f"pool {pool.name}: GPU operator's driver does not install on {machine.name}, which takes"
        " AKS's driver for graphics and computing alone",
        pool.origin,
        help="write driver: provider in platform.cluster, or name another machine in"
        " platform.nodes",
    )


def driver_of_azure(pool: NodePool, machine: Instance) -> Diagnostic:
    return note(
        "GP014",
        f"AKS installs the driver of all pools, and GPU operator none: {machine.name} of pool"
        f" {pool.name} takes AKS's alone",
        pool.origin,
        help="write driver: provider in platform.cluster, so that it stays so without that pool",
    )


def no_infiniband(pool: NodePool, machine: Instance) -> Diagnostic:
    return error(
        "GP016",
        f"pool {pool.name}: {machine.name} has no InfiniBand, and its pods talk to other nodes",
        pool.origin,
        help="name a type with InfiniBand in platform.nodes: `gpuplan catalog list instances`"
        " shows those of the ND series",
    )


def no_peer_memory(pool: NodePool) -> Diagnostic:
    return error(
        "GP016",
        f"pool {pool.name}: AKS's driver does not load nvidia-peermem, without which InfiniBand"
        " adapters do not reach the GPUs' memory",
        pool.origin,
        help=OPERATOR,
    )


def one_placement_group(pool: NodePool) -> Diagnostic:
    return note(
        "GP014",
        f"pool {pool.name}: AKS does not let a pool ask for one placement group, so that some of"
        " its nodes may be on another InfiniBand network (Azure/AKS #1947)",
        pool.origin,
        help="`ibnodes` on a node shows which others it reaches",
    )


def no_memory_manager(pool: NodePool) -> Diagnostic:
    return note(
        "GP014",
        f"pool {pool.name}: the kubelet of AKS aligns CPUs and GPUs, and neither memory nor huge"
        " pages, which AKS has no setting for",
        pool.origin,
        help="`numactl` in the container binds memory to the CPUs that the pod has",
    )


def unused_drives(pool: NodePool, machine: Instance) -> Diagnostic:
    return note(
        "GP014",
        f"pool {pool.name}: the NVMe drives of {machine.name} stay unused, for AKS has no setting"
        " that makes images or scratch lie on them",
        pool.origin,
        help="Azure Container Storage, or a DaemonSet that mounts them, offers them to pods",
    )
