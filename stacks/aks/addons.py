"""What the cluster needs before its GPUs can be used. A chart that the cluster has already is left
out by its setting."""

import pulumi
import pulumi_kubernetes as k8s

import cluster

config = pulumi.Config()

# What the workloads wait for.
installed: list[pulumi.Resource] = []

if config.get_bool("installGpuOperator") is not False:
    gpu_operator_namespace = k8s.core.v1.Namespace(
        "addon-gpu-operator",
        metadata=k8s.meta.v1.ObjectMetaArgs(
            name="gpu-operator",
            labels={
                "app.kubernetes.io/managed-by": "gpuplan",
                # its daemons load kernel modules and mount the host's devices
                "pod-security.kubernetes.io/enforce": "privileged",
            },
        ),
        opts=pulumi.ResourceOptions(provider=cluster.provider),
    )
    gpu_operator = k8s.helm.v3.Release(
        "addon-gpu-operator",
        name="gpu-operator",
        namespace="gpu-operator",
        chart="gpu-operator",
        version="v26.3.3",
        repository_opts=k8s.helm.v3.RepositoryOptsArgs(repo="https://helm.ngc.nvidia.com/nvidia"),
        value_yaml_files=[pulumi.FileAsset("helm/10-gpu-operator/values.yaml")],
        # the chart's hook that upgrades its definitions needs it
        disable_openapi_validation=True,
        # 600 s and 30 s for each of 9 GPU nodes
        timeout=870,
        opts=pulumi.ResourceOptions(provider=cluster.provider, depends_on=[gpu_operator_namespace]),
    )
    installed.append(gpu_operator)

if config.get_bool("installNetworkOperator") is not False:
    network_operator_namespace = k8s.core.v1.Namespace(
        "addon-network-operator",
        metadata=k8s.meta.v1.ObjectMetaArgs(
            name="network-operator",
            labels={
                "app.kubernetes.io/managed-by": "gpuplan",
                # its daemons load kernel modules and mount the host's devices
                "pod-security.kubernetes.io/enforce": "privileged",
            },
        ),
        opts=pulumi.ResourceOptions(provider=cluster.provider),
    )
    network_operator = k8s.helm.v3.Release(
        "addon-network-operator",
        name="network-operator",
        namespace="network-operator",
        chart="network-operator",
        version="26.4.1",
        repository_opts=k8s.helm.v3.RepositoryOptsArgs(repo="https://helm.ngc.nvidia.com/nvidia"),
        value_yaml_files=[pulumi.FileAsset("helm/20-network-operator/values.yaml")],
        # the chart's hook that upgrades its definitions needs it
        disable_openapi_validation=True,
        # 600 s and 30 s for each of 9 GPU nodes
        timeout=870,
        opts=pulumi.ResourceOptions(
            provider=cluster.provider,
            depends_on=[network_operator_namespace],
        ),
    )
    network_operator_policy = k8s.apiextensions.CustomResource(
        "addon-network-operator-policy",
        api_version="mellanox.com/v1alpha1",
        kind="NicClusterPolicy",
        metadata=k8s.meta.v1.ObjectMetaArgs(name="nic-cluster-policy"),
        spec={
            # adapters of other nodes carry their Ethernet
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "gpuplan.dev/stack", "operator": "In", "values": ["aks"]},
                                {
                                    "key": "gpuplan.dev/pool",
                                    "operator": "In",
                                    "values": ["a100-sxm-40gb-x8"],
                                },
                            ],
                        },
                    ],
                },
            },
            "tolerations": [
                {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
            ],
            "ofedDriver": {
                "image": "doca-driver",
                "repository": "nvcr.io/nvidia/mellanox",
                "version": "doca3.4.1-26.04-1.1.0.0-1",
                # without it modules of the system come first (Mellanox/doca-driver-build #52)
                "env": [
                    {
                        "name": "OFED_BLACKLIST_MODULES_FILE",
                        "value": "/host/etc/modprobe.d/blacklist-ofed-modules.conf",
                    },
                ],
                "upgradePolicy": {
                    # an upgrade ends what runs on a node
                    "autoUpgrade": False,
                },
            },
            "sriovDevicePlugin": {
                "image": "sriov-network-device-plugin",
                "repository": "nvcr.io/nvidia/mellanox",
                "version": "network-operator-v26.4.1",
                # a device of the resource for each adapter
                "config": (
                    '{"resourceList": [{"resourcePrefix": "rdma", "resourceName": "ib", '
                    '"selectors": {"vendors": ["15b3"], "linkTypes": ["infiniband"], "isRdma": '
                    "true}}]}"
                ),
            },
        },
        opts=pulumi.ResourceOptions(provider=cluster.provider, depends_on=[network_operator]),
    )
    installed.append(network_operator_policy)
