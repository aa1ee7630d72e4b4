"""Who may do what: one role a task, each with the policies that AWS made for it."""

import json

import pulumi
import pulumi_aws as aws

POLICIES = "arn:aws:iam::aws:policy"
# Roles of pods are theirs alone: nodes have no right that a pod could borrow.
PODS = "pods.eks.amazonaws.com"
# A cluster that comes before its rights fails, and one that outlives them cannot be removed.
attached: list[pulumi.Resource] = []


def role(name: str, service: str, *names: str) -> aws.iam.Role:
    """A role that `service` takes on, with managed policies."""
    actions = ["sts:AssumeRole", "sts:TagSession"] if service == PODS else ["sts:AssumeRole"]
    trust = {"Effect": "Allow", "Principal": {"Service": service}, "Action": actions}
    made = aws.iam.Role(
        name,
        assume_role_policy=json.dumps({"Version": "2012-10-17", "Statement": [trust]}),
    )
    for policy in names:
        right = aws.iam.RolePolicyAttachment(
            f"{name}-{policy.rpartition('/')[2]}",
            role=made.name,
            policy_arn=f"{POLICIES}/{policy}",
        )
        attached.append(right)
    return made


cluster = role("cluster", "eks.amazonaws.com", "AmazonEKSClusterPolicy")

nodes = role(
    "nodes",
    "ec2.amazonaws.com",
    "AmazonEKSWorkerNodePolicy",
    "AmazonEC2ContainerRegistryPullOnly",
)

network_plugin = role("network-plugin", PODS, "AmazonEKS_CNI_Policy")

volumes = role("volumes", PODS, "service-role/AmazonEBSCSIDriverPolicy")
