"""What several statements of a program hold, named once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuplan.backends.pulumi import typed, view
from gpuplan.engines.container import listening_port
from gpuplan.kubernetes import naming, network
from gpuplan.kubernetes.objects import KubernetesObject
from gpuplan.plan.model import Plan, Workload
from gpuplan.render.commented import Route, Tree, strip
from gpuplan.render.environments import Verbatim
from gpuplan.render.python import Expression, identifier

# Where an object has what its pods are made of, if not in `template`.
PODS = {
    "CronJob": ("jobTemplate", "spec", "template"),
    "LeaderWorkerSet": ("leaderWorkerTemplate", "leaderTemplate"),
}
EGRESS, INGRESS = (f"networking.v1.NetworkPolicy{way}RuleArgs" for way in ("Egress", "Ingress"))


def rules(plan: Plan, items: tuple[KubernetesObject, ...]) -> tuple[view.Constant, ...]:
    """The rules that policies of several workloads have."""
    policies = [i for i in items if i.group == "network"]
    named = (_constant(*each) for each in _rules(plan))
    return tuple(c for c in named if sum(view.held(p, c) for p in policies) > 1)


def of_workload(
    plan: Plan, workload: Workload, items: list[KubernetesObject]
) -> Iterator[view.Constant]:
    """Its labels, and what its pods ask for: as much as they may have."""
    name = identifier(workload.name)
    yield view.Constant(variable=Verbatim(f"{name}_labels"), value=naming.labels(plan, workload))
    yield view.Constant(
        variable=Verbatim(f"{name}_selector"), value=naming.selector(plan, workload)
    )
    for asked in (a for i in items for a in _asked(i)):
        wanted = view.Constant(variable=Verbatim(f"{name}_resources"), value=asked)
        if sum(view.held(i, wanted) for i in items) > 1:
            yield wanted
            return


def _asked(item: KubernetesObject) -> Iterator[Expression]:
    """What the engine requests in pods that `item` makes, with the reasons."""
    path: Route = ("spec", *PODS.get(item.kind, ("template",)))
    tree: Any = item.tree
    for part in (*path, "spec", "containers"):
        tree = tree.get(part, {})
    for number, container in enumerate(tree):
        if requests := container.get("resources", {}).get("requests"):
            here = (*path, "spec", "containers", number, "resources", "requests")
            yield typed.value(requests, "", dict(item.comments), here)


def _rules(plan: Plan) -> Iterator[tuple[str, Tree, str]]:
    for name, rule in network.rules(plan).items():
        yield name, rule, EGRESS
    asked = {(w.tenant, listening_port(w)): None for w in plan.workloads}
    for tenant, port in asked:
        if port is not None:
            rule = network.clients(naming.namespace_name(plan, tenant), port)
            yield f"{identifier(tenant)}_clients_{port}", rule, INGRESS


def _constant(name: str, tree: Tree, cls: str) -> view.Constant:
    plain, reasons = strip(tree)
    value = typed.value(plain, cls, dict(reasons))
    return view.Constant(variable=Verbatim(name), value=value)
