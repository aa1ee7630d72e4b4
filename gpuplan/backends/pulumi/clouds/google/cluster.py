"""The program of a GKE cluster: a new one with its network, or one that is there."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.backends.pulumi.clouds.access import EXPORT, access
from gpuplan.backends.pulumi.clouds.google.pools import NAME_LIMIT
from gpuplan.backends.pulumi.clouds.naming import long_name
from gpuplan.backends.pulumi.clouds.programs import cluster_module, module
from gpuplan.backends.pulumi.project import Setting
from gpuplan.backends.pulumi.view import Resource
from gpuplan.diagnostics import Diagnostic
from gpuplan.kubernetes.naming import fingerprint
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.cloud import Cloud
from gpuplan.render import python
from gpuplan.render.environments import Verbatim
from gpuplan.render.tree import File

TEMPLATES = "pulumi/google"
ACCOUNT_LIMIT = 30  # characters of a service account's name (IAM, service accounts)
METADATA = "169.254.169.254/32"  # where pods ask for names, with Cloud DNS
# Drivers of volumes that several nodes mount, beside that of disks.
SHARED = ("gcp_filestore_csi_driver_config", "lustre_csi_driver_config")
NEW_SETTINGS = (
    Setting(
        name="publicAccessCidrs",
        kind="array",
        default=[],
        description="Addresses outside of the network that may reach the API server; none without",
    ),
    Setting(
        name="nodesCidr", kind="string", default="10.0.0.0/20", description="Addresses of nodes"
    ),
    Setting(
        name="podsCidr",
        kind="string",
        default="10.4.0.0/14",
        description="Addresses of pods: a /24 of them for each node",
    ),
    Setting(
        name="servicesCidr",
        kind="string",
        default="10.8.0.0/20",
        description="Addresses of services",
    ),
    Setting(
        name="systemMachineType",
        kind="string",
        default="e2-standard-4",
        description="Machines of what is on no GPU, which the plan has no price of",
    ),
    Setting(
        name="systemNodesPerZone",
        kind="integer",
        default=1,
        description="How many of these there are in each zone",
    ),
    Setting(
        name="deletionProtection",
        kind="boolean",
        default=True,
        description="Whether the cluster is refused to be deleted",
    ),
)


def settings(plan: Plan, cloud: Cloud) -> tuple[Setting, ...]:
    if cloud.existing is None:
        return NEW_SETTINGS
    text = "Where the cluster's control plane is: a region, or a zone"
    return (Setting(name="location", kind="string", default=plan.region, description=text),)


def problems(plan: Plan, cloud: Cloud) -> Iterator[Diagnostic]:
    if cloud.existing is None and len(plan.name) > NAME_LIMIT:
        yield long_name(plan, plan.name, NAME_LIMIT, "cluster")


def account(plan: Plan) -> str:
    """Of the nodes: a name of 6 characters or more that no other stack's has."""
    name = f"{plan.name}-nodes"
    if len(name) <= ACCOUNT_LIMIT:
        return name
    digest = fingerprint(plan.name)
    return f"{name[: ACCOUNT_LIMIT - len(digest) - 1].rstrip('-')}-{digest}"


def files(plan: Plan, cloud: Cloud) -> Iterator[File]:
    region = plan.region or ""

    held = "master_auths[0]" if cloud.existing else "master_auth"
    yield access(cloud, f"{held}.cluster_ca_certificate", "gke-gcloud-auth-plugin", bare=True)
    yield module(TEMPLATES, "identity", account=account(plan), display=f"Nodes of {plan.name}")
    if cloud.existing:
        yield module(TEMPLATES, "existing", name=cloud.existing, region=region)
        return
    yield module(TEMPLATES, "network", name=plan.name, region=region)
    shared = any(v.shared for w in plan.workloads for v in w.volumes)
    yield module(
        TEMPLATES,
        "control",
        name=plan.name,
        region=region,
        zones=Verbatim(python.expression(list(cloud.zones), lead="zones = ")),
        version=cloud.release.version,
        standard_until=Verbatim(cloud.release.standard_until),
        cloud_dns=_cloud_dns(plan),
        addons=SHARED if shared else (),
    )


def _cloud_dns(plan: Plan) -> bool:
    """As the policies of the plan let pods ask for names."""
    dns = plan.network.dns if plan.network else None
    return dns is not None and METADATA in dns.addresses


def exports(cloud: Cloud) -> Iterator[tuple[str, str]]:
    """What the program of the node pools asks for."""
    for output in ("name", "location"):
        yield output, f"{cluster_module(cloud)}.{output}"
    yield "nodes", f"{cluster_module(cloud)}.identity.nodes.email"
    yield EXPORT


def resources(cloud: Cloud) -> Iterator[Resource]:
    yield Resource(type="gcp:serviceaccount/account:Account", name="nodes")
    yield Resource(type="gcp:projects/iAMMember:IAMMember", name="nodes")
    if cloud.existing:
        return
    for kind, marks in (("network:Network", ("protect",)), ("subnetwork:Subnetwork", ())):
        yield Resource(type=f"gcp:compute/{kind}", name="cluster", marks=marks)
    for kind in ("router:Router", "routerNat:RouterNat"):
        yield Resource(type=f"gcp:compute/{kind}", name="cluster")
    yield Resource(type="gcp:container/cluster:Cluster", name="cluster", marks=("protect",))
    yield Resource(type="gcp:container/nodePool:NodePool", name="system")
