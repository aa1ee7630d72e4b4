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

tenant_research_namespace = k8s.core.v1.Namespace(
    "tenant-research",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="deepseek-v3-research",
        labels={
            "app.kubernetes.io/managed-by": "gpuplan",
            "app.kubernetes.io/part-of": "deepseek-v3",
            "gpuplan.dev/tenant": "research",
            "pod-security.kubernetes.io/enforce": "baseline",
        },
    ),
    opts=pulumi.ResourceOptions(provider=provider, protect=True, retain_on_delete=True),
)

tenant_research_quota = k8s.core.v1.ResourceQuota(
    "tenant-research",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="gpuplan",
        namespace="deepseek-v3-research",
        labels={"app.kubernetes.io/managed-by": "gpuplan"},
    ),
    spec=k8s.core.v1.ResourceQuotaSpecArgs(
        hard={
            "requests.nvidia.com/gpu": "8",
            "requests.storage": "690Gi",
            # the sum over the tenant's pods
            "requests.cpu": "48",
            "requests.memory": "1128Gi",
        },
    ),
    opts=pulumi.ResourceOptions(provider=provider, depends_on=[tenant_research_namespace]),
)

priority_normal_class = k8s.scheduling.v1.PriorityClass(
    "priority-normal",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="deepseek-v3-normal",
        labels={
            "app.kubernetes.io/managed-by": "gpuplan",
            "app.kubernetes.io/part-of": "deepseek-v3",
        },
    ),
    value=10000,
    global_default=False,
    preemption_policy="PreemptLowerPriority",
    description="Priority 'normal' of stack deepseek-v3",
    opts=pulumi.ResourceOptions(provider=provider),
)
