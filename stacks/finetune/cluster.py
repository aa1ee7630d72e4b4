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

tenant_training_namespace = k8s.core.v1.Namespace(
    "tenant-training",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="finetune-training",
        labels={
            "app.kubernetes.io/managed-by": "gpuplan",
            "app.kubernetes.io/part-of": "finetune",
            "gpuplan.dev/tenant": "training",
            # RDMA needs the capability IPC_LOCK, which no other level admits
            "pod-security.kubernetes.io/enforce": "privileged",
        },
    ),
    opts=pulumi.ResourceOptions(provider=provider, protect=True, retain_on_delete=True),
)

tenant_training_quota = k8s.core.v1.ResourceQuota(
    "tenant-training",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="gpuplan",
        namespace="finetune-training",
        labels={"app.kubernetes.io/managed-by": "gpuplan"},
    ),
    spec=k8s.core.v1.ResourceQuotaSpecArgs(
        hard={
            "requests.nvidia.com/gpu": "24",
            "requests.storage": "670Gi",
            # the sum over the tenant's pods
            "requests.cpu": "136",
            "requests.memory": "1920Gi",
        },
    ),
    opts=pulumi.ResourceOptions(provider=provider, depends_on=[tenant_training_namespace]),
)

priority_low_preemptible_class = k8s.scheduling.v1.PriorityClass(
    "priority-low-preemptible",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="finetune-low-preemptible",
        labels={"app.kubernetes.io/managed-by": "gpuplan", "app.kubernetes.io/part-of": "finetune"},
    ),
    # gives way to 'low' that is not preemptible
    value=500,
    global_default=False,
    preemption_policy="Never",
    description="Priority 'low' of stack finetune",
    opts=pulumi.ResourceOptions(provider=provider),
)

priority_normal_class = k8s.scheduling.v1.PriorityClass(
    "priority-normal",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="finetune-normal",
        labels={"app.kubernetes.io/managed-by": "gpuplan", "app.kubernetes.io/part-of": "finetune"},
    ),
    value=10000,
    global_default=False,
    preemption_policy="PreemptLowerPriority",
    description="Priority 'normal' of stack finetune",
    opts=pulumi.ResourceOptions(provider=provider),
)
