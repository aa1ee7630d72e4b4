"""Beside which other pods a pod may come to lie."""

from __future__ import annotations

from gpuplan.kubernetes import mig, naming
from gpuplan.kubernetes.scene import Scene
from gpuplan.plan.isolation import own_node
from gpuplan.plan.partitions import DOMAIN_LABEL, MIG_CONFIG_LABEL
from gpuplan.render.commented import Because, Tree

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
MOST = 100  # the weight of a preference
GROUP = "leaderworkerset.sigs.k8s.io/group-index"  # of a pod of LeaderWorkerSet


def affinity(scene: Scene, role: str | None) -> Tree | None:
    """The rules of the pods of a role, where those of a group have roles."""
    rules = {
        "nodeAffinity": _cut_nodes(scene),
        "podAffinity": _together(scene, role),
        "podAntiAffinity": _apart(scene, role),
    }
    return {k: v for k, v in rules.items() if v} or None


def _together(scene: Scene, role: str | None) -> Because | None:
    """A plan that counts on an NVLink domain has to have one: a preference would bind some pods
    elsewhere, where they exchange at a part of the rate. Otherwise pods seek the nodes of one
    switch, and no more than that: if the first one had to have them, a switch with too few free
    nodes would hold it for ever."""
    work, fabric = scene.workload, scene.plan.fabric
    if work.one_domain:
        reason = f"NVLink joins the GPUs of all {work.nodes_per_replica} nodes"
        first = naming.LEADS if role == naming.FOLLOWS else None
        reason += ": the leader comes first" if first else ""
        return Because({REQUIRED: [_term(scene, DOMAIN_LABEL, first)]}, reason)
    if fabric is not None and fabric.switch_label is not None and work.nodes_per_replica > 1:
        term = {"weight": MOST, "podAffinityTerm": _term(scene, fabric.switch_label)}
        return Because({PREFERRED: [term]}, "nodes of one switch, as far as there are some")
    if work.packed:
        return Because(
            {PREFERRED: [_fullest()]}, "nodes that others are on: some pods need whole ones"
        )
    return None


def _cut_nodes(scene: Scene) -> Because | None:
    """Whatever the pool's nodes are now: a run cannot be told later. MIG is the first maker's; a
    cloud's plugin cuts all GPUs of a node."""
    whole = scene.workload.partition is None and scene.pool.vendor is None
    if not (scene.workload.packed and whole) or scene.plan.plugin_on_nodes:
        return None
    cut = [
        {"key": MIG_CONFIG_LABEL, "operator": "Exists"},
        {"key": MIG_CONFIG_LABEL, "operator": "NotIn", "values": [mig.DISABLED]},
    ]
    term = {"weight": MOST, "preference": {"matchExpressions": cut}}
    return Because({PREFERRED: [term]}, "a node with GPUs in parts: some pods need whole ones")


def _fullest() -> Tree:
    """The nodes that most pods are on. To count their GPUs would be no better: where sizes divide
    one another, as powers of two do, either way leaves no room in parts that nobody can use. And a
    rule that names the other pods would change with them, and restart its own."""
    pods = {
        "labelSelector": {"matchLabels": {"app.kubernetes.io/managed-by": naming.MANAGER}},
        "namespaceSelector": {},
        "topologyKey": naming.HOSTNAME_LABEL,
    }
    return {"weight": MOST, "podAffinityTerm": pods}


def _term(scene: Scene, key: str, role: str | None = None) -> Tree:
    """The pods of its run, or of its group, or the one of them that has the role."""
    labels = scene.selector | ({naming.ROLE_LABEL: role} if role else {})
    own = {"matchLabelKeys": [GROUP]} if scene.grouped else {}
    return {"labelSelector": {"matchLabels": labels}, **own, "topologyKey": key}


def _apart(scene: Scene, role: str | None) -> Tree:
    rules: Tree = {}
    if own_node(scene.workload.isolation):
        reason = "isolation 'node': no pod of another tenant on the same node"
        of_others = _others(naming.TENANT_LABEL, scene.workload.tenant)
        rules[REQUIRED] = Because([{**of_others, "topologyKey": naming.HOSTNAME_LABEL}], reason)
    if scene.workload.one_domain and role != naming.FOLLOWS:
        reason = "where most nodes are free: groups that begin where one has room wait for ever"
        rules[PREFERRED] = Because(_emptiest(scene), reason)
    return rules


def _emptiest(scene: Scene) -> list[Tree]:
    """Away from domains that others are in: a preference, since a domain may have more nodes than
    the plan knows of. A leader speaks for all nodes of its group."""
    nodes = scene.workload.nodes_per_replica
    each = max(MOST // nodes, 1)
    others = _others("app.kubernetes.io/name", scene.workload.oldest_name)
    leaders: Tree = {
        "labelSelector": {"matchLabels": scene.selector | {naming.ROLE_LABEL: naming.LEADS}}
    }
    weighed = [(min(each * nodes, MOST), leaders)] if scene.grouped else []
    return [
        {"weight": weight, "podAffinityTerm": {**pods, "topologyKey": DOMAIN_LABEL}}
        for weight, pods in [*weighed, (each, others)]
    ]


def _others(label: str, own: str) -> Tree:
    """Pods of any namespace that some stack made, and whose label is another."""
    expressions = [
        {"key": "app.kubernetes.io/managed-by", "operator": "In", "values": [naming.MANAGER]},
        {"key": label, "operator": "NotIn", "values": [own]},
    ]
    return {"labelSelector": {"matchExpressions": expressions}, "namespaceSelector": {}}
