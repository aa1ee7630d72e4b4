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

tenant_platform_namespace = k8s.core.v1.Namespace(
    "tenant-platform",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="assistant-70b-platform",
        labels={
            "app.kubernetes.io/managed-by": "gpuplan",
            "app.kubernetes.io/part-of": "assistant-70b",
            "gpuplan.dev/tenant": "platform",
            "pod-security.kubernetes.io/enforce": "baseline",
        },
    ),
    opts=pulumi.ResourceOptions(provider=provider, protect=True, retain_on_delete=True),
)

tenant_platform_quota = k8s.core.v1.ResourceQuota(
    "tenant-platform",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="gpuplan",
        namespace="assistant-70b-platform",
        labels={"app.kubernetes.io/managed-by": "gpuplan"},
    ),
    spec=k8s.core.v1.ResourceQuotaSpecArgs(
        hard={
            "requests.nvidia.com/gpu": "8",
            "requests.storage": "145Gi",
            # the sum over the tenant's pods
            "requests.cpu": "96",
            "requests.memory": "640Gi",
        },
    ),
    opts=pulumi.ResourceOptions(provider=provider, depends_on=[tenant_platform_namespace]),
)

priority_high_class = k8s.scheduling.v1.PriorityClass(
    "priority-high",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="assistant-70b-high",
        labels={
            "app.kubernetes.io/managed-by": "gpuplan",
            "app.kubernetes.io/part-of": "assistant-70b",
        },
    ),
    value=100000,
    global_default=False,
    preemption_policy="PreemptLowerPriority",
    description="Priority 'high' of stack assistant-70b",
    opts=pulumi.ResourceOptions(provider=provider),
)
