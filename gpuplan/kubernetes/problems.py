"""What of a plan Kubernetes objects cannot express, one constructor a message."""

from __future__ import annotations

from collections.abc import Sequence

from gpuplan.diagnostics import Change, Diagnostic, error, note, remedied, warning
from gpuplan.plan.model import NodePool, Plan, Volume, Workload
from gpuplan.source import Origin


def _warning(message: str, workload: Workload, remedy: str) -> Diagnostic:
    return warning("GP017", f"{workload.name}: {message}", workload.origin, help=remedy)


def virtual_machine_isolation(workload: Workload) -> Diagnostic:
    problem = error(
        "GP016",
        f"{workload.name}: containers on Kubernetes cannot give a virtual machine of its own",
        workload.origin,
        help="use isolation 'node', under which only its own team is on its nodes, or a hypervisor"
        " target",
    )
    at = workload.origin
    return remedied(problem, (Change(at.child("tenancy", "isolation"), "node"),)) if at else problem


def vgpu_in_container(workload: Workload) -> Diagnostic:
    return error(
        "GP016",
        f"{workload.name}: a vGPU ({workload.partition}) is given to machines, not to containers",
        workload.origin,
        help="use a MIG profile as the partition, or a hypervisor target",
    )


def old_cluster(stated: str, oldest: str, needed_by: str) -> Diagnostic:
    return error(
        "GP016",
        f"the cluster is to have Kubernetes {stated}, and the stack needs {oldest} or newer",
        help=f"{needed_by} needs it: update the cluster first",
    )


def no_operators(plan: Plan) -> Diagnostic:
    at = plan.workloads[0].origin
    return note(
        "GP014",
        "platform.operators has no effect here: the stack installs no operator",
        Origin(at.document, ("platform", "operators")) if at else None,
        help="remove it",
    )


def offline(workload: Workload, what: str) -> Diagnostic:
    return _warning(
        f"no server can be reached that has {what}",
        workload,
        "put them into its volume before it starts, or write platform.network.egress for a hub",
    )


def closed_server(server: str, port: int) -> Diagnostic:
    return warning(
        "GP017",
        f"no rule lets pods reach {server}: port {port} is open to nobody",
        help="write its addresses and its port under platform.network.egress",
    )


def no_mirror(workload: Workload, image: str, registry: str) -> Diagnostic:
    return _warning(
        f"its image {image} has no mirror, and others have",
        workload,
        f"add {registry} to platform.network.images, or write engine.image",
    )


def volume_of_one_node(workload: Workload, volume: Volume) -> Diagnostic:
    return error(
        "GP016",
        f"{workload.name}: volume '{volume.name}' can be mounted on one node only, but the workload"
        " runs on several",
        workload.origin,
        help="name a storage class whose volumes several nodes mount in platform.storage.class, and"
        " write `shared: true` beside it",
    )


def _nodes(workload: Workload) -> str:
    several = workload.nodes_per_replica
    return f"{several} nodes" if several > 1 else "several nodes"


def no_rdma_resource(workload: Workload, fabric: str) -> Diagnostic:
    problem = error(
        "GP016",
        f"{workload.name}: its pods are on {_nodes(workload)} and get no {fabric}"
        " device, whose speed the plan counts on",
        workload.origin,
        help="name the device plugin's resource in platform.fabric.resource, for example"
        " rdma/rdma_shared_device_a; write kind: ethernet for a network without RDMA",
    )
    if workload.origin is None:
        return problem
    at = Origin(workload.origin.document, ("platform", "fabric", "kind"))
    return remedied(problem, (Change(at, "ethernet"),))


def no_gang(workload: Workload) -> Diagnostic:
    pods = workload.nodes_per_replica
    return _warning(
        f"its {pods} pods are scheduled one by one: those that found GPUs hold them, idle, until"
        " the last one has some",
        workload,
        f"name a queue of the cluster that admits all {pods} pods at once in 'platform.queue'"
        " (Kueue), or keep other work off the planned nodes by a taint",
    )


def anywhere(workload: Workload, switch: int) -> Diagnostic:
    return _warning(
        f"its {workload.nodes_per_replica} pods count on nodes of one switch, of {switch}, and"
        " nothing keeps them there",
        workload,
        "name the label of nodes that says which switch they have in 'platform.fabric.switch_label'"
        ", or keep other work off the nodes of one by a taint",
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
        help="name them in an inventory, let whatever adds them set the labels, or run: "
        + "; ".join(commands),
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
