"""The GPU nodes: an agent pool for each way of cutting them."""

import pulumi
from pulumi_azure_native import containerservice

config = pulumi.Config()

cluster = pulumi.StackReference(config.require("clusterStack"))
cluster_name = cluster.require_output("name")
resource_group = cluster.require_output("resourceGroup")
# None where AKS made the network, and finds its subnet by itself.
subnet = cluster.require_output("subnet").apply(lambda found: found or None)

# CPUs that are a pod's own, and beside its GPUs; a pod that cannot have it runs all the same.
kubelet = containerservice.KubeletConfigArgs(
    cpu_manager_policy="static",
    topology_manager_policy="best-effort",
)
# GPU operator installs the driver and the container toolkit, and AKS neither.
driver = containerservice.GPUProfileArgs(driver="None")
# One node after the other, and none beyond the plan's: surge asks for machines that nobody has.
upgrades = containerservice.AgentPoolUpgradeSettingsArgs(max_surge="0", max_unavailable="1")

# a100-pcie-80gb-x1: 1 × Standard_NC24ads_A100_v4, on-demand, in zone 1 or zone 2
a100_pcie_80gb_x1 = containerservice.AgentPool(
    "a100-pcie-80gb-x1",
    agent_pool_name="a100pca4dbdc",
    resource_name_=cluster_name,
    resource_group_name=resource_group,
    mode="User",
    type="VirtualMachineScaleSets",
    os_type="Linux",
    os_sku="Ubuntu",
    orchestrator_version="1.36",
    vm_size="Standard_NC24ads_A100_v4",
    availability_zones=["1", "2"],
    vnet_subnet_id=subnet,
    scale_set_priority="Regular",
    count=0,
    enable_auto_scaling=True,
    min_count=0,
    max_count=1,
    gpu_profile=driver,
    kubelet_config=kubelet,
    os_disk_type="Managed",
    os_disk_size_gb=200,
    kubelet_disk_type="OS",
    enable_node_public_ip=False,
    upgrade_settings=upgrades,
    node_labels={
        "gpuplan.dev/stack": "aks",
        "gpuplan.dev/pool": "a100-pcie-80gb-x1",
        "nvidia.com/gpu.product": "NVIDIA-A100-80GB-PCIe",
    },
    node_taints=[
        # the value that NVIDIA's operators tolerate
        "nvidia.com/gpu=present:NoSchedule",
    ],
    opts=pulumi.ResourceOptions(ignore_changes=["count"]),
)

# a100-sxm-40gb-x8: 8 × Standard_ND96asr_v4, on-demand, in zone 1
a100_sxm_40gb_x8 = containerservice.AgentPool(
    "a100-sxm-40gb-x8",
    agent_pool_name="a100sxd58e79",
    resource_name_=cluster_name,
    resource_group_name=resource_group,
    mode="User",
    type="VirtualMachineScaleSets",
    os_type="Linux",
    os_sku="Ubuntu",
    orchestrator_version="1.36",
    vm_size="Standard_ND96asr_v4",
    availability_zones=["1"],
    vnet_subnet_id=subnet,
    scale_set_priority="Regular",
    count=1,
    enable_auto_scaling=True,
    min_count=1,
    max_count=8,
    gpu_profile=driver,
    kubelet_config=kubelet,
    os_disk_type="Ephemeral",
    os_disk_size_gb=200,
    kubelet_disk_type="OS",
    enable_node_public_ip=False,
    upgrade_settings=upgrades,
    node_labels={
        "gpuplan.dev/stack": "aks",
        "gpuplan.dev/pool": "a100-sxm-40gb-x8",
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB",
    },
    node_taints=[
        # the value that NVIDIA's operators tolerate
        "nvidia.com/gpu=present:NoSchedule",
    ],
    opts=pulumi.ResourceOptions(ignore_changes=["count"]),
)
