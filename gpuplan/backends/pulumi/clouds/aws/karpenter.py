"""The program of a stack's node pools where Karpenter starts the nodes.

Fields: aws/karpenter-provider-aws 1d92708, pkg/apis/crds.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.backends.pulumi.clouds import nodes
from gpuplan.backends.pulumi.clouds.aws.pools import own_placement, root_gigabytes
from gpuplan.backends.pulumi.clouds.programs import cluster_stack
from gpuplan.backends.pulumi.clouds.statements import GroupSection, call, section
from gpuplan.backends.pulumi.project import Setting
from gpuplan.backends.pulumi.view import Resource
from gpuplan.kubernetes import naming
from gpuplan.kubernetes.nodes import selector
from gpuplan.plan.model import Plan, by_name
from gpuplan.plan.outside.cloud import Cloud, Group
from gpuplan.plan.partitions import GPU_RESOURCE
from gpuplan.render import python
from gpuplan.render.environments import render
from gpuplan.render.python import Commented, Expression, Name, identifiers

CAPACITY_TYPE = "karpenter.sh/capacity-type"
ZONE = "topology.kubernetes.io/zone"
CLASS = ("karpenter.k8s.aws/v1", "EC2NodeClass")
POOL = ("karpenter.sh/v1", "NodePool")
IDLE = "5m"  # of an empty node, before it goes


def settings(plan: Plan, cloud: Cloud) -> Iterator[Setting]:
    yield cluster_stack(plan)
    yield Setting(name="context", kind="string", description="The cluster's kubectl context")
    image = cloud.release.image
    yield Setting(
        name="releaseVersion",
        kind="string",
        default=f"v{image.release.rpartition('-')[2]}" if image else None,
        description="The release of the nodes' image, as v20260801, which brings their driver",
    )


def program(plan: Plan, cloud: Cloud) -> str:
    named = zip(cloud.groups, identifiers(g.name for g in cloud.groups), strict=True)
    return render(
        "python",
        "pulumi/aws/karpenter.py.j2",
        groups=[_section(plan, group, name) for group, name in named],
        together=any(g.together for g in cloud.groups),
        joins=cloud.existing is not None,
    )


def resources(cloud: Cloud) -> Iterator[Resource]:
    yield Resource(type="pulumi:providers:kubernetes", name="cluster")
    if any(g.together for g in cloud.groups):
        yield Resource(type="aws:ec2/securityGroup:SecurityGroup", name="efa")
        for way in ("Ingress", "Egress"):
            kind = f"aws:vpc/securityGroup{way}Rule:SecurityGroup{way}Rule"
            yield Resource(type=kind, name="efa")
    if cloud.existing:
        yield Resource(type="aws:eks/accessEntry:AccessEntry", name="nodes")
    for group in cloud.groups:
        if own_placement(group):
            yield Resource(type="aws:ec2/placementGroup:PlacementGroup", name=group.name)
        for version, kind in (CLASS, POOL):
            yield Resource(type=f"kubernetes:{version}:{kind}", name=group.name)


def _section(plan: Plan, group: Group, name: str) -> GroupSection:
    statements = []
    if own_placement(group):
        placement = call("aws.ec2.PlacementGroup", group.name, strategy="cluster")
        statements.append(python.expression(placement, lead=f"{name}_placement = "))
    node_class = _object(plan, group, CLASS, _class(plan, group, name))
    statements.append(python.expression(node_class, lead=f"{name}_class = "))
    after: list[Expression] = [Name(f"{name}_class")]
    statements.append(python.expression(_object(plan, group, POOL, _pool(plan, group), after)))
    return section(group, statements, "at most ")


def _object(
    plan: Plan,
    group: Group,
    kind: tuple[str, str],
    spec: Expression,
    after: list[Expression] | None = None,
) -> Expression:
    return call(
        "k8s.apiextensions.CustomResource",
        group.name,
        api_version=kind[0],
        kind=kind[1],
        metadata=call("k8s.meta.v1.ObjectMetaArgs", name=f"{plan.name}-{group.name}"),
        spec=spec,
        opts=call("pulumi.ResourceOptions", provider=Name("provider"), depends_on=after),
    )


def _class(plan: Plan, group: Group, name: str) -> Expression:
    groups: list[Expression] = [{"id": Name("security_group")}]
    held = group.reservation
    spec: dict[str, Expression] = {
        "role": Name("node_role"),
        "amiSelectorTerms": [{"alias": Name("image")}],
        "subnetSelectorTerms": [{"id": call("subnet", zone)} for zone in group.zones],
        "securityGroupSelectorTerms": groups + ([{"id": Name("efa.id")}] if group.together else []),
        "metadataOptions": Commented(
            "tokens only, and from the node itself: a pod has its own identity",
            {"httpTokens": "required", "httpPutResponseHopLimit": 1},
        ),
        "blockDeviceMappings": [
            {
                "deviceName": "/dev/xvda",
                "ebs": {
                    "volumeSize": f"{root_gigabytes(plan, group)}G",
                    "volumeType": "gp3",
                    "encrypted": True,
                    "deleteOnTermination": True,
                },
            }
        ],
        "userData": call("user_data", group.name),
        "tags": {"Name": f"{plan.name}-{group.name}"},
    }
    if group.nvme_bytes:
        spec["instanceStorePolicy"] = "RAID0"
    if own_placement(group):
        spec["placementGroupSelector"] = {"name": Name(f"{name}_placement.name")}
    elif held and held.placement_group:
        spec["placementGroupSelector"] = {"name": held.placement_group}
    if held:
        spec["capacityReservationSelectorTerms"] = [{"id": held.identifier}]
    return spec


def _pool(plan: Plan, group: Group) -> Expression:
    held = group.reservation is not None
    capacity = "reserved" if held else group.capacity
    limits: dict[str, Expression] = {}
    if group.vcpus:
        limits["cpu"] = str(group.count * group.vcpus)
    if group.layout is None:
        pool = by_name(plan.node_pools, group.pool)
        limits[GPU_RESOURCE] = str(group.count * pool.gpus_per_node)
    taint = {"key": nodes.TAINT_KEY, "value": nodes.TAINT_VALUE, "effect": "NoSchedule"}
    disruption: dict[str, Expression] = {
        "consolidationPolicy": "WhenEmpty",
        "consolidateAfter": "Never" if held else IDLE,
        "budgets": [
            Commented("nothing but an end of work empties a node", {"nodes": "0"})
            if held
            else {"nodes": "1"}
        ],
    }
    return {
        "template": {
            "metadata": {"labels": _labels(plan, group)},
            "spec": {
                "nodeClassRef": {
                    "group": CLASS[0].partition("/")[0],
                    "kind": CLASS[1],
                    "name": f"{plan.name}-{group.name}",
                },
                "taints": [taint],
                "requirements": [
                    _requirement(naming.INSTANCE_TYPE_LABEL, [group.node_type]),
                    _requirement(CAPACITY_TYPE, [capacity]),
                    _requirement(ZONE, list(group.zones)),
                ],
                "expireAfter": Commented("nobody stops a run for the node's age", "Never"),
            },
        },
        "limits": Commented("what the plan has, and no node more", limits),
        "disruption": disruption,
    }


def _labels(plan: Plan, group: Group) -> Expression:
    """Also those that feature discovery sets later, with the same values: for a pod that looks for
    a label which no pool has Karpenter starts nothing."""
    wanted = selector(plan, by_name(plan.node_pools, group.pool))
    known = {k: v for k, v in wanted.items() if k != naming.INSTANCE_TYPE_LABEL}
    return dict(nodes.labels(plan, group) | known)


def _requirement(key: str, values: list[str]) -> dict[str, Expression]:
    return {"key": key, "operator": "In", "values": list(values)}
