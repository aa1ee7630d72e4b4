"""The program of a stack's node pools on GKE."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.backends.pulumi.clouds import nodes
from gpuplan.backends.pulumi.clouds.google.nodeconfig import (
    PREFIX,
    UNRESERVED,
    node_config,
)
from gpuplan.backends.pulumi.clouds.naming import name_problems, node_group_name
from gpuplan.backends.pulumi.clouds.programs import cluster_stack
from gpuplan.backends.pulumi.clouds.statements import GroupSection, call, section
from gpuplan.backends.pulumi.project import Setting
from gpuplan.backends.pulumi.view import Resource
from gpuplan.diagnostics import Diagnostic
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.cloud import WAITED, Cloud, Group
from gpuplan.render import python
from gpuplan.render.environments import render
from gpuplan.render.python import Commented, Expression, Name, identifiers

NAME_LIMIT = 40  # of a cluster and of a node pool (Kubernetes Engine API, NodePool.name)


def settings(plan: Plan) -> Iterator[Setting]:
    yield cluster_stack(plan)
    yield Setting(
        name="driverVersion",
        kind="string",
        default="DEFAULT",
        description="The GPU driver of the nodes' release: DEFAULT or LATEST. A change of it"
        " replaces the pools",
    )


def program(plan: Plan, cloud: Cloud) -> str:
    named = zip(cloud.groups, identifiers(g.name for g in cloud.groups), strict=True)
    return render(
        "python",
        "pulumi/google/groups.py.j2",
        groups=[_section(plan, cloud, group, name) for group, name in named],
        reserved=any(g.reservation for g in cloud.groups),
        unreserved=any(g.capacity in UNRESERVED for g in cloud.groups),
        surges=any(g.capacity not in WAITED for g in cloud.groups),
        taint_key=nodes.TAINT_KEY,
        taint_value=nodes.TAINT_VALUE,
    )


def resources(cloud: Cloud) -> Iterator[Resource]:
    for group in cloud.groups:
        yield Resource(type="gcp:container/nodePool:NodePool", name=group.name)


def problems(plan: Plan, cloud: Cloud) -> Iterator[Diagnostic]:
    yield from name_problems(plan, cloud, NAME_LIMIT)


def _section(plan: Plan, cloud: Cloud, group: Group, name: str) -> GroupSection:
    lead = f"{name}_pool = "
    return section(group, [python.expression(_pool(plan, cloud, group), lead=lead)])


def _pool(plan: Plan, cloud: Cloud, group: Group) -> Expression:
    waited = group.capacity in WAITED
    scaled = waited or cloud.scaling == "autoscaler"
    profile = "auto" if group.network_cards else None
    return call(
        PREFIX,
        group.name,
        name=node_group_name(plan, group),
        cluster=Name("cluster_name"),
        location=Name("location"),
        node_locations=list(group.zones),
        autoscaling=_scaling(group) if scaled else None,
        node_count=None if scaled else group.count // len(group.zones),
        initial_node_count=0 if scaled else None,
        management=call(
            f"{PREFIX}ManagementArgs",
            auto_repair=Commented("a machine that is waited for is not made again", False)  # noqa: FBT003
            if waited
            else True,
            auto_upgrade=True,
        ),
        upgrade_settings=None if waited else Name("upgrades"),
        network_config=call(
            f"{PREFIX}NetworkConfigArgs",
            enable_private_nodes=True,
            accelerator_network_profile=profile
            and Commented("GKE makes the networks of the cards, which pods claim", profile),
        ),
        placement_policy=_placement(group),
        queued_provisioning=call(f"{PREFIX}QueuedProvisioningArgs", enabled=True)
        if group.capacity == "queued"
        else None,
        node_config=node_config(plan, group),
        opts=call("pulumi.ResourceOptions", ignore_changes=["nodeCount", "initialNodeCount"])
        if scaled
        else None,
    )


def _scaling(group: Group) -> Expression:
    return call(
        f"{PREFIX}AutoscalingArgs",
        total_min_node_count=0,
        total_max_node_count=group.count,
        location_policy="ANY",
    )


def _placement(group: Group) -> Expression:
    """Machines that were reserved stand as they were reserved."""
    held = group.reservation
    if held is not None:
        named = held.placement_group
        return named and call(f"{PREFIX}PlacementPolicyArgs", type="COMPACT", policy_name=named)
    compact = group.together and group.capacity != "queued"  # which excludes each other
    return call(f"{PREFIX}PlacementPolicyArgs", type="COMPACT") if compact else None
