"""The cluster, and what all workloads on it share: namespaces, quotas, priorities."""

import pulumi
import pulumi_kubernetes as k8s

config = pulumi.Config()


def by_context() -> pulumi.Output[str]:
    """The context, once the cluster that it reaches is known to be this stack's.

    Never the context that kubectl happens to point at: it is kept in the state with the provider,
    so that `pulumi destroy` after a switch reaches the cluster that was built, or none."""
    context, cluster_uid = config.get("context"), config.get("clusterUid")
    if not context:
        raise pulumi.RunError(
            "clusterStack names the stack of cloud/cluster, or context and clusterUid the cluster"
        )
    if not cluster_uid:
        raise pulumi.RunError("clusterUid proves the cluster: pulumi config set clusterUid UID")
    # Another kubeconfig may have another cluster under the same name. What tells them apart is the
    # UID of a namespace that every cluster has: nothing is registered before it has been read.
    system = k8s.core.v1.Namespace.get(
        "kube-system",
        "kube-system",
        opts=pulumi.ResourceOptions(
            provider=k8s.Provider(
                "reader",
                context=context,
                cluster_identifier=pulumi.get_stack(),
            ),
        ),
    )

    def proven(uid: str) -> str:
        if uid != cluster_uid:
            raise pulumi.RunError(f"context {context} reaches cluster {uid}, not {cluster_uid}")
        return context

    return system.metadata.uid.apply(proven)


# The stack that made the cluster says where it is, and its certificate proves it.
cluster_stack = config.get("clusterStack")
provider = k8s.Provider(
    "cluster",
    context=None if cluster_stack else by_context(),
    kubeconfig=pulumi.StackReference(cluster_stack).require_output("kubeconfig")
    if cluster_stack
    else None,
    # One Pulumi stack is one cluster: an edit of the kubeconfig replaces nothing.
    cluster_identifier=pulumi.get_stack(),
    enable_server_side_apply=True,
)

tenant_support_namespace = k8s.core.v1.Namespace(
    "tenant-support",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="regions-europe-west1-support",
        labels={
            "app.kubernetes.io/managed-by": "gpuplan",
            "app.kubernetes.io/part-of": "regions-europe-west1",
            "gpuplan.dev/tenant": "support",
            "pod-security.kubernetes.io/enforce": "baseline",
        },
    ),
    opts=pulumi.ResourceOptions(provider=provider, protect=True, retain_on_delete=True),
)

tenant_support_quota = k8s.core.v1.ResourceQuota(
    "tenant-support",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="gpuplan",
        namespace="regions-europe-west1-support",
        labels={"app.kubernetes.io/managed-by": "gpuplan"},
    ),
    spec=k8s.core.v1.ResourceQuotaSpecArgs(
        hard={
            "requests.nvidia.com/gpu": "4",
            "requests.storage": "68Gi",
            # the sum over the tenant's pods, 8 more and 32 GiB for those without GPUs
            "requests.cpu": "24",
            "requests.memory": "144Gi",
        },
    ),
    opts=pulumi.ResourceOptions(provider=provider, depends_on=[tenant_support_namespace]),
)

k8s.core.v1.LimitRange(
    "tenant-support",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="gpuplan",
        namespace="regions-europe-west1-support",
        labels={"app.kubernetes.io/managed-by": "gpuplan"},
    ),
    spec=k8s.core.v1.LimitRangeSpecArgs(
        limits=[
            k8s.core.v1.LimitRangeItemArgs(
                type="Container",
                # of a pod that says nothing, which the quota would refuse
                default_request={"cpu": "500m", "memory": "1Gi"},
            ),
        ],
    ),
    opts=pulumi.ResourceOptions(provider=provider, depends_on=[tenant_support_namespace]),
)

priority_normal_class = k8s.scheduling.v1.PriorityClass(
    "priority-normal",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="regions-europe-west1-normal",
        labels={
            "app.kubernetes.io/managed-by": "gpuplan",
            "app.kubernetes.io/part-of": "regions-europe-west1",
        },
    ),
    value=10000,
    preemption_policy="PreemptLowerPriority",
    description="Priority 'normal' of stack regions-europe-west1",
    opts=pulumi.ResourceOptions(provider=provider),
)
