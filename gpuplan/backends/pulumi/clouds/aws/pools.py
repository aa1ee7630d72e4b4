"""The program of a stack's node pools on EKS."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.backends.pulumi.clouds import nodes
from gpuplan.backends.pulumi.clouds.naming import name_problems, node_group_name
from gpuplan.backends.pulumi.clouds.programs import cluster_stack
from gpuplan.backends.pulumi.clouds.statements import GroupSection, call, section
from gpuplan.backends.pulumi.project import Setting
from gpuplan.backends.pulumi.view import Resource
from gpuplan.diagnostics import Diagnostic
from gpuplan.kubernetes.nodes import selector
from gpuplan.plan.model import Plan, by_name
from gpuplan.plan.outside.cloud import Cloud, Group
from gpuplan.render import python
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.python import Call, Commented, Expression, Name, identifiers
from gpuplan.units import GB, GIB

IMAGES_BYTES = 150 * GIB  # of engines, on a root volume; as much as several releases of one take
ROOT_GB = 80  # where images lie on the machine's own drives
# The device plugin is not there yet when the autoscaler looks: it knows nodes by their tags.
HINT = "k8s.io/cluster-autoscaler/node-template"
CAPACITIES = {
    "on-demand": "ON_DEMAND",
    "reserved": "ON_DEMAND",
    "spot": "SPOT",
    "block": "CAPACITY_BLOCK",
}
AMI_TYPE, ARM_AMI_TYPE = "AL2023_x86_64_NVIDIA", "AL2023_ARM_64_NVIDIA"
ARM = ("g5g.", "p6e-gb")  # Graviton, Grace
NAME_LIMIT = 63  # of a node group (EKS user guide)
SCALE = "scalingConfig.desiredSize"


def settings(plan: Plan, cloud: Cloud) -> Iterator[Setting]:
    yield cluster_stack(plan)
    yield Setting(
        name="releaseVersion",
        kind="string",
        default=cloud.release.image.release if cloud.release.image else None,
        description="The release of the nodes' image, which brings their driver",
    )
    if any(g.capacity == "block" for g in cloud.groups):
        yield Setting(
            name="blocksStarted",
            kind="boolean",
            default=False,
            description="Whether the Capacity Blocks have begun; before that nothing can start",
        )


def program(plan: Plan, cloud: Cloud) -> str:
    named = dict(zip(cloud.groups, identifiers(g.name for g in cloud.groups), strict=True))
    scales = cloud.scaling == "autoscaler"
    hints: dict[str, Expression] = {
        g.name: Name(f"{name}_hint") for g, name in named.items() if scales
    }
    groups = [_section(plan, cloud, g, name) for g, name in named.items()]
    return render(
        "python",
        "pulumi/aws/groups.py.j2",
        groups=groups,
        together=any(g.network_cards for g in cloud.groups),
        blocks=any(g.capacity == "block" for g in cloud.groups),
        scales=scales,
        hints=Verbatim(python.expression(hints, lead="groups = ")),
    )


def resources(plan: Plan, cloud: Cloud) -> Iterator[Resource]:
    if any(g.network_cards for g in cloud.groups):
        yield Resource(type="aws:ec2/securityGroup:SecurityGroup", name="efa")
        for way in ("Ingress", "Egress"):
            kind = f"aws:vpc/securityGroup{way}Rule:SecurityGroup{way}Rule"
            yield Resource(type=kind, name="efa")
    for group in cloud.groups:
        yield Resource(type="aws:ec2/launchTemplate:LaunchTemplate", name=group.name)
        yield Resource(type="aws:eks/nodeGroup:NodeGroup", name=group.name)
        if own_placement(group):
            yield Resource(type="aws:ec2/placementGroup:PlacementGroup", name=group.name)
        if cloud.scaling == "autoscaler":
            for number, _ in enumerate(hints(plan, group)):
                yield Resource(type="aws:autoscaling/tag:Tag", name=f"{group.name}-{number}")
    if cloud.scaling == "autoscaler":
        yield Resource(type="aws:iam/role:Role", name="autoscaler")
        yield Resource(type="aws:iam/rolePolicy:RolePolicy", name="autoscaler")
        kind = "aws:eks/podIdentityAssociation:PodIdentityAssociation"
        yield Resource(type=kind, name="autoscaler")


def hints(plan: Plan, group: Group) -> dict[str, str]:
    """Tags of the group's machines-to-be, by which the autoscaler foresees their nodes."""
    pool = by_name(plan.node_pools, group.pool)
    seen = labels(plan, group) | selector(plan, pool)  # what feature discovery says later
    tags = {f"{HINT}/label/{k}": v for k, v in seen.items()}
    tags[f"{HINT}/taint/{nodes.TAINT_KEY}"] = f"{nodes.TAINT_VALUE}:NoSchedule"
    offered = nodes.resources(plan, group)
    disk = group.nvme_bytes or nodes.disk_bytes(plan, group, IMAGES_BYTES)
    offered["ephemeral-storage"] = f"{disk * 8 // 10 // GB}G"  # less what evicts pods, and images
    return tags | {f"{HINT}/resources/{k}": v for k, v in offered.items()}


def labels(plan: Plan, group: Group) -> dict[str, str]:
    """The last one tells the autoscaler that a node is not ready before its GPUs are there."""
    gpu = by_name(plan.node_pools, group.pool).gpu
    return nodes.labels(plan, group) | {"k8s.amazonaws.com/accelerator": gpu}


def root_gigabytes(plan: Plan, group: Group) -> int:
    """Of a node's root volume, which also holds what drives of its own would."""
    if group.nvme_bytes:
        return ROOT_GB
    return int(-(-nodes.disk_bytes(plan, group, IMAGES_BYTES) // GB))


def problems(plan: Plan, cloud: Cloud) -> Iterator[Diagnostic]:
    yield from name_problems(plan, cloud, NAME_LIMIT)


def own_placement(group: Group) -> bool:
    """A group of machines that a reservation was not made with finds none of them."""
    return group.together and group.reservation is None


def _section(plan: Plan, cloud: Cloud, group: Group, name: str) -> GroupSection:
    statements = []
    if own_placement(group):
        placement = call("aws.ec2.PlacementGroup", group.name, strategy="cluster")
        statements.append(python.expression(placement, lead=f"{name}_placement = "))
    statements.append(python.expression(_template(plan, group, name), lead=f"{name}_template = "))
    lead = f"{name}_group = "
    statements.append(python.expression(_node_group(plan, cloud, group, name), lead=lead))
    if cloud.scaling == "autoscaler":
        tags: dict[str, Expression] = dict(hints(plan, group))
        pair = Call("", (Name(f"{name}_group"), tags))
        statements.append(python.expression(pair, lead=f"{name}_hint = "))
    return section(group, statements)


def _template(plan: Plan, group: Group, name: str) -> Expression:
    cards, held = group.network_cards, group.reservation
    placement = held.placement_group if held else None
    own: Expression = Name(f"{name}_placement.name") if own_placement(group) else None
    block = group.capacity == "block"
    return call(
        "aws.ec2.LaunchTemplate",
        group.name,
        instance_type=group.node_type if block else None,
        user_data=call("user_data", group.name),
        metadata_options=Name("metadata"),
        block_device_mappings=[call("disk", root_gigabytes(plan, group))],
        network_interfaces=call("interfaces", cards.cards, cards.first) if cards else None,
        placement=call("aws.ec2.LaunchTemplatePlacementArgs", group_name=own or placement)
        if own or placement
        else None,
        instance_market_options=call(
            "aws.ec2.LaunchTemplateInstanceMarketOptionsArgs", market_type="capacity-block"
        )
        if block
        else None,
        capacity_reservation_specification=_reserved(held.identifier) if held else None,
        tag_specifications=[
            call(
                "aws.ec2.LaunchTemplateTagSpecificationArgs",
                resource_type="instance",
                tags={"Name": f"{plan.name}-{group.name}"},
            )
        ],
    )


def _reserved(identifier: str) -> Call:
    target = "aws.ec2.LaunchTemplateCapacityReservationSpecificationCapacityReservationTargetArgs"
    return call(
        "aws.ec2.LaunchTemplateCapacityReservationSpecificationArgs",
        capacity_reservation_target=call(target, capacity_reservation_id=identifier),
    )


def _node_group(plan: Plan, cloud: Cloud, group: Group, name: str) -> Expression:
    zones: list[Expression] = [call("subnet", zone) for zone in group.zones]
    block, scaled = group.capacity == "block", cloud.scaling == "autoscaler"
    ignored = call("pulumi.ResourceOptions", ignore_changes=[SCALE]) if scaled else None
    return call(
        "aws.eks.NodeGroup",
        group.name,
        cluster_name=Name("cluster_name"),
        node_group_name=node_group_name(plan, group),
        node_role_arn=Name("node_role"),
        subnet_ids=zones,
        ami_type=ARM_AMI_TYPE if group.node_type.startswith(ARM) else AMI_TYPE,
        release_version=Name("release"),
        capacity_type=CAPACITIES[group.capacity],
        instance_types=None if block else [group.node_type],
        launch_template=call(
            "aws.eks.NodeGroupLaunchTemplateArgs",
            id=Name(f"{name}_template.id"),
            version=call(f"{name}_template.latest_version.apply", Name("str")),
        ),
        scaling_config=_scaling(group, scaled=scaled),
        labels=dict(labels(plan, group)),
        taints=[
            Commented(
                "the value that NVIDIA's operators tolerate",
                call(
                    "aws.eks.NodeGroupTaintArgs",
                    key=nodes.TAINT_KEY,
                    value=nodes.TAINT_VALUE,
                    effect="NO_SCHEDULE",
                ),
            )
        ],
        update_config=call("aws.eks.NodeGroupUpdateConfigArgs", max_unavailable=1),
        opts=ignored,
    )


def _scaling(group: Group, *, scaled: bool) -> Call:
    least: Expression = 0 if scaled else group.count
    if group.capacity == "block":
        least = Call("started", (group.count,))
    return call(
        "aws.eks.NodeGroupScalingConfigArgs",
        min_size=0 if group.capacity == "block" else least,
        desired_size=least,
        max_size=group.count,
    )
