"""How nodeadm sets up a node: a `NodeConfig` in the MIME message that is an instance's user data.

Sources: awslabs/amazon-eks-ami 81fec2e, nodeadm/api/v1alpha1, nodeadm/internal/kubelet/config.go.
"""

from __future__ import annotations

from gpuplan.plan.outside.cloud import Group
from gpuplan.render import commented
from gpuplan.render.commented import Because, Tree

BOUNDARY = "gpuplan"
PODS = 110  # of a node, the kubelet's own default
EVICTION_MIB = 100
# Hundredths of a per cent of CPUs 1, 2, 3 to 4, and of the rest.
CPU_STEPS = ((1, 600), (1, 100), (2, 50), (10**6, 25))


def reserved_millicores(vcpus: int) -> int:
    """As nodeadm reserves them."""
    total = 0
    for width, part in CPU_STEPS:
        total += 1000 * min(vcpus, width) * part // 10_000
        vcpus -= min(vcpus, width)
    return total


def reserved_mib(pods: int) -> int:
    """Memory of the kubelet and the runtime, as nodeadm reserves it."""
    return 11 * pods + 255


def user_data(group: Group) -> str:
    tree, comments = commented.strip(_node_config(group))
    text = commented.dumps(tree, dict(comments))
    return (
        f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="{BOUNDARY}"\n\n'
        f"--{BOUNDARY}\nContent-Type: application/node.eks.aws\n\n{text}--{BOUNDARY}--\n"
    )


def _node_config(group: Group) -> Tree:
    spec: Tree = {"kubelet": {"config": _kubelet(group)}}
    if group.nvme_bytes:
        reason = "its own drives as one: images, and the scratch space of pods"
        spec["instance"] = {"localStorage": {"strategy": Because("RAID0", reason)}}
    return {"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec}


def _kubelet(group: Group) -> Tree:
    tree: Tree = {
        "cpuManagerPolicy": Because("static", "pods ask for whole CPUs, which are then theirs"),
        "topologyManagerPolicy": Because(
            "best-effort", "CPUs beside GPUs; a pod that cannot have it runs all the same"
        ),
        "topologyManagerScope": "pod",
    }
    if group.numa_nodes and group.vcpus:
        tree |= _memory(group.vcpus)
    return tree


def _memory(vcpus: int) -> Tree:
    """Reserved memory must be what the kubelet keeps and evicts for, to the byte."""
    kept = reserved_mib(PODS)
    reason = "as nodeadm would reserve for so many pods; stated, since the next sum must equal it"
    return {
        "memoryManagerPolicy": "Static",
        "maxPods": PODS,
        "kubeReserved": Because(
            {
                "cpu": f"{reserved_millicores(vcpus)}m",
                "memory": f"{kept}Mi",
                "ephemeral-storage": "1Gi",
            },
            reason,
        ),
        "evictionHard": {
            "memory.available": f"{EVICTION_MIB}Mi",
            "nodefs.available": "10%",
            "nodefs.inodesFree": "5%",
        },
        "reservedMemory": [{"numaNode": 0, "limits": {"memory": f"{kept + EVICTION_MIB}Mi"}}],
    }
