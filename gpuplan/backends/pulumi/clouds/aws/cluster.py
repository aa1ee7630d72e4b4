"""The program of an EKS cluster: a new one with its network, or one that is there."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.backends.pulumi.clouds.access import EXPORT, access
from gpuplan.backends.pulumi.clouds.programs import cluster_module, module
from gpuplan.backends.pulumi.project import Setting
from gpuplan.backends.pulumi.view import Resource
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.cloud import Cloud
from gpuplan.render import python
from gpuplan.render.environments import Verbatim
from gpuplan.render.python import Call, Expression, Name
from gpuplan.render.tree import File

TEMPLATES = "pulumi/aws"
# Least privilege, as the EKS user guide has it: what nodes need, and nothing that pods use.
NODES = ("AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly")
ROLES: dict[str, tuple[str, tuple[str, ...]]] = {
    "cluster": ("eks.amazonaws.com", ("AmazonEKSClusterPolicy",)),
    "nodes": ("ec2.amazonaws.com", NODES),
    "network_plugin": ("PODS", ("AmazonEKS_CNI_Policy",)),
    "volumes": ("PODS", ("service-role/AmazonEBSCSIDriverPolicy",)),
}
ADMINISTRATOR = "AmazonEKSClusterAdminPolicy"
# In the order of their installation.
ADDONS = (
    "eks-pod-identity-agent",
    "vpc-cni",
    "kube-proxy",
    "coredns",
    "aws-ebs-csi-driver",
)
NEW_SETTINGS = (
    Setting(
        name="administrators",
        kind="array",
        description="Who administers the cluster: ARNs of IAM roles or users",
    ),
    Setting(
        name="publicAccessCidrs",
        kind="array",
        default=[],
        description="Addresses outside of the VPC that may reach the API server; none without",
    ),
    Setting(
        name="cidr",
        kind="string",
        default="10.0.0.0/16",
        description="The VPC's addresses: a network of /20 or larger",
    ),
    Setting(
        name="systemInstanceType",
        kind="string",
        default="m7i.large",
        description="Machines of what is on no GPU, which the plan has no price of",
    ),
    Setting(
        name="systemNodes", kind="integer", default=2, description="How many of these there are"
    ),
    Setting(
        name="deletionProtection",
        kind="boolean",
        default=True,
        description="Whether AWS refuses to delete the cluster",
    ),
)
EXISTING_SETTINGS = (
    Setting(
        name="subnetIds",
        kind="object",
        description="The private subnet of each zone that nodes are to be in, by the zone",
    ),
)


def settings(_plan: Plan, cloud: Cloud) -> tuple[Setting, ...]:
    if cloud.existing:
        return EXISTING_SETTINGS
    known = cloud.release.addons
    addons = Setting(
        name="addonVersions",
        kind="object",
        default=dict(known.versions) if known else None,
        description=f"The exact version of each add-on: {', '.join(ADDONS)}",
    )
    return (*NEW_SETTINGS[:1], addons, *NEW_SETTINGS[1:])


def partition(region: str) -> str:
    """Of ARNs: other regions have other accounts. Source: AWS, ARNs."""
    for start, name in (("us-gov-", "aws-us-gov"), ("cn-", "aws-cn")):
        if region.startswith(start):
            return name
    return "aws"


def files(plan: Plan, cloud: Cloud) -> Iterator[File]:
    region = plan.region or ""
    zones = Verbatim(python.expression(list(cloud.zones), lead="zones = "))
    arn = partition(region)
    policies = Verbatim(python.expression(f"arn:{arn}:iam::aws:policy", lead="POLICIES = "))
    names = ("nodes",) if cloud.existing else tuple(ROLES)
    statements = [Verbatim(python.expression(_role(n), lead=f"{n} = ")) for n in names]

    held = "certificate_authorities[0]" if cloud.existing else "certificate_authority"
    token = ("eks", "get-token", "--cluster-name", Name("name"), "--region", region)
    yield access(cloud, f"{held}.data", "aws", *token)
    yield module(TEMPLATES, "roles", policies=policies, roles=statements)
    if cloud.existing:
        yield module(TEMPLATES, "existing", name=cloud.existing, zones=zones)
    else:
        yield module(TEMPLATES, "vpc", name=plan.name, zones=zones, s3=f"com.amazonaws.{region}.s3")
        yield module(
            TEMPLATES,
            "control",
            name=plan.name,
            version=cloud.release.version,
            standard_until=Verbatim(cloud.release.standard_until),
            admin_policy=f"arn:{arn}:eks::aws:cluster-access-policy/{ADMINISTRATOR}",
        )


def _role(name: str) -> Expression:
    service, policies = ROLES[name]
    given: Expression = Name("PODS") if service == "PODS" else service
    return Call("role", (name.replace("_", "-"), given, *policies))


def exports(cloud: Cloud) -> Iterator[tuple[str, str]]:
    """What the program of the node pools asks for."""
    outputs = ("name", "vpc", "subnets", "securityGroup", "nodeRole", "nodeRoleName")
    sources = ("name", "vpc_id", "subnets", "security_group", "node_role", "node_role_name")
    renamed = {"name": "cluster.name", "subnets": "subnet_ids"} if cloud.existing else {}
    for output, source in zip(outputs, sources, strict=True):
        yield output, f"{cluster_module(cloud)}.{renamed.get(source, source)}"
    yield EXPORT


def resources(cloud: Cloud) -> Iterator[Resource]:
    """`administrator-N` are as many as the settings name; the list has the first."""
    for name in ("nodes",) if cloud.existing else ROLES:
        key = name.replace("_", "-")
        yield Resource(type="aws:iam/role:Role", name=key)
        for policy in ROLES[name][1]:
            kind = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
            yield Resource(type=kind, name=f"{key}-{policy.rpartition('/')[2]}")
    if not cloud.existing:
        yield from _network(cloud)
        yield from _control()


def _network(cloud: Cloud) -> Iterator[Resource]:
    yield Resource(type="aws:ec2/vpc:Vpc", name="cluster", marks=("protect",))
    yield Resource(type="aws:ec2/internetGateway:InternetGateway", name="cluster")
    yield Resource(type="aws:ec2/eip:Eip", name="nat")
    yield Resource(type="aws:ec2/natGateway:NatGateway", name="nat")
    yield Resource(type="aws:ec2/vpcEndpoint:VpcEndpoint", name="s3")
    for side in ("public", "private"):
        yield Resource(type="aws:ec2/routeTable:RouteTable", name=side)
        for zone in cloud.zones:
            yield Resource(type="aws:ec2/subnet:Subnet", name=f"{side}-{zone}")
            kind = "aws:ec2/routeTableAssociation:RouteTableAssociation"
            yield Resource(type=kind, name=f"{side}-{zone}")


def _control() -> Iterator[Resource]:
    yield Resource(type="aws:eks/cluster:Cluster", name="cluster", marks=("protect",))
    yield Resource(type="aws:eks/accessEntry:AccessEntry", name="administrator-0")
    kind = "aws:eks/accessPolicyAssociation:AccessPolicyAssociation"
    yield Resource(type=kind, name="administrator-0")
    yield Resource(type="aws:ec2/launchTemplate:LaunchTemplate", name="system")
    yield Resource(type="aws:eks/nodeGroup:NodeGroup", name="system")
    for name in ADDONS:
        yield Resource(type="aws:eks/addon:Addon", name=name)
