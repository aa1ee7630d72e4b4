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
        # 600 s and 30 s for each of 7 GPU nodes
        timeout=810,
        opts=pulumi.ResourceOptions(provider=cluster.provider, depends_on=[gpu_operator_namespace]),
    )
    installed.append(gpu_operator)

if config.get_bool("installAwsEfaK8SDevicePlugin") is not False:
    aws_efa_k8s_device_plugin_namespace = k8s.core.v1.Namespace(
        "addon-aws-efa-k8s-device-plugin",
        metadata=k8s.meta.v1.ObjectMetaArgs(
            name="efa-device-plugin",
            labels={
                "app.kubernetes.io/managed-by": "gpuplan",
                # its daemons load kernel modules and mount the host's devices
                "pod-security.kubernetes.io/enforce": "privileged",
            },
        ),
        opts=pulumi.ResourceOptions(provider=cluster.provider),
    )
    aws_efa_k8s_device_plugin = k8s.helm.v3.Release(
        "addon-aws-efa-k8s-device-plugin",
        name="aws-efa-k8s-device-plugin",
        namespace="efa-device-plugin",
        chart="aws-efa-k8s-device-plugin",
        version="v0.5.30",
        repository_opts=k8s.helm.v3.RepositoryOptsArgs(repo="https://aws.github.io/eks-charts"),
        value_yaml_files=[pulumi.FileAsset("helm/20-aws-efa-k8s-device-plugin/values.yaml")],
        # 600 s and 30 s for each of 7 GPU nodes
        timeout=810,
        opts=pulumi.ResourceOptions(
            provider=cluster.provider,
            depends_on=[aws_efa_k8s_device_plugin_namespace],
        ),
    )
    installed.append(aws_efa_k8s_device_plugin)
