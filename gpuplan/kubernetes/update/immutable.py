"""What no update can change, as the API server itself judges it.

Source: kubernetes 1.34, the functions of pkg/apis/*/validation/validation.go that are named below.
What only newer servers let pass (`revisionHistoryLimit` of a StatefulSet) counts as fixed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpuplan.kubernetes.naming import amount
from gpuplan.plan.wording import Tree

# ValidateStatefulSetUpdate, ValidatePersistentVolumeClaimUpdate: of `spec`, only these may change.
MUTABLE: dict[str, frozenset[str]] = {
    "StatefulSet": frozenset(
        (
            "minReadySeconds",
            "ordinals",
            "persistentVolumeClaimRetentionPolicy",
            "replicas",
            "template",
            "updateStrategy",
        )
    ),
    "PersistentVolumeClaim": frozenset(("resources", "volumeAttributesClassName")),
}
# ValidateDeploymentUpdate with the strategy of apps/v1, ValidateJobSpecUpdate,
# ValidateServiceUpdate, ValidatePriorityClassUpdate, ValidateSecretUpdate,
# ValidateResourceQuotaUpdate: these may not.
FIXED: dict[str, tuple[str, ...]] = {
    "Deployment": ("spec.selector",),
    "DaemonSet": ("spec.selector",),
    "Job": (
        "spec.backoffLimitPerIndex",
        "spec.completionMode",
        "spec.managedBy",
        "spec.podFailurePolicy",
        "spec.selector",
        "spec.successPolicy",
        "spec.template",
    ),
    "Service": ("spec.clusterIP",),
    "PriorityClass": ("preemptionPolicy", "value"),
    "Secret": ("type",),
    "ResourceQuota": ("spec.scopes",),
    "LocalQueue": ("spec.clusterQueue",),  # a rule of its definition
    "ComputeDomain": ("spec",),  # as well
    # As well, and ValidateUpdate of pkg/webhooks/jobset_webhook.go (v0.12.0).
    "JobSet": ("spec.failurePolicy", "spec.network", "spec.replicatedJobs"),
}


# Kueue's webhooks hold the queue of what runs (pkg/controller/jobframework/validation.go).
QUEUED, QUEUE = ("Job", "JobSet", "LeaderWorkerSet"), "kueue.x-k8s.io/queue-name"


def refused(old: Tree, new: Tree) -> tuple[str, ...]:
    """The properties of `new` that the API server refuses as an update of `old`, an object of the
    same kind, namespace and name; in order."""
    return tuple(sorted(_refused(str(new.get("kind", "")), old, new)))


def _refused(kind: str, old: Tree, new: Tree) -> Iterator[str]:
    for path in FIXED.get(kind, ()):
        if _at(old, path) != _at(new, path):
            yield path
    queues = (_part(_part(tree, "metadata"), "labels").get(QUEUE) for tree in (old, new))
    if kind in QUEUED and len(set(queues)) > 1:
        yield f"metadata.labels.{QUEUE}"
    before, after = _part(old, "spec"), _part(new, "spec")
    if kind in MUTABLE:
        names = {*before, *after} - MUTABLE[kind]
        yield from (f"spec.{n}" for n in names if before.get(n) != after.get(n))
    if kind == "PersistentVolumeClaim" and _shrinks(before, after):
        yield "spec.resources.requests.storage"
    if kind == "Job" and before.get("completions") != after.get("completions"):
        # validateCompletions: an indexed Job grows and shrinks with its parallelism.
        elastic = after.get("completionMode") == "Indexed"
        if not elastic or after.get("completions") != after.get("parallelism"):
            yield "spec.completions"


def _shrinks(before: Tree, after: Tree) -> bool:
    sizes = (_at(spec, "resources.requests.storage") for spec in (before, after))
    was, now = (amount(size) for size in sizes)
    return was is not None and now is not None and now < was


def _at(tree: Tree, path: str) -> Any:
    *parents, last = path.split(".")
    for name in parents:
        tree = _part(tree, name)
    return tree.get(last)


def _part(tree: Tree, name: str) -> Tree:
    part = tree.get(name)
    return part if isinstance(part, Mapping) else {}
