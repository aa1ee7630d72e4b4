"""The cluster that the operators are for."""

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
