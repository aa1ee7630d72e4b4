"""What the cluster needs before its GPUs can be used. A chart that the cluster has already is left
out by its setting."""

import pulumi
import pulumi_kubernetes as k8s

import cluster

config = pulumi.Config()

# What the workloads wait for.
installed: list[pulumi.Resource] = []

if config.get_bool("installAmdGpuOperator") is not False:
    amd_gpu_operator_namespace = k8s.core.v1.Namespace(
        "addon-amd-gpu-operator",
        metadata=k8s.meta.v1.ObjectMetaArgs(
            name="kube-amd-gpu",
            labels={
                "app.kubernetes.io/managed-by": "gpuplan",
                # its daemons load kernel modules and mount the host's devices
                "pod-security.kubernetes.io/enforce": "privileged",
            },
        ),
        opts=pulumi.ResourceOptions(provider=cluster.provider),
    )
    amd_gpu_operator = k8s.helm.v3.Release(
        "addon-amd-gpu-operator",
        name="amd-gpu-operator",
        namespace="kube-amd-gpu",
        chart="gpu-operator-charts",
        version="v1.5.1",
        repository_opts=k8s.helm.v3.RepositoryOptsArgs(repo="https://rocm.github.io/gpu-operator"),
        value_yaml_files=[pulumi.FileAsset("helm/15-amd-gpu-operator/values.yaml")],
        # the chart's hook that upgrades its definitions needs it
        disable_openapi_validation=True,
        # 600 s and 30 s for each of 1 GPU nodes
        timeout=630,
        opts=pulumi.ResourceOptions(
            provider=cluster.provider,
            depends_on=[amd_gpu_operator_namespace],
        ),
    )
    installed.append(amd_gpu_operator)
