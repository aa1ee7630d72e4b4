"""The GPU nodes: a launch template and a managed node group for each way of cutting them."""

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pulumi
import pulumi_aws as aws

config = pulumi.Config()

cluster = pulumi.StackReference(config.require("clusterStack"))
cluster_name = cluster.require_output("name")
node_role = cluster.require_output("nodeRole")
subnets = cluster.require_output("subnets")
security_group = cluster.require_output("securityGroup")

# The release of the nodes' image chooses their driver, so nothing else than a person moves it.
release = config.require("releaseVersion")


def subnet(zone: str) -> pulumi.Output[str]:
    return subnets.apply(lambda found: found[zone])


def user_data(group: str) -> str:
    """How nodeadm sets up a node of the group, as EC2 takes it."""
    return base64.b64encode(Path(f"nodes/{group}.txt").read_bytes()).decode()


def disk(gigabytes: int) -> aws.ec2.LaunchTemplateBlockDeviceMappingArgs:
    return aws.ec2.LaunchTemplateBlockDeviceMappingArgs(
        device_name="/dev/xvda",
        ebs=aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
            volume_size=gigabytes,
            volume_type="gp3",
            encrypted="true",
            delete_on_termination="true",
        ),
    )


# Tokens only, and from the node itself: a pod has its own identity.
metadata = aws.ec2.LaunchTemplateMetadataOptionsArgs(
    http_tokens="required",
    http_put_response_hop_limit=1,
)

# EFA needs a group that lets all traffic to itself through, both ways.
efa = aws.ec2.SecurityGroup(
    "efa",
    description="Traffic between GPU nodes",
    vpc_id=cluster.require_output("vpc"),
)
aws.vpc.SecurityGroupIngressRule(
    "efa",
    security_group_id=efa.id,
    referenced_security_group_id=efa.id,
    ip_protocol="-1",
)
aws.vpc.SecurityGroupEgressRule(
    "efa",
    security_group_id=efa.id,
    referenced_security_group_id=efa.id,
    ip_protocol="-1",
)


def interfaces(cards: int, first: str) -> list[aws.ec2.LaunchTemplateNetworkInterfaceArgs]:
    """Card 0 carries IP, and is `first` beside it; each other one is EFA alone, without address."""
    return [
        aws.ec2.LaunchTemplateNetworkInterfaceArgs(
            network_card_index=card,
            device_index=1 if card else 0,
            interface_type="efa-only" if card else first,
            security_groups=[security_group, efa.id],
            delete_on_termination="true",
        )
        for card in range(cards)
    ]


# l40s-x1: 1 × g6e.2xlarge, on-demand, in us-east-1a or us-east-1b
l40s_x1_template = aws.ec2.LaunchTemplate(
    "l40s-x1",
    user_data=user_data("l40s-x1"),
    metadata_options=metadata,
    block_device_mappings=[disk(80)],
    tag_specifications=[
        aws.ec2.LaunchTemplateTagSpecificationArgs(
            resource_type="instance",
            tags={"Name": "eks-l40s-x1"},
        ),
    ],
)
l40s_x1_group = aws.eks.NodeGroup(
    "l40s-x1",
    cluster_name=cluster_name,
    node_group_name="eks-l40s-x1",
    node_role_arn=node_role,
    subnet_ids=[subnet("us-east-1a"), subnet("us-east-1b")],
    ami_type="AL2023_x86_64_NVIDIA",
    release_version=release,
    capacity_type="ON_DEMAND",
    instance_types=["g6e.2xlarge"],
    launch_template=aws.eks.NodeGroupLaunchTemplateArgs(
        id=l40s_x1_template.id,
        version=l40s_x1_template.latest_version.apply(str),
    ),
    scaling_config=aws.eks.NodeGroupScalingConfigArgs(min_size=0, desired_size=0, max_size=1),
    labels={
        "gpuplan.dev/stack": "eks",
        "gpuplan.dev/pool": "l40s-x1",
        "k8s.amazonaws.com/accelerator": "l40s",
    },
    taints=[
        # the value that NVIDIA's operators tolerate
        aws.eks.NodeGroupTaintArgs(key="nvidia.com/gpu", value="present", effect="NO_SCHEDULE"),
    ],
    update_config=aws.eks.NodeGroupUpdateConfigArgs(max_unavailable=1),
    opts=pulumi.ResourceOptions(ignore_changes=["scalingConfig.desiredSize"]),
)
l40s_x1_hint = (
    l40s_x1_group,
    {
        "k8s.io/cluster-autoscaler/node-template/label/gpuplan.dev/stack": "eks",
        "k8s.io/cluster-autoscaler/node-template/label/gpuplan.dev/pool": "l40s-x1",
        "k8s.io/cluster-autoscaler/node-template/label/k8s.amazonaws.com/accelerator": "l40s",
        "k8s.io/cluster-autoscaler/node-template/label/nvidia.com/gpu.product": "NVIDIA-L40S",
        "k8s.io/cluster-autoscaler/node-template/label/node.kubernetes.io/instance-type": (
            "g6e.2xlarge"
        ),
        "k8s.io/cluster-autoscaler/node-template/taint/nvidia.com/gpu": "present:NoSchedule",
        "k8s.io/cluster-autoscaler/node-template/resources/nvidia.com/gpu": "1",
        "k8s.io/cluster-autoscaler/node-template/resources/ephemeral-storage": "360G",
    },
)

# a100-sxm-40gb-x8: 6 × p4d.24xlarge, on-demand, in us-east-1a
a100_sxm_40gb_x8_placement = aws.ec2.PlacementGroup("a100-sxm-40gb-x8", strategy="cluster")
a100_sxm_40gb_x8_template = aws.ec2.LaunchTemplate(
    "a100-sxm-40gb-x8",
    user_data=user_data("a100-sxm-40gb-x8"),
    metadata_options=metadata,
    block_device_mappings=[disk(80)],
    network_interfaces=interfaces(4, "efa"),
    placement=aws.ec2.LaunchTemplatePlacementArgs(group_name=a100_sxm_40gb_x8_placement.name),
    tag_specifications=[
        aws.ec2.LaunchTemplateTagSpecificationArgs(
            resource_type="instance",
            tags={"Name": "eks-a100-sxm-40gb-x8"},
        ),
    ],
)
a100_sxm_40gb_x8_group = aws.eks.NodeGroup(
    "a100-sxm-40gb-x8",
    cluster_name=cluster_name,
    node_group_name="eks-a100-sxm-40gb-x8",
    node_role_arn=node_role,
    subnet_ids=[subnet("us-east-1a")],
    ami_type="AL2023_x86_64_NVIDIA",
    release_version=release,
    capacity_type="ON_DEMAND",
    instance_types=["p4d.24xlarge"],
    launch_template=aws.eks.NodeGroupLaunchTemplateArgs(
        id=a100_sxm_40gb_x8_template.id,
        version=a100_sxm_40gb_x8_template.latest_version.apply(str),
    ),
    scaling_config=aws.eks.NodeGroupScalingConfigArgs(min_size=0, desired_size=0, max_size=6),
    labels={
        "gpuplan.dev/stack": "eks",
        "gpuplan.dev/pool": "a100-sxm-40gb-x8",
        "k8s.amazonaws.com/accelerator": "a100-sxm-40gb",
    },
    taints=[
        # the value that NVIDIA's operators tolerate
        aws.eks.NodeGroupTaintArgs(key="nvidia.com/gpu", value="present", effect="NO_SCHEDULE"),
    ],
    update_config=aws.eks.NodeGroupUpdateConfigArgs(max_unavailable=1),
    opts=pulumi.ResourceOptions(ignore_changes=["scalingConfig.desiredSize"]),
)
a100_sxm_40gb_x8_hint = (
    a100_sxm_40gb_x8_group,
    {
        "k8s.io/cluster-autoscaler/node-template/label/gpuplan.dev/stack": "eks",
        "k8s.io/cluster-autoscaler/node-template/label/gpuplan.dev/pool": "a100-sxm-40gb-x8",
        "k8s.io/cluster-autoscaler/node-template/label/k8s.amazonaws.com/accelerator": (
            "a100-sxm-40gb"
        ),
        "k8s.io/cluster-autoscaler/node-template/label/nvidia.com/gpu.product": (
            "NVIDIA-A100-SXM4-40GB"
        ),
        "k8s.io/cluster-autoscaler/node-template/label/node.kubernetes.io/instance-type": (
            "p4d.24xlarge"
        ),
        "k8s.io/cluster-autoscaler/node-template/taint/nvidia.com/gpu": "present:NoSchedule",
        "k8s.io/cluster-autoscaler/node-template/resources/nvidia.com/gpu": "8",
        "k8s.io/cluster-autoscaler/node-template/resources/vpc.amazonaws.com/efa": "4",
        "k8s.io/cluster-autoscaler/node-template/resources/ephemeral-storage": "6400G",
    },
)

# An empty group says of its nodes what its tags say: without them the autoscaler starts none.
groups = {"l40s-x1": l40s_x1_hint, "a100-sxm-40gb-x8": a100_sxm_40gb_x8_hint}


def own_name(found: Sequence[Any]) -> str:
    """Of the Auto Scaling group below a node group; tags of the latter do not reach it."""
    return str(found[0].autoscaling_groups[0].name)


for name, (group, tags) in groups.items():
    for number, (key, value) in enumerate(tags.items()):
        aws.autoscaling.Tag(
            f"{name}-{number}",
            autoscaling_group_name=group.resources.apply(own_name),
            tag=aws.autoscaling.TagTagArgs(key=key, value=value, propagate_at_launch=False),
        )

# What the autoscaler may change is what this cluster owns.
scaler = aws.iam.Role(
    "autoscaler",
    assume_role_policy=json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"Service": "pods.eks.amazonaws.com"},
                    "Action": ["sts:AssumeRole", "sts:TagSession"],
                },
            ],
        }
    ),
)


def rights(name: str) -> str:
    owned = {f"aws:ResourceTag/k8s.io/cluster-autoscaler/{name}": "owned"}
    return json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Action": [
                        "autoscaling:DescribeAutoScalingGroups",
                        "autoscaling:DescribeAutoScalingInstances",
                        "autoscaling:DescribeLaunchConfigurations",
                        "autoscaling:DescribeScalingActivities",
                        "ec2:DescribeImages",
                        "ec2:DescribeInstanceTypes",
                        "ec2:DescribeLaunchTemplateVersions",
                        "ec2:GetInstanceTypesFromInstanceRequirements",
                        "eks:DescribeNodegroup",
                    ],
                    "Resource": "*",
                },
                {
                    "Effect": "Allow",
                    "Action": [
                        "autoscaling:SetDesiredCapacity",
                        "autoscaling:TerminateInstanceInAutoScalingGroup",
                    ],
                    "Resource": "*",
                    "Condition": {"StringEquals": owned},
                },
            ],
        }
    )


aws.iam.RolePolicy("autoscaler", role=scaler.name, policy=cluster_name.apply(rights))
aws.eks.PodIdentityAssociation(
    "autoscaler",
    cluster_name=cluster_name,
    namespace="kube-system",
    service_account="cluster-autoscaler",
    role_arn=scaler.arn,
)
