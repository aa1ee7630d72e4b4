"""The GPU nodes: a node pool for each way of cutting them."""

import pulumi
import pulumi_gcp as gcp

config = pulumi.Config()

cluster = pulumi.StackReference(config.require("clusterStack"))
cluster_name = cluster.require_output("name")
location = cluster.require_output("location")
nodes = cluster.require_output("nodes")

# GKE installs it. Written out always: without, GKE fills in a value, and the next change of it
# replaces the pool.
driver = gcp.container.NodePoolNodeConfigGuestAcceleratorGpuDriverInstallationConfigArgs(
    gpu_driver_version=config.get("driverVersion") or "DEFAULT",
)
# The value that NVIDIA's operators tolerate, and that GKE gives to nodes with GPUs.
gpu = gcp.container.NodePoolNodeConfigTaintArgs(
    key="nvidia.com/gpu",
    value="present",
    effect="NO_SCHEDULE",
)
# CPUs and memory beside the GPUs; a pod that cannot have it runs all the same. GKE itself reserves
# the memory that its manager needs.
kubelet = gcp.container.NodePoolNodeConfigKubeletConfigArgs(
    cpu_manager_policy="static",
    topology_manager=gcp.container.NodePoolNodeConfigKubeletConfigTopologyManagerArgs(
        policy="best-effort",
        scope="pod",
    ),
    memory_manager=gcp.container.NodePoolNodeConfigKubeletConfigMemoryManagerArgs(policy="Static"),
    insecure_kubelet_readonly_port_enabled="FALSE",
)
shielded = gcp.container.NodePoolNodeConfigShieldedInstanceConfigArgs(
    enable_secure_boot=True,
    enable_integrity_monitoring=True,
)
# A pod has its own identity, never its node's.
metadata = gcp.container.NodePoolNodeConfigWorkloadMetadataConfigArgs(mode="GKE_METADATA")
# One node after the other, and none beside those that are paid for.
upgrades = gcp.container.NodePoolUpgradeSettingsArgs(
    strategy="SURGE",
    max_surge=0,
    max_unavailable=1,
)

# l4-x1: 5 × g2-standard-8, on-demand, in europe-west4-a or europe-west4-b
l4_x1_pool = gcp.container.NodePool(
    "l4-x1",
    name="regions-europe-west4-l4-x1",
    cluster=cluster_name,
    location=location,
    node_locations=["europe-west4-a", "europe-west4-b"],
    autoscaling=gcp.container.NodePoolAutoscalingArgs(
        total_min_node_count=0,
        total_max_node_count=5,
        location_policy="ANY",
    ),
    initial_node_count=0,
    management=gcp.container.NodePoolManagementArgs(auto_repair=True, auto_upgrade=True),
    upgrade_settings=upgrades,
    network_config=gcp.container.NodePoolNetworkConfigArgs(enable_private_nodes=True),
    node_config=gcp.container.NodePoolNodeConfigArgs(
        machine_type="g2-standard-8",
        image_type="COS_CONTAINERD",
        disk_size_gb=269,
        guest_accelerators=[
            gcp.container.NodePoolNodeConfigGuestAcceleratorArgs(
                type="nvidia-l4",
                count=1,
                gpu_driver_installation_config=driver,
            ),
        ],
        gvnic=gcp.container.NodePoolNodeConfigGvnicArgs(enabled=True),
        service_account=nodes,
        oauth_scopes=["https://www.googleapis.com/auth/cloud-platform"],
        labels={"gpuplan.dev/stack": "regions-europe-west4", "gpuplan.dev/pool": "l4-x1"},
        taints=[gpu],
        kubelet_config=kubelet,
        shielded_instance_config=shielded,
        workload_metadata_config=metadata,
    ),
    opts=pulumi.ResourceOptions(ignore_changes=["nodeCount", "initialNodeCount"]),
)
