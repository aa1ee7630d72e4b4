"""Values of NVIDIA's network operator. Source: deployment/network-operator/values.yaml of
Mellanox/network-operator at v26.4.1."""

from __future__ import annotations

from gpuplan.plan.model import Plan
from gpuplan.plan.outside.network import mirrored
from gpuplan.render.commented import Because, Tree

REPOSITORY = "nvcr.io/nvidia/cloud-native"


def values(plan: Plan) -> Tree:
    """Only keys that differ from the chart's defaults, each with its reason."""
    reason = "GPU operator has brought node feature discovery, and two of them undo each other"
    tree: Tree = {"nfd": {"enabled": Because(value=False, reason=reason)}}
    operator: Tree = {}
    if (mirror := mirrored(REPOSITORY, plan.network)) != REPOSITORY:
        operator["repository"] = Because(mirror, "as platform.network says")
    if plan.network and plan.network.pull_secrets:
        operator["imagePullSecrets"] = list(plan.network.pull_secrets)
    return {**tree, "operator": operator} if operator else tree
