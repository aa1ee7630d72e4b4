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
        # 600 s and 30 s for each of 3 GPU nodes
        timeout=690,
        opts=pulumi.ResourceOptions(provider=cluster.provider, depends_on=[gpu_operator_namespace]),
    )
    installed.append(gpu_operator)

if config.get_bool("installLws") is not False:
    lws_namespace = k8s.core.v1.Namespace(
        "addon-lws",
        metadata=k8s.meta.v1.ObjectMetaArgs(
            name="lws-system",
            labels={
                "app.kubernetes.io/managed-by": "gpuplan",
                "pod-security.kubernetes.io/enforce": "baseline",
            },
        ),
        opts=pulumi.ResourceOptions(provider=cluster.provider),
    )
    lws = k8s.helm.v3.Release(
        "addon-lws",
        name="lws",
        namespace="lws-system",
        chart="oci://registry.k8s.io/lws/charts/lws",
        version="0.10.0",
        value_yaml_files=[pulumi.FileAsset("helm/30-lws/values.yaml")],
        # 600 s for its image
        timeout=600,
        opts=pulumi.ResourceOptions(provider=cluster.provider, depends_on=[lws_namespace]),
    )
    installed.append(lws)
