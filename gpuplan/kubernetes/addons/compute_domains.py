"""What lets the pods of a run or of a replica use the NVLink domain that they lie in.

A ComputeDomain of NVIDIA's DRA driver starts the daemons by which processes of several nodes reach
each other's GPU memory, on the nodes that its pods come to, and makes the template of the channel
that each of them claims. It follows the pods and binds none: that is a rule of theirs on the label
by which feature discovery names the domain of each node (affinity.py). Sources:
NVIDIA/k8s-dra-driver-gpu v25.12.0, api/nvidia.com/resource/v1beta1/computedomain.go;
NVIDIA/k8s-device-plugin, internal/lm/fabric.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.kubernetes.objects import KubernetesObject
from gpuplan.kubernetes.scene import Scene
from gpuplan.render.commented import Because, Tree

API_VERSION, KIND = "resource.nvidia.com/v1beta1", "ComputeDomain"
CHANNEL = "nvlink"  # of a pod, that it claims


def domain(scene: Scene) -> Iterator[KubernetesObject]:
    if not scene.workload.one_domain:
        return
    count = Because(0, "its daemons start with the pods and wait for nobody")
    channel = {"resourceClaimTemplate": {"name": template(scene)}}
    spec: Tree = {"numNodes": count, "channel": channel}
    yield scene.build(API_VERSION, KIND, {"metadata": scene.metadata(), "spec": spec})


def template(scene: Scene) -> str:
    """What the driver calls the claims of its pods."""
    return f"{scene.name}-{CHANNEL}"
