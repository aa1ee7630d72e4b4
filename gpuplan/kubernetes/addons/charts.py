"""The charts that a plan's components are, and what stands around each."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.kubernetes import mig
from gpuplan.kubernetes.addons import network_operator
from gpuplan.kubernetes.naming import MANAGER
from gpuplan.kubernetes.objects import FileText, KubernetesObject, build
from gpuplan.plan.model import Component, Plan, record
from gpuplan.render import commented
from gpuplan.render.commented import Because
from gpuplan.vendors import AMD, FIRST, NVIDIA, VENDORS

# The order of installation, in the folder's name. Components that are not here are not emitted.
GPU_OPERATOR, AMD_OPERATOR = VENDORS[NVIDIA].operator, VENDORS[AMD].operator
EFA_PLUGIN, NETWORK_OPERATOR = "aws-efa-k8s-device-plugin", "network-operator"
GROUPS, RUNS = "lws", "jobset"
DOMAINS = "nvidia-dra-driver-gpu"
ORDER = {
    GPU_OPERATOR: 10,
    AMD_OPERATOR: 15,
    EFA_PLUGIN: 20,
    NETWORK_OPERATOR: 20,
    DOMAINS: 25,
    GROUPS: 30,
    RUNS: 30,
}
# A hook of theirs upgrades their definitions.
HOOKED = (GPU_OPERATOR, AMD_OPERATOR, NETWORK_OPERATOR)
DISCOVERED = ".nfd.k8s-sigs.io"  # the group of what node feature discovery writes
OCI = "oci://"  # a registry of charts, by which a chart is named whole
MAP_FILE = "mig-profiles.yaml"
# Helm waits for the pods of the chart: twice its default of 300 s for their images, and half a
# minute for the daemons of each node, which a rollout starts one after the other.
FIXED_SECONDS, NODE_SECONDS = 600, 30


@record
class Chart:
    """`setting` is the boolean of the stack that installs it; `timeout_seconds` grows with the
    nodes where the chart's own daemons start on each of them."""

    component: Component
    key: str
    folder: str
    setting: str
    timeout_seconds: int
    timeout_reason: str


def charts(plan: Plan) -> Iterator[Chart]:
    known = (c for c in plan.components if c.name in ORDER and _known(c))
    nodes = sum(p.node_count for p in plan.node_pools)
    for component in sorted(known, key=lambda c: ORDER[c.name]):
        words = component.name.replace("-", " ").title().replace(" ", "")
        yield Chart(
            component=component,
            key=f"addon-{component.name}",
            folder=f"helm/{ORDER[component.name]:02}-{component.name}",
            setting=f"install{words}",
            timeout_seconds=FIXED_SECONDS + NODE_SECONDS * nodes * _on_nodes(component),
            timeout_reason=f"{FIXED_SECONDS} s and {NODE_SECONDS} s for each of {nodes} GPU nodes"
            if _on_nodes(component)
            else f"{FIXED_SECONDS} s for its image",
        )


def _on_nodes(component: Component) -> bool:
    """Whether it has daemons on the GPU nodes, which touch these."""
    return component.name not in (GROUPS, RUNS)


def unknown(plan: Plan) -> tuple[Component, ...]:
    return tuple(c for c in plan.components if c.name not in ORDER or not _known(c))


def _known(component: Component) -> bool:
    return component.name != NETWORK_OPERATOR or network_operator.known(component.version)


def beside(plan: Plan, chart: Chart, above: str = "") -> tuple[KubernetesObject, ...]:
    """What the chart's own objects read, in its namespace: the MIG profiles of the cluster, from a
    file that is found by way of `above`."""
    if chart.component.name != GPU_OPERATOR or not mig.needed(plan) or mig.by_cloud(plan):
        return ()
    title = "MIG profiles of the cluster's nodes, for NVIDIA's MIG manager"
    text = commented.dumps(mig.configuration(plan), {}, title)
    metadata = {
        "name": mig.map_name(plan),
        "namespace": chart.component.namespace,
        "labels": {"app.kubernetes.io/managed-by": MANAGER},
    }
    body = {
        "metadata": metadata,
        "data": {"config.yaml": FileText(f"{above}{chart.folder}/{MAP_FILE}", text)},
    }
    return (
        build(
            f"{chart.key}-mig",
            "v1",
            "ConfigMap",
            "addons",
            body,
            depends_on=(f"Namespace/{chart.key}",),
            only_if=chart.setting,
        ),
    )


def behind(plan: Plan, chart: Chart) -> tuple[KubernetesObject, ...]:
    """What the chart's own definitions are for: the nodes that network operator cares for."""
    groups = plan.cloud.groups if plan.cloud else ()
    if chart.component.name != NETWORK_OPERATOR or not any(g.network_cards for g in groups):
        return ()
    return (
        build(
            f"{chart.key}-policy",
            network_operator.API_VERSION,
            network_operator.KIND,
            "addons",
            network_operator.policy(plan, chart.component.version),
            depends_on=(f"Release/{chart.key}",),
            only_if=chart.setting,
        ),
    )


def discovered_by_another(plan: Plan, component: str) -> bool:
    """Whether the first vendor's operator brings node feature discovery for all nodes: two of them
    undo each other."""
    first = VENDORS[FIRST].operator
    return component != first and any(c.name == first for c in plan.components)


def removed(plan: Plan, chart: Chart) -> tuple[str, ...]:
    """The definitions of kinds that the chart's removal takes from all of the cluster."""
    component = chart.component
    gone = component.uninstall_removes
    if discovered_by_another(plan, component.name):
        return tuple(d for d in gone if not d.endswith(DISCOVERED))
    return gone


def namespace(chart: Chart) -> KubernetesObject:
    reason = "its daemons load kernel modules and mount the host's devices"
    level: str | Because = Because("privileged", reason)
    labels = {
        "app.kubernetes.io/managed-by": MANAGER,
        "pod-security.kubernetes.io/enforce": level if _on_nodes(chart.component) else "baseline",
    }
    metadata = {"name": chart.component.namespace, "labels": labels}
    return build(
        chart.key, "v1", "Namespace", "addons", {"metadata": metadata}, only_if=chart.setting
    )
