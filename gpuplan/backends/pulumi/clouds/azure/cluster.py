"""The program of an AKS cluster: a new one with its network, or one that is there."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.backends.pulumi.clouds.programs import cluster_module, module
from gpuplan.backends.pulumi.project import Setting
from gpuplan.backends.pulumi.view import Resource
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.cloud import Cloud
from gpuplan.render import python
from gpuplan.render.environments import Verbatim
from gpuplan.render.tree import File

TEMPLATES = "pulumi/azure"
OUTPUTS = {"name": "name", "resourceGroup": "resource_group", "subnet": "subnet"}
SYSTEM_SIZE = "Standard_D4ds_v5"
NEW_SETTINGS = (
    Setting(
        name="administrators",
        kind="array",
        description="Who administers the cluster: object identifiers of Entra groups",
    ),
    Setting(
        name="publicAccessCidrs",
        kind="array",
        default=[],
        description="Addresses outside of the network that may reach the API server; without any"
        " it is private, and a change from the one to the other makes another cluster",
    ),
    Setting(
        name="cidr",
        kind="string",
        default="10.224.0.0/16",
        description="The network's addresses: /20 or larger, and none of 10.0.0.0/16 and"
        " 10.244.0.0/16, which services and pods have",
    ),
    Setting(
        name="systemVmSize",
        kind="string",
        default=SYSTEM_SIZE,
        description="Machines of what is on no GPU, which the plan has no price of",
    ),
    Setting(
        name="systemNodes", kind="integer", default=2, description="How many of these there are"
    ),
)
EXISTING_SETTINGS = (
    Setting(name="resourceGroup", kind="string", description="The cluster's resource group"),
    Setting(
        name="subnetId",
        kind="string",
        default="",
        description="The subnet that nodes are to be in; without, that of the cluster's first pool",
    ),
)


def settings(_plan: Plan, cloud: Cloud) -> tuple[Setting, ...]:
    return EXISTING_SETTINGS if cloud.existing else NEW_SETTINGS


def reserved(cloud: Cloud) -> list[str]:
    """The resource groups of capacity reservation groups, as scopes of rights."""
    held = (g.reservation.identifier for g in cloud.groups if g.reservation)
    return list(dict.fromkeys("/".join(identifier.split("/")[:5]) for identifier in held))


def files(plan: Plan, cloud: Cloud) -> Iterator[File]:
    if cloud.existing:
        yield module(TEMPLATES, "existing", name=cloud.existing)
        return
    zones = python.expression(list(cloud.zones), lead="zones: list[str] = ")
    yield module(TEMPLATES, "network", name=plan.name, region=plan.region, zones=Verbatim(zones))
    held = python.expression(reserved(cloud), lead="reservations = ")
    yield module(
        TEMPLATES,
        "control",
        name=plan.name,
        version=cloud.release.version,
        standard_until=Verbatim(cloud.release.standard_until),
        reservations=Verbatim(held) if reserved(cloud) else None,
    )


def exports(cloud: Cloud) -> Iterator[tuple[str, str]]:
    """What the program of the node pools asks for."""
    for output, source in OUTPUTS.items():
        yield output, f"{cluster_module(cloud)}.{source}"


def resources(cloud: Cloud) -> Iterator[Resource]:
    if cloud.existing:
        return
    own = (
        ("resources:ResourceGroup", "cluster", ("protect",)),
        ("network:PublicIPAddress", "nat", ()),
        ("network:NatGateway", "nat", ()),
        ("network:VirtualNetwork", "cluster", ("protect",)),
        ("network:Subnet", "nodes", ()),
        ("managedidentity:UserAssignedIdentity", "cluster", ()),
        ("authorization:RoleAssignment", "network", ()),
        ("containerservice:ManagedCluster", "cluster", ("protect",)),
    )
    for kind, name, marks in own:
        yield Resource(type=f"azure-native:{kind}", name=name, marks=marks)
    for number, _ in enumerate(reserved(cloud)):
        kind = "azure-native:authorization:RoleAssignment"
        yield Resource(type=kind, name=f"reservation-{number}")
