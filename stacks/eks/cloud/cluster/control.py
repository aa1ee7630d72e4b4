"""The control plane, who may use it, and the add-ons of every node."""

import json

import pulumi
import pulumi_aws as aws

import roles
import vpc

config = pulumi.Config()

# Whoever is outside of the VPC and may ask the API server; nobody without.
public_cidrs: list[str] = config.get_object("publicAccessCidrs") or []
administrators: list[str] = config.require_object("administrators")
versions: dict[str, str] = config.require_object("addonVersions")

cluster = aws.eks.Cluster(
    "cluster",
    name="eks",
    # supported until 2027-03-27; what AWS then does without EXTENDED is an upgrade
    version="1.35",
    role_arn=roles.cluster.arn,
    vpc_config=aws.eks.ClusterVpcConfigArgs(
        subnet_ids=[subnet.id for subnet in vpc.private.values()],
        endpoint_private_access=True,
        endpoint_public_access=bool(public_cidrs),
        public_access_cidrs=public_cidrs or None,
    ),
    # Nobody is an administrator for having made the cluster.
    access_config=aws.eks.ClusterAccessConfigArgs(
        authentication_mode="API",
        bootstrap_cluster_creator_admin_permissions=False,
    ),
    bootstrap_self_managed_addons=False,
    upgrade_policy=aws.eks.ClusterUpgradePolicyArgs(support_type="STANDARD"),
    enabled_cluster_log_types=["api", "audit", "authenticator"],
    deletion_protection=config.get_bool("deletionProtection") is not False,
    opts=pulumi.ResourceOptions(protect=True, depends_on=roles.attached),
)

for number, principal in enumerate(administrators):
    entry = aws.eks.AccessEntry(
        f"administrator-{number}",
        cluster_name=cluster.name,
        principal_arn=principal,
    )
    aws.eks.AccessPolicyAssociation(
        f"administrator-{number}",
        cluster_name=cluster.name,
        principal_arn=entry.principal_arn,
        policy_arn="arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
        access_scope=aws.eks.AccessPolicyAssociationAccessScopeArgs(type="cluster"),
    )


def addon(
    name: str,
    settings: dict[str, object] | None = None,
    account: str | None = None,
    role: aws.iam.Role | None = None,
    after: pulumi.Resource = cluster,
) -> aws.eks.Addon:
    """An add-on by its exact version. `role` is that of its service `account`."""
    if name not in versions:
        raise pulumi.RunError(f"addonVersions has no {name}: README.md says how to find it")
    of_pods = None
    if role is not None and account is not None:
        identity = aws.eks.AddonPodIdentityAssociationArgs(
            role_arn=role.arn,
            service_account=account,
        )
        of_pods = [identity]
    return aws.eks.Addon(
        name,
        cluster_name=cluster.name,
        addon_name=name,
        addon_version=versions[name],
        configuration_values=json.dumps(settings) if settings else None,
        pod_identity_associations=of_pods,
        resolve_conflicts_on_create="OVERWRITE",
        resolve_conflicts_on_update="OVERWRITE",
        opts=pulumi.ResourceOptions(depends_on=[after]),
    )


identities = addon("eks-pod-identity-agent")
# The objects of this stack deny by default, so somebody has to enforce it.
network_plugin = addon(
    "vpc-cni",
    {"enableNetworkPolicy": "true"},
    "aws-node",
    roles.network_plugin,
    identities,
)
addon("kube-proxy")

# What is on no GPU: names, volumes, operators. Its price is in no plan.
system_template = aws.ec2.LaunchTemplate(
    "system",
    metadata_options=aws.ec2.LaunchTemplateMetadataOptionsArgs(
        http_tokens="required",
        http_put_response_hop_limit=1,
    ),
    block_device_mappings=[
        aws.ec2.LaunchTemplateBlockDeviceMappingArgs(
            device_name="/dev/xvda",
            ebs=aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
                volume_size=50,
                volume_type="gp3",
                encrypted="true",
            ),
        ),
    ],
)
system_nodes = config.get_int("systemNodes") or 2
system = aws.eks.NodeGroup(
    "system",
    cluster_name=cluster.name,
    node_group_name="system",
    node_role_arn=roles.nodes.arn,
    subnet_ids=[subnet.id for subnet in vpc.private.values()],
    ami_type="AL2023_x86_64_STANDARD",
    instance_types=[config.get("systemInstanceType") or "m7i.large"],
    launch_template=aws.eks.NodeGroupLaunchTemplateArgs(
        id=system_template.id,
        version=system_template.latest_version.apply(str),
    ),
    scaling_config=aws.eks.NodeGroupScalingConfigArgs(
        min_size=system_nodes,
        desired_size=system_nodes,
        max_size=system_nodes,
    ),
    update_config=aws.eks.NodeGroupUpdateConfigArgs(max_unavailable=1),
    opts=pulumi.ResourceOptions(depends_on=[network_plugin]),
)

addon("coredns", after=system)
# Its class is the cluster's default, which EKS has none of.
addon(
    "aws-ebs-csi-driver",
    {"defaultStorageClass": {"enabled": True}},
    "ebs-csi-controller-sa",
    roles.volumes,
    system,
)

# What the node pools ask for.
name = cluster.name
vpc_id = vpc.vpc.id
subnets = {zone: subnet.id for zone, subnet in vpc.private.items()}
security_group = cluster.vpc_config.apply(lambda found: found.cluster_security_group_id)
node_role = roles.nodes.arn
node_role_name = roles.nodes.name
