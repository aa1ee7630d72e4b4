"""The control plane, and the nodes of what is on no GPU."""

import pulumi
import pulumi_gcp as gcp

import identity
import network

config = pulumi.Config()

# Whoever is outside of the network and may ask the API server; nobody without.
public_cidrs: list[str] = config.get_object("publicAccessCidrs") or []

zones = ["europe-west4-a", "europe-west4-b"]
cluster = gcp.container.Cluster(
    "cluster",
    name="regions-europe-west4",
    location="europe-west4",
    node_locations=zones,
    # supported until 2027-04-11; GKE then upgrades to the next release
    min_master_version="1.35",
    release_channel=gcp.container.ClusterReleaseChannelArgs(channel="REGULAR"),
    network=network.network.id,
    subnetwork=network.subnet.id,
    networking_mode="VPC_NATIVE",
    ip_allocation_policy=gcp.container.ClusterIpAllocationPolicyArgs(
        cluster_secondary_range_name="pods",
        services_secondary_range_name="services",
    ),
    # It enforces network policies: the objects of this stack deny by default.
    datapath_provider="ADVANCED_DATAPATH",
    dns_config=gcp.container.ClusterDnsConfigArgs(cluster_dns="KUBE_DNS"),
    private_cluster_config=gcp.container.ClusterPrivateClusterConfigArgs(
        enable_private_nodes=True,
        enable_private_endpoint=not public_cidrs,
    ),
    master_authorized_networks_config=gcp.container.ClusterMasterAuthorizedNetworksConfigArgs(
        cidr_blocks=[
            gcp.container.ClusterMasterAuthorizedNetworksConfigCidrBlockArgs(cidr_block=cidr)
            for cidr in public_cidrs
        ],
        gcp_public_cidrs_access_enabled=False,
    ),
    master_auth=gcp.container.ClusterMasterAuthArgs(
        client_certificate_config=gcp.container.ClusterMasterAuthClientCertificateConfigArgs(
            issue_client_certificate=False,
        ),
    ),
    enable_shielded_nodes=True,
    # Pods are who their service account says, never their node.
    workload_identity_config=gcp.container.ClusterWorkloadIdentityConfigArgs(
        workload_pool=f"{identity.project}.svc.id.goog",
    ),
    logging_config=gcp.container.ClusterLoggingConfigArgs(
        enable_components=["SYSTEM_COMPONENTS", "WORKLOADS"],
    ),
    # DCGM: GKE's own exporter of the GPUs' metrics.
    monitoring_config=gcp.container.ClusterMonitoringConfigArgs(
        enable_components=["SYSTEM_COMPONENTS", "DCGM"],
        managed_prometheus=gcp.container.ClusterMonitoringConfigManagedPrometheusArgs(
            enabled=True,
        ),
    ),
    addons_config={
        "gce_persistent_disk_csi_driver_config": {"enabled": True},
    },
    # Pools are resources of their own; the one that GKE insists on goes at once.
    remove_default_node_pool=True,
    initial_node_count=1,
    node_config=gcp.container.ClusterNodeConfigArgs(service_account=identity.nodes.email),
    deletion_protection=config.get_bool("deletionProtection") is not False,
    opts=pulumi.ResourceOptions(
        protect=True,
        depends_on=[identity.right],
        ignore_changes=["nodeConfig", "initialNodeCount"],
    ),
)

# What is on no GPU: names, volumes, operators. Its price is in no plan.
gcp.container.NodePool(
    "system",
    name="system",
    cluster=cluster.id,
    node_count=config.get_int("systemNodesPerZone") or 1,
    management=gcp.container.NodePoolManagementArgs(auto_repair=True, auto_upgrade=True),
    network_config=gcp.container.NodePoolNetworkConfigArgs(enable_private_nodes=True),
    node_config=gcp.container.NodePoolNodeConfigArgs(
        machine_type=config.get("systemMachineType") or "e2-standard-4",
        image_type="COS_CONTAINERD",
        service_account=identity.nodes.email,
        oauth_scopes=["https://www.googleapis.com/auth/cloud-platform"],
        shielded_instance_config=gcp.container.NodePoolNodeConfigShieldedInstanceConfigArgs(
            enable_secure_boot=True,
            enable_integrity_monitoring=True,
        ),
        workload_metadata_config=gcp.container.NodePoolNodeConfigWorkloadMetadataConfigArgs(
            mode="GKE_METADATA",
        ),
    ),
)

# What the node pools ask for.
name = cluster.name
location = cluster.location
