"""The cluster, and what all workloads on it share: namespaces, quotas, priorities."""

import pulumi
import pulumi_kubernetes as k8s

config = pulumi.Config()

# Never the context that kubectl happens to point at: it is kept in the state with the provider, so
# that `pulumi destroy` after a switch reaches the cluster that was built, or none.
context = config.get("context")
if not context:
    raise pulumi.RunError("context names the cluster: pulumi config set context CONTEXT")
cluster_uid = config.get("clusterUid")
if not cluster_uid:
    raise pulumi.RunError("clusterUid proves the cluster: pulumi config set clusterUid UID")


def proven(uid: str) -> str:
    """The context, once the cluster that it reaches is known to be this stack's."""
    if uid != cluster_uid:
        raise pulumi.RunError(f"context {context} reaches cluster {uid}, not {cluster_uid}")
    return str(context)


# Another kubeconfig may have another cluster under the same name. What tells them apart is the UID
# of a namespace that every cluster has: nothing is registered before it has been read.
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

provider = k8s.Provider(
    "cluster",
    context=system.metadata.uid.apply(proven),
    # One Pulumi stack is one cluster: an edit of the kubeconfig replaces nothing.
    cluster_identifier=pulumi.get_stack(),
    enable_server_side_apply=True,
)

tenant_support_namespace = k8s.core.v1.Namespace(
    "tenant-support",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="mi300x-support",
        labels={
            "app.kubernetes.io/managed-by": "gpuplan",
            "app.kubernetes.io/part-of": "mi300x",
            "gpuplan.dev/tenant": "support",
            # ROCm maps memory of other processes, as vLLM's and AMD's own pods do
            "pod-security.kubernetes.io/enforce": "privileged",
        },
    ),
    opts=pulumi.ResourceOptions(provider=provider, protect=True, retain_on_delete=True),
)

tenant_support_quota = k8s.core.v1.ResourceQuota(
    "tenant-support",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="gpuplan",
        namespace="mi300x-support",
        labels={"app.kubernetes.io/managed-by": "gpuplan"},
    ),
    spec=k8s.core.v1.ResourceQuotaSpecArgs(
        hard={
            "requests.amd.com/gpu": "8",
            "requests.storage": "145Gi",
            # the sum over the tenant's pods, 8 more and 32 GiB for those without GPUs
            "requests.cpu": "56",
            "requests.memory": "1568Gi",
        },
    ),
    opts=pulumi.ResourceOptions(provider=provider, depends_on=[tenant_support_namespace]),
)

k8s.core.v1.LimitRange(
    "tenant-support",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="gpuplan",
        namespace="mi300x-support",
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
        name="mi300x-normal",
        labels={"app.kubernetes.io/managed-by": "gpuplan", "app.kubernetes.io/part-of": "mi300x"},
    ),
    value=10000,
    preemption_policy="PreemptLowerPriority",
    description="Priority 'normal' of stack mi300x",
    opts=pulumi.ResourceOptions(provider=provider),
)
