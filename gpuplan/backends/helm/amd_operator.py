"""Values of AMD's GPU operator: device plugin, node labels, metrics.

Sources: ROCm/gpu-operator at v1.5.1, helm-charts-k8s/values.yaml and docs/installation; the images
of its parts, which the chart would take at `latest`: ROCm/k8s-device-plugin ed76468 (2026-08-11),
helm/amd-gpu/values.yaml; ROCm/device-metrics-exporter v1.5.1, docs/installation/docker.md.
"""

from __future__ import annotations

from gpuplan.kubernetes import nodes
from gpuplan.kubernetes.addons import charts
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.network import Network, mirrored
from gpuplan.render.commented import Because, Tree
from gpuplan.vendors import AMD, FIRST, VENDORS

PLUGIN = "docker.io/rocm/k8s-device-plugin:1.31.0.9"
LABELLER = "docker.io/rocm/k8s-device-plugin:labeller-1.31.0.9"
EXPORTER = "docker.io/rocm/device-metrics-exporter:v1.5.1"
CONTROLLER = "docker.io/rocm/amd-gpu-operator"
DISCOVERY, DISCOVERY_IMAGE = "node-feature-discovery", "registry.k8s.io/nfd/node-feature-discovery"
# The chart's own, which a list of ours replaces.
OWN_TOLERATIONS = (
    {"key": "amd-dcm", "operator": "Equal", "value": "up", "effect": "NoExecute"},
    {"key": "amd-gpu-unhealthy", "operator": "Exists", "effect": "NoSchedule"},
)


def values(plan: Plan) -> Tree:
    """Only keys that differ from the chart's defaults, each with its reason. The driver is the
    nodes' own, so that nothing has to build modules, and cert-manager is not needed."""
    network = plan.network
    builder = "no driver is built in the cluster: the nodes have theirs"
    tree: Tree = {
        DISCOVERY: _discovery(plan),
        "kmm": {"enabled": Because(False, builder), "watch": False},  # noqa: FBT003
        "remediation": {
            "enabled": Because(False, "nothing reboots nodes by itself"),  # noqa: FBT003
            "installCRDs": False,
        },
        "deviceConfig": {
            "spec": {"devicePlugin": _plugin(network), "metricsExporter": _metrics(network)}
        },
    }
    if (mirror := mirrored(CONTROLLER, network)) != CONTROLLER:
        image = {"repository": Because(mirror, "as platform.network says")}
        tree["controllerManager"] = {"manager": {"image": image}}
    if network and network.pull_secrets:
        named = [{"name": name} for name in network.pull_secrets]
        tree["global"] = {"imagePullSecrets": Because(named, "as platform.network says")}
    return tree


def _tolerations() -> list[Tree]:
    """Of the taint that keeps other pods off the nodes."""
    return nodes.tolerations([VENDORS[AMD].taint])


def _discovery(plan: Plan) -> Tree:
    """One discovers the features of all nodes: where the first vendor's operator brings it, that
    one does."""
    if charts.discovered_by_another(plan, charts.AMD_OPERATOR):
        return {"enabled": Because(False, f"{VENDORS[FIRST].operator} brings it")}  # noqa: FBT003
    tolerated = Because(
        [*OWN_TOLERATIONS, *_tolerations()], "the chart's own, and the nodes' taint"
    )
    tree: Tree = {"worker": {"tolerations": tolerated}}
    if (mirror := mirrored(DISCOVERY_IMAGE, plan.network)) != DISCOVERY_IMAGE:
        tree["image"] = {"repository": Because(mirror, "as platform.network says")}
    if plan.network and plan.network.pull_secrets:
        tree["imagePullSecrets"] = [{"name": name} for name in plan.network.pull_secrets]
    return tree


def _plugin(network: Network | None) -> Tree:
    single = Because("single", "whole GPUs are asked for as amd.com/gpu")
    tolerated = Because(_tolerations(), "GPU nodes keep other pods away")
    return {
        "devicePluginImage": Because(mirrored(PLUGIN, network), "the chart's own tag moves"),
        "devicePluginTolerations": tolerated,
        "devicePluginArguments": {"resource_naming_strategy": single},
        "nodeLabellerImage": mirrored(LABELLER, network),
        "nodeLabellerTolerations": tolerated,
    }


def _metrics(network: Network | None) -> Tree:
    return {
        "image": Because(mirrored(EXPORTER, network), "the chart's own tag moves"),
        "tolerations": Because(_tolerations(), "GPU nodes keep other pods away"),
    }
