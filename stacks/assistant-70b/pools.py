"""Labels and taints of the GPU nodes. The nodes are the cluster's; only these fields are ours."""

import pulumi
import pulumi_kubernetes as k8s

import cluster

config = pulumi.Config()

# A node's taints are one list to the API server, so this patch owns all of them. It is applied
# without force: on a node that carries other taints it fails instead of dropping those.
taint_nodes = config.get_bool("taintNodes") or False

# h100-sxm-80gb: 8 × h100-sxm-80gb a node
h100_sxm_80gb_nodes = ["gpu-01"]

for node in h100_sxm_80gb_nodes:
    k8s.core.v1.NodePatch(
        f"node-{node}",
        metadata=k8s.meta.v1.ObjectMetaPatchArgs(
            name=node,
            labels={"gpuplan.dev/stack": "assistant-70b", "gpuplan.dev/pool": "h100-sxm-80gb"},
        ),
        opts=pulumi.ResourceOptions(provider=cluster.provider),
    )
    if taint_nodes:
        k8s.core.v1.NodePatch(
            f"taint-{node}",
            metadata=k8s.meta.v1.ObjectMetaPatchArgs(name=node),
            spec=k8s.core.v1.NodeSpecPatchArgs(
                taints=[
                    k8s.core.v1.TaintPatchArgs(
                        key="nvidia.com/gpu",
                        value="present",
                        effect="NoSchedule",
                    ),
                ],
            ),
            opts=pulumi.ResourceOptions(provider=cluster.provider),
        )
