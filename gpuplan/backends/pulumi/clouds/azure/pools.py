"""The program of a stack's node pools on AKS."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuplan.backends.pulumi.clouds import nodes
from gpuplan.backends.pulumi.project import Setting
from gpuplan.backends.pulumi.view import Resource
from gpuplan.diagnostics import Diagnostic, error
from gpuplan.frozen import frozen
from gpuplan.kubernetes.naming import fingerprint
from gpuplan.kubernetes.nodes import selector
from gpuplan.plan.model import Plan, by_name
from gpuplan.plan.outside.cloud import Cloud, Group
from gpuplan.render import python
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.python import Call, Commented, Expression, Name, identifiers
from gpuplan.units import GIB

IMAGES_BYTES = 150 * GIB  # of engines; as much as several releases of one take
LARGEST_GIB = 2048  # of an operating system's disk (AKS API 2025-09-01, osDiskSizeGB)
NAME_LENGTH, READABLE = 12, 6  # of an agent pool (AKS API 2025-09-01: ^[a-z][a-z0-9]{0,11}$)
SPOT = "kubernetes.azure.com/scalesetpriority"
KIND = "azure-native:containerservice:AgentPool"
AZURE = "containerservice"


@frozen
class Pool:
    heading: Verbatim
    statement: Verbatim


def settings(plan: Plan) -> Iterator[Setting]:
    yield Setting(
        name="clusterStack",
        kind="string",
        description=f"The Pulumi stack of cloud/cluster: ORGANIZATION/{plan.name}-cluster/dev",
    )


def program(plan: Plan, cloud: Cloud) -> str:
    names = identifiers(g.name for g in cloud.groups)
    pools = [_pool(plan, cloud, g, n) for g, n in zip(cloud.groups, names, strict=True)]
    owner = "Install" if cloud.driver_on_nodes else "None"
    reason = (
        "AKS installs the driver and the container toolkit, and GPU operator neither."
        if cloud.driver_on_nodes
        else "GPU operator installs the driver and the container toolkit, and AKS neither."
    )
    driver = python.expression(
        call(f"{AZURE}.GPUProfileArgs", driver=owner), lead="driver = "
    )
    text = f"{python.comment(reason)}\n{driver}"
    return render("python", "pulumi/azure/pools.py.j2", pools=pools, driver=Verbatim(text))


def resources(cloud: Cloud) -> Iterator[Resource]:
    for group in cloud.groups:
        yield Resource(type=KIND, name=group.name)


def pool_name(plan: Plan, group: Group) -> str:
    """What is left of the group's name, and a hash of the stack and the group: AKS takes twelve
    lower-case letters and digits, and stacks may share a cluster."""
    left = re.sub(r"[^a-z0-9]", "", group.name.lower())
    start = left if left[:1].isalpha() else f"g{left}"
    return start[:READABLE] + fingerprint(f"{plan.name}/{group.name}", NAME_LENGTH - READABLE)


def problems(plan: Plan, cloud: Cloud) -> Iterator[Diagnostic]:
    """Two groups of one name would be one pool."""
    names: dict[str, Group] = {}
    for group in cloud.groups:
        first = names.setdefault(pool_name(plan, group), group)
        if first is not group:
            yield same_name(plan, first, group)


def same_name(plan: Plan, first: Group, second: Group) -> Diagnostic:
    return error(
        "GP018",
        f"stack {plan.name}: the pools '{first.name}' and '{second.name}' are both"
        f" '{pool_name(plan, second)}' to AKS, which takes {NAME_LENGTH} letters and digits",
        help="change the stack's name",
    )


def labels(plan: Plan, cloud: Cloud, group: Group) -> dict[str, str]:
    """Where the autoscaler fills the pool, also what feature discovery says only later: an empty
    pool is known by these."""
    found = nodes.labels(plan, group)
    if cloud.driver_on_nodes:  # cut by AKS
        found.pop(nodes.MIG_CONFIG_LABEL, None)
    if cloud.scaling != "autoscaler":
        return found
    seen = selector(plan, by_name(plan.node_pools, group.pool))
    return found | {k: v for k, v in seen.items() if not k.startswith("node.kubernetes.io/")}


def least(plan: Plan, group: Group) -> int:
    """How many nodes the autoscaler leaves. It knows GPUs, and nothing else that a plugin adds, of
    a pool that is empty: of parts of GPUs and RDMA devices it learns from a node."""
    found = nodes.resources(plan, group)
    return 0 if set(found) <= {nodes.GPU_RESOURCE} else 1


def disk_gib(plan: Plan, group: Group) -> int:
    """Images and scratch, as large as AKS allows."""
    needed = -(-nodes.disk_bytes(plan, group, IMAGES_BYTES) // GIB)
    return int(min(needed, LARGEST_GIB))


def ephemeral(plan: Plan, group: Group) -> bool:
    """Whether the machine's own drive is known to hold it."""
    held = group.temporary_bytes
    return held is not None and disk_gib(plan, group) * GIB <= held


def call(function: str, **keywords: Expression) -> Call:
    """A call without the keywords that are None."""
    return Call(function, (), tuple((k, v) for k, v in keywords.items() if v is not None))


def _pool(plan: Plan, cloud: Cloud, group: Group, name: str) -> Pool:
    where = f"in zone {' or '.join(group.zones)}" if group.zones else "in no zone of its own"
    heading = f"{group.name}: {group.count} × {group.node_type}, {group.capacity}, {where}"
    made = _agent_pool(plan, cloud, group)
    lead = f"{name} = " if len(cloud.groups) else ""
    return Pool(
        heading=Verbatim(python.comment(heading)),
        statement=Verbatim(python.expression(made, lead=lead)),
    )


def _agent_pool(plan: Plan, cloud: Cloud, group: Group) -> Call:
    spot, scaled = group.capacity == "spot", cloud.scaling == "autoscaler"
    taint = f"{nodes.TAINT_KEY}={nodes.TAINT_VALUE}:NoSchedule"
    taints: list[Expression] = [Commented("the value that NVIDIA's operators tolerate", taint)]
    given = labels(plan, cloud, group)
    if spot:
        taints.append(f"{SPOT}=spot:NoSchedule")
        given[SPOT] = "spot"
    start = least(plan, group) if scaled else group.count
    keywords: dict[str, Expression] = {
        "agent_pool_name": pool_name(plan, group),
        "resource_name_": Name("cluster_name"),
        "resource_group_name": Name("resource_group"),
        "mode": "User",
        "type": "VirtualMachineScaleSets",
        "os_type": "Linux",
        "os_sku": "Ubuntu",
        "orchestrator_version": cloud.release.version,
        "vm_size": group.node_type,
        "availability_zones": list(group.zones) or None,
        "vnet_subnet_id": Name("subnet"),
        "capacity_reservation_group_id": group.reservation and group.reservation.identifier,
        "scale_set_priority": "Spot" if spot else "Regular",
        "scale_set_eviction_policy": "Delete" if spot else None,
        "spot_max_price": Commented("never more than on demand", -1) if spot else None,
        "count": start,
        "enable_auto_scaling": scaled,
        "min_count": start if scaled else None,
        "max_count": group.count if scaled else None,
        "gpu_profile": Name("driver"),
        "gpu_instance_profile": group.partition,
        "kubelet_config": Name("kubelet"),
        "os_disk_type": "Ephemeral" if ephemeral(plan, group) else "Managed",
        "os_disk_size_gb": disk_gib(plan, group),
        "kubelet_disk_type": "OS",
        "enable_node_public_ip": False,
        "upgrade_settings": Name("upgrades"),
        "node_labels": dict(given),
        "node_taints": taints,
        "opts": call("pulumi.ResourceOptions", ignore_changes=["count"]) if scaled else None,
    }
    found = tuple((k, v) for k, v in keywords.items() if v is not None)
    return Call(f"{AZURE}.AgentPool", (group.name,), found)
