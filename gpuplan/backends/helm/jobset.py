"""Values of JobSet's chart.

Source: charts/jobset/values.yaml of kubernetes-sigs/jobset at v0.12.0; hack/helm-chart-package.sh
puts the release's own image into the chart that is published.
"""

from __future__ import annotations

from gpuplan.plan.model import Plan
from gpuplan.plan.outside.network import Network, mirrored
from gpuplan.render.commented import Because, Tree

IMAGE = "registry.k8s.io/jobset/jobset"


def values(plan: Plan) -> Tree:
    """Only keys that differ from the chart's defaults, each with its reason."""
    network: Network | None = plan.network
    image: Tree = {}
    if (mirror := mirrored(IMAGE, network)) != IMAGE:
        image["repository"] = Because(mirror, "as platform.network says")
    if network is not None and network.pull_secrets:
        named = [{"name": name} for name in network.pull_secrets]
        image["pullSecrets"] = Because(named, "as platform.network says")
    return {"image": image} if image else {}
