"""Values of LeaderWorkerSet's chart.

Source: charts/lws/values.yaml of kubernetes-sigs/lws at v0.10.0; hack/push-chart.sh puts the
release's own image into the chart that is published.
"""

from __future__ import annotations

from gpuplan.plan.model import Plan
from gpuplan.plan.outside.network import Network, mirrored
from gpuplan.render.commented import Because, Tree

IMAGE = "registry.k8s.io/lws/lws"


def values(plan: Plan) -> Tree:
    """Only keys that differ from the chart's defaults, each with its reason."""
    network: Network | None = plan.network
    tree: Tree = {}
    if (mirror := mirrored(IMAGE, network)) != IMAGE:
        tree["image"] = {"manager": {"repository": Because(mirror, "as platform.network says")}}
    if network is not None and network.pull_secrets:
        named = [{"name": name} for name in network.pull_secrets]
        tree["imagePullSecrets"] = Because(named, "as platform.network says")
    return tree
