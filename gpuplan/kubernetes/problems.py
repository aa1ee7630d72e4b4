"""What of a plan Kubernetes objects cannot express, one constructor a message."""

from __future__ import annotations

from collections.abc import Sequence

from gpuplan.diagnostics import Diagnostic, error, warning
from gpuplan.plan.model import NodePool, Plan, Volume, Workload


def _warning(message: str, workload: Workload, remedy: str) -> Diagnostic:
    return warning("GP017", f"{workload.name}: {message}", workload.origin, help=remedy)


def virtual_machine_isolation(workload: Workload) -> Diagnostic:
    return error(
        "GP016",
        f"{workload.name}: containers on Kubernetes cannot give a virtual machine of its own",
        workload.origin,
        help="use isolation 'node', or a hypervisor target",
    )


def vgpu_in_container(workload: Workload) -> Diagnostic:
    return error(
        "GP016",
        f"{workload.name}: a vGPU ({workload.partition}) is given to machines, not to containers",
        workload.origin,
        help="use a MIG profile as the partition, or a hypervisor target",
    )


def replica_over_nodes(workload: Workload) -> Diagnostic:
    return error(
        "GP016",
        f"{workload.name}: a replica over {workload.nodes_per_replica} nodes is not emitted",
        workload.origin,
        help="allow a GPU whose node holds a replica, or a lower precision",
    )


def volume_of_one_node(workload: Workload, volume: Volume) -> Diagnostic:
    return error(
        "GP016",
        f"{workload.name}: volume '{volume.name}' can be mounted on one node only, but the workload"
        " runs on several",
        workload.origin,
        help="use a storage class with shared volumes",
    )


def no_rdma_resource(workload: Workload, fabric: str) -> Diagnostic:
    return error(
        "GP016",
        f"{workload.name}: its pods are on {workload.nodes_per_replica} nodes and get no {fabric}"
        " device, whose speed the plan counts on",
        workload.origin,
        help="name the device plugin's resource in platform.fabric.resource, for example"
        " rdma/rdma_shared_device_a; write kind: ethernet for a network without RDMA",
    )


def no_gang(workload: Workload) -> Diagnostic:
    pods = workload.nodes_per_replica
    return _warning(
        f"its {pods} pods are scheduled one by one: those that found GPUs hold them, idle, until"
        " the last one has some",
        workload,
        f"keep other work off the planned nodes by a taint, or admit all {pods} pods at once by a"
        " queue of the cluster, such as Kueue",
    )


def unnamed_nodes(pool: NodePool, labels: Sequence[tuple[int, str]]) -> Diagnostic:
    """`labels`: how many of the pool's nodes want which."""
    commands = [
        f"kubectl label node NODE {label}"
        + (f" ({count} of {pool.node_count} nodes)" if count < pool.node_count else "")
        for count, label in labels
    ]
    return warning(
        "GP017",
        f"pool {pool.name}: its nodes are not known by name, so they cannot be labelled",
        pool.origin,
        help=f"name them in an inventory, or run: {'; '.join(commands)}",
    )


def name_too_long(plan: Plan, kind: str, name: str, limit: int) -> Diagnostic:
    return error(
        "GP018",
        f"stack {plan.name}: the {kind} name '{name}' has {len(name)} characters, at most {limit}"
        " are allowed",
        help="shorten the stack's or the team's name",
    )


def same_object(plan: Plan, identity: str) -> Diagnostic:
    return error(
        "GP018",
        f"stack {plan.name}: two objects would be called {identity}",
        help="rename a workload, a team or a volume",
    )
