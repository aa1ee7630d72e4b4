"""The cluster, and what all workloads on it share: namespaces, quotas, priorities."""

import pulumi
import pulumi_kubernetes as k8s

config = pulumi.Config()

provider = k8s.Provider(
    "cluster",
    # Empty: the current context of the kubeconfig.
    context=config.get("context") or None,
    # One Pulumi stack is one cluster: an edit of the kubeconfig replaces nothing.
    cluster_identifier=pulumi.get_stack(),
    enable_server_side_apply=True,
)

tenant_shop_namespace = k8s.core.v1.Namespace(
    "tenant-shop",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="images-shop",
        labels={
            "app.kubernetes.io/managed-by": "gpuplan",
            "app.kubernetes.io/part-of": "images",
            "gpuplan.dev/tenant": "shop",
            "pod-security.kubernetes.io/enforce": "baseline",
        },
    ),
    opts=pulumi.ResourceOptions(provider=provider, protect=True, retain_on_delete=True),
)

tenant_shop_quota = k8s.core.v1.ResourceQuota(
    "tenant-shop",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="gpuplan",
        namespace="images-shop",
        labels={"app.kubernetes.io/managed-by": "gpuplan"},
    ),
    spec=k8s.core.v1.ResourceQuotaSpecArgs(
        hard={
            "requests.nvidia.com/gpu": "2",
            "requests.storage": "35Gi",
            # the sum over the tenant's pods
            "requests.cpu": "12",
            "requests.memory": "160Gi",
        },
    ),
    opts=pulumi.ResourceOptions(provider=provider, depends_on=[tenant_shop_namespace]),
)

priority_normal_class = k8s.scheduling.v1.PriorityClass(
    "priority-normal",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="images-normal",
        labels={"app.kubernetes.io/managed-by": "gpuplan", "app.kubernetes.io/part-of": "images"},
    ),
    value=10000,
    global_default=False,
    preemption_policy="PreemptLowerPriority",
    description="Priority 'normal' of stack images",
    opts=pulumi.ResourceOptions(provider=provider),
)
