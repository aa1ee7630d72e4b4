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

tenant_legal_namespace = k8s.core.v1.Namespace(
    "tenant-legal",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="llama-405b-legal",
        labels={
            "app.kubernetes.io/managed-by": "gpuplan",
            "app.kubernetes.io/part-of": "llama-405b",
            "gpuplan.dev/tenant": "legal",
            # RDMA needs the capability IPC_LOCK, which no other level admits
            "pod-security.kubernetes.io/enforce": "privileged",
        },
    ),
    opts=pulumi.ResourceOptions(provider=provider, protect=True, retain_on_delete=True),
)

tenant_legal_quota = k8s.core.v1.ResourceQuota(
    "tenant-legal",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="gpuplan",
        namespace="llama-405b-legal",
        labels={"app.kubernetes.io/managed-by": "gpuplan"},
    ),
    spec=k8s.core.v1.ResourceQuotaSpecArgs(
        hard={
            "requests.nvidia.com/gpu": "12",
            "requests.storage": "832Gi",
            # the sum over the tenant's pods, 8 more and 32 GiB for those without GPUs
            "requests.cpu": "80",
            "requests.memory": "992Gi",
        },
    ),
    opts=pulumi.ResourceOptions(provider=provider, depends_on=[tenant_legal_namespace]),
)

k8s.core.v1.LimitRange(
    "tenant-legal",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="gpuplan",
        namespace="llama-405b-legal",
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
    opts=pulumi.ResourceOptions(provider=provider, depends_on=[tenant_legal_namespace]),
)

priority_high_class = k8s.scheduling.v1.PriorityClass(
    "priority-high",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="llama-405b-high",
        labels={
            "app.kubernetes.io/managed-by": "gpuplan",
            "app.kubernetes.io/part-of": "llama-405b",
        },
    ),
    value=100000,
    preemption_policy="PreemptLowerPriority",
    description="Priority 'high' of stack llama-405b",
    opts=pulumi.ResourceOptions(provider=provider),
)

tenant_legal_localqueue = k8s.apiextensions.CustomResource(
    "tenant-legal",
    api_version="kueue.x-k8s.io/v1beta2",
    kind="LocalQueue",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="gpus",
        namespace="llama-405b-legal",
        labels={"app.kubernetes.io/managed-by": "gpuplan"},
    ),
    spec={"clusterQueue": "gpus"},
    opts=pulumi.ResourceOptions(provider=provider, depends_on=[tenant_legal_namespace]),
)
