"""The cluster, and what all workloads on it share: namespaces, quotas, priorities."""

from typing import Any

import pulumi
import pulumi_kubernetes as k8s

config = pulumi.Config()

# The charts that the workloads' pods need.
NEEDED = ["gpu-operator"]

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

# Another stack has the cluster's operators, so that they stay when this one goes.
operators = pulumi.StackReference(config.require("operatorsStack"))


def served(found: list[Any]) -> str:
    """The context, once the operators that the workloads need are known to be in its cluster."""
    context, uid, charts = found
    if uid != cluster_uid:
        raise pulumi.RunError(f"operatorsStack is of cluster {uid}, not {cluster_uid}")
    if missing := set(NEEDED) - set(charts):
        raise pulumi.RunError(f"operatorsStack does not install {', '.join(sorted(missing))}")
    return str(context)


provider = k8s.Provider(
    "cluster",
    context=pulumi.Output.all(
        system.metadata.uid.apply(proven),
        operators.require_output("clusterUid"),
        operators.require_output("charts"),
    ).apply(served),
    # One Pulumi stack is one cluster: an edit of the kubeconfig replaces nothing.
    cluster_identifier=pulumi.get_stack(),
    enable_server_side_apply=True,
)

tenant_research_namespace = k8s.core.v1.Namespace(
    "tenant-research",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="mixtral-research",
        labels={
            "app.kubernetes.io/managed-by": "gpuplan",
            "app.kubernetes.io/part-of": "mixtral",
            "gpuplan.dev/tenant": "research",
            # RDMA needs the capability IPC_LOCK, which no other level admits
            "pod-security.kubernetes.io/enforce": "privileged",
        },
    ),
    opts=pulumi.ResourceOptions(provider=provider, protect=True, retain_on_delete=True),
)

tenant_research_quota = k8s.core.v1.ResourceQuota(
    "tenant-research",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="gpuplan",
        namespace="mixtral-research",
        labels={"app.kubernetes.io/managed-by": "gpuplan"},
    ),
    spec=k8s.core.v1.ResourceQuotaSpecArgs(
        hard={
            "requests.nvidia.com/gpu": "128",
            "requests.storage": "13017Gi",
            # the sum over the tenant's pods, 8 more and 32 GiB for those without GPUs
            "requests.cpu": "776",
            "requests.memory": "10272Gi",
        },
    ),
    opts=pulumi.ResourceOptions(provider=provider, depends_on=[tenant_research_namespace]),
)

k8s.core.v1.LimitRange(
    "tenant-research",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="gpuplan",
        namespace="mixtral-research",
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
    opts=pulumi.ResourceOptions(provider=provider, depends_on=[tenant_research_namespace]),
)

priority_low_class = k8s.scheduling.v1.PriorityClass(
    "priority-low",
    metadata=k8s.meta.v1.ObjectMetaArgs(
        name="mixtral-low",
        labels={"app.kubernetes.io/managed-by": "gpuplan", "app.kubernetes.io/part-of": "mixtral"},
    ),
    value=1000,
    preemption_policy="PreemptLowerPriority",
    description="Priority 'low' of stack mixtral",
    opts=pulumi.ResourceOptions(provider=provider),
)
