"""The control plane, who may use it, and the nodes of what is on no GPU."""

import pulumi
from pulumi_azure_native import authorization, containerservice, managedidentity

import network

config = pulumi.Config()

# Whoever is outside of the network and may ask the API server; without any the cluster is private.
public_cidrs: list[str] = config.get_object("publicAccessCidrs") or []
administrators: list[str] = config.require_object("administrators")

# Built-in roles, by the numbers that they have in every subscription.
NETWORK_CONTRIBUTOR = "4d97b98b-1d4f-4787-a291-c67834d212e7"


def definition(role: str) -> pulumi.Output[str]:
    """A built-in role of the subscription, the third part of every identifier in it."""
    return network.group.id.apply(
        lambda found: "/".join(
            [*found.split("/")[:3], "providers/Microsoft.Authorization/roleDefinitions", role]
        )
    )


# What the control plane may do: join nodes to the subnet, and nothing in other subscriptions.
identity = managedidentity.UserAssignedIdentity(
    "cluster",
    resource_group_name=network.group.name,
    location=network.group.location,
)
rights: list[pulumi.Resource] = [
    authorization.RoleAssignment(
        "network",
        principal_id=identity.principal_id,
        principal_type="ServicePrincipal",
        role_definition_id=definition(NETWORK_CONTRIBUTOR),
        scope=network.nodes.id,
    ),
]

system = containerservice.ManagedClusterAgentPoolProfileArgs(
    name="system",
    mode="System",
    type="VirtualMachineScaleSets",
    os_type="Linux",
    os_sku="Ubuntu",
    vm_size=config.get("systemVmSize") or "Standard_D4ds_v5",
    count=config.get_int("systemNodes") or 2,
    availability_zones=network.zones or None,
    vnet_subnet_id=network.nodes.id,
)
if public_cidrs:
    access = containerservice.ManagedClusterAPIServerAccessProfileArgs(
        authorized_ip_ranges=public_cidrs,
        disable_run_command=True,
    )
else:
    access = containerservice.ManagedClusterAPIServerAccessProfileArgs(
        enable_private_cluster=True,
        enable_private_cluster_public_fqdn=False,
        private_dns_zone="system",
        disable_run_command=True,
    )

cluster = containerservice.ManagedCluster(
    "cluster",
    resource_name_="aks",
    resource_group_name=network.group.name,
    location=network.group.location,
    dns_prefix="aks",
    # supported until 2027-06-01 at least
    kubernetes_version="1.36",
    sku=containerservice.ManagedClusterSKUArgs(name="Base", tier="Standard"),
    support_plan="KubernetesOfficial",
    identity=containerservice.ManagedClusterIdentityArgs(
        type=containerservice.ResourceIdentityType.USER_ASSIGNED,
        user_assigned_identities=[identity.id],
    ),
    # People come by Entra ID alone; nobody is an administrator for having made the cluster.
    disable_local_accounts=True,
    enable_rbac=True,
    aad_profile=containerservice.ManagedClusterAADProfileArgs(
        managed=True,
        enable_azure_rbac=True,
        admin_group_object_ids=administrators,
    ),
    # Pods have identities of their own: nothing is borrowed from their node.
    oidc_issuer_profile=containerservice.ManagedClusterOIDCIssuerProfileArgs(enabled=True),
    security_profile=containerservice.ManagedClusterSecurityProfileArgs(
        workload_identity=containerservice.ManagedClusterSecurityProfileWorkloadIdentityArgs(
            enabled=True,
        ),
    ),
    api_server_access_profile=access,
    network_profile=containerservice.ContainerServiceNetworkProfileArgs(
        network_plugin="azure",
        network_plugin_mode="overlay",
        # The objects of this stack deny by default, so somebody has to enforce it.
        network_dataplane="cilium",
        network_policy="cilium",
        outbound_type="userAssignedNATGateway",
        load_balancer_sku="standard",
        pod_cidr="10.244.0.0/16",
        service_cidr="10.0.0.0/16",
        dns_service_ip="10.0.0.10",
    ),
    # Nothing but a person moves releases and images: either one restarts work that runs.
    auto_upgrade_profile=containerservice.ManagedClusterAutoUpgradeProfileArgs(
        upgrade_channel="none",
        node_os_upgrade_channel="None",
    ),
    agent_pool_profiles=[system],
    # An edit of the list touches the GPU pools too, which are resources of cloud/pools.
    opts=pulumi.ResourceOptions(
        protect=True,
        depends_on=rights,
        ignore_changes=["agentPoolProfiles"],
    ),
)

# What the node pools ask for.
name = cluster.name
resource_group = network.group.name
subnet = network.nodes.id
