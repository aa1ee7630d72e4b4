"""The program of a stack's node pools on AKS."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuplan.backends.pulumi.clouds import nodes
from gpuplan.backends.pulumi.clouds.naming import name_problems
from gpuplan.backends.pulumi.clouds.statements import call, section
from gpuplan.backends.pulumi.view import Resource
from gpuplan.diagnostics import Diagnostic, warning
from gpuplan.kubernetes.naming import INSTANCE_TYPE_LABEL, fingerprint
from gpuplan.kubernetes.nodes import selector
from gpuplan.plan.model import NodePool, Plan, by_name
from gpuplan.plan.outside.cloud import Cloud, Group
from gpuplan.plan.outside.scratch import planned_scratch_bytes
from gpuplan.plan.partitions import GPU_RESOURCE, MIG_CONFIG_LABEL
from gpuplan.render import python
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.python import Call, Commented, Expression, Name, identifiers
from gpuplan.units import GIB, format_bytes

IMAGES_BYTES = 150 * GIB  # of engines; as much as several releases of one take
LARGEST_GIB = 2048  # of an operating system's disk (AKS API 2025-09-01, osDiskSizeGB)
NAME_LENGTH, READABLE = 12, 6  # of an agent pool (AKS API 2025-09-01: ^[a-z][a-z0-9]{0,11}$)
KIND = "azure-native:containerservice:AgentPool"
AZURE = "containerservice"


def program(plan: Plan, cloud: Cloud) -> str:
    by_azure = cloud.driver_on_nodes
    owners = ("AKS", "GPU operator") if by_azure else ("GPU operator", "AKS")
    profile = call(f"{AZURE}.GPUProfileArgs", driver="Install" if by_azure else "None")
    said = "{} installs the driver and the container toolkit, and {} neither."
    driver = [python.comment(said.format(*owners)), python.expression(profile, lead="driver = ")]
    return render(
        "python",
        "pulumi/azure/pools.py.j2",
        pools=[
            section(group, [python.expression(_agent_pool(plan, cloud, group), lead=f"{name} = ")])
            for group, name in zip(
                cloud.groups, identifiers(g.name for g in cloud.groups), strict=True
            )
        ],
        driver=Verbatim("\n".join(driver)),
    )


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
    yield from name_problems(plan, cloud, NAME_LENGTH, pool_name)
    for pool in plan.node_pools:
        count = sum(group.count for group in cloud.groups if group.pool == pool.name)
        wanted = planned_scratch_bytes(pool, plan.workloads)
        room = count * (LARGEST_GIB * GIB - IMAGES_BYTES)
        if wanted > room:
            yield _small_disks(pool, wanted, room)


def _small_disks(pool: NodePool, wanted: int, room: int) -> Diagnostic:
    return warning(
        "GP017",
        f"pool {pool.name}: its pods ask for {format_bytes(wanted)} of scratch, and disks of AKS"
        f" have {format_bytes(room)} of room beside images: some pods will not start",
        pool.origin,
        help="write `overrides: {scratch: …}` of its workloads for less, or give them more nodes",
    )


def labels(plan: Plan, cloud: Cloud, group: Group) -> dict[str, str]:
    """Where the autoscaler fills the pool, also what feature discovery says only later: an empty
    pool is known by these. Of a pool that AKS cuts MIG manager has nothing to know."""
    labelled = nodes.labels(plan, group)
    if group.partition or cloud.driver_on_nodes:
        labelled.pop(MIG_CONFIG_LABEL, None)
    labelled |= dict.fromkeys(group.taints, group.capacity)
    if not scaled(cloud, group):
        return labelled
    seen = selector(plan, by_name(plan.node_pools, group.pool))
    return labelled | {k: v for k, v in seen.items() if k != INSTANCE_TYPE_LABEL}


def scaled(cloud: Cloud, group: Group) -> bool:
    """AKS's autoscaler knows whole GPUs alone. Source: Azure/AKS #5161."""
    return cloud.scaling == "autoscaler" and group.layout is None


def least(plan: Plan, group: Group) -> int:
    """How many nodes the autoscaler leaves. Of an empty pool it knows GPUs, and nothing that
    another plugin adds: of RDMA devices it learns from a node."""
    return 0 if set(nodes.resources(plan, group)) <= {GPU_RESOURCE} else 1


def disk_gib(plan: Plan, group: Group) -> int:
    """Images and scratch, as large as AKS allows."""
    needed = -(-nodes.disk_bytes(plan, group, IMAGES_BYTES) // GIB)
    return int(min(needed, LARGEST_GIB))


def ephemeral(plan: Plan, group: Group) -> bool:
    """Whether the machine's own drive is known to hold it."""
    held = group.temporary_bytes
    return held is not None and disk_gib(plan, group) * GIB <= held


def _agent_pool(plan: Plan, cloud: Cloud, group: Group) -> Call:
    scales, spot = scaled(cloud, group), group.capacity == "spot"
    start = least(plan, group) if scales else group.count
    return call(
        f"{AZURE}.AgentPool",
        group.name,
        agent_pool_name=pool_name(plan, group),
        resource_name_=Name("cluster_name"),
        resource_group_name=Name("resource_group"),
        mode="User",
        type="VirtualMachineScaleSets",
        os_type="Linux",
        os_sku="Ubuntu",
        orchestrator_version=cloud.release.version,
        vm_size=group.node_type,
        availability_zones=list(group.zones) or None,
        vnet_subnet_id=Name("subnet"),
        capacity_reservation_group_id=group.reservation.identifier if group.reservation else None,
        scale_set_priority="Spot" if spot else "Regular",
        scale_set_eviction_policy="Delete" if spot else None,
        spot_max_price=Commented("at most the price on demand", -1) if spot else None,
        count=start,
        enable_auto_scaling=scales,
        min_count=start if scales else None,
        max_count=group.count if scales else None,
        gpu_profile=Name("driver"),
        gpu_instance_profile=instance_profile(group),
        kubelet_config=Name("kubelet"),
        os_disk_type="Ephemeral" if ephemeral(plan, group) else "Managed",
        os_disk_size_gb=disk_gib(plan, group),
        kubelet_disk_type="OS",
        enable_node_public_ip=False,
        upgrade_settings=Name("upgrades"),
        node_labels=dict(labels(plan, cloud, group)),
        node_taints=_taints(group),
        opts=call("pulumi.ResourceOptions", ignore_changes=["count"]) if scales else None,
    )


def _taints(group: Group) -> list[Expression]:
    gpus = f"{nodes.TAINT_KEY}={nodes.TAINT_VALUE}:NoSchedule"
    others: list[Expression] = [f"{key}={group.capacity}:NoSchedule" for key in group.taints]
    return [Commented("the value that NVIDIA's operators tolerate", gpus), *others]


def instance_profile(group: Group) -> str | None:
    """As AKS calls the one cut of all the pool's GPUs: MIG1g, MIG2g, …"""
    return f"MIG{group.partition.partition('.')[0]}" if group.partition else None
