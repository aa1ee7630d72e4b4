"""What a cluster must have before a plan's objects come: a release, secrets, storage classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpuplan.engines.container import listening_port
from gpuplan.kubernetes import naming
from gpuplan.kubernetes.objects import KubernetesObject
from gpuplan.plan.model import Component, Plan, Workload, record

# The minor release of Kubernetes 1 that first has what every stack uses: Pod Security levels as
# labels of a namespace, generally available.
OLDEST = 25
# The one that first has a field switched on, by the field's last name: a server before it drops the
# field, or refuses it. Source: kubernetes/kubernetes, pkg/features/kube_features.go (2026-11-21).
FIRST_RELEASE = {
    "batch.kubernetes.io/job-completion-index": (28, "the label of a Job's index"),  # PodIndexLabel
    "matchLabelKeys": (31, "podAffinity.matchLabelKeys"),  # MatchLabelKeysInPodAffinity
    "podFailurePolicy": (26, "podFailurePolicy"),  # JobPodFailurePolicy
    # StatefulSetAutoDeletePVC
    "persistentVolumeClaimRetentionPolicy": (27, "persistentVolumeClaimRetentionPolicy"),
    "resourceClaims": (34, "resourceClaims"),  # DynamicResourceAllocation
    "sleep": (30, "preStop.sleep"),  # PodLifecycleSleepAction
    # PDBUnhealthyPodEvictionPolicy
    "unhealthyPodEvictionPolicy": (27, "unhealthyPodEvictionPolicy"),
}


@record
class Release:
    """The oldest release of Kubernetes that will do, and what needs it."""

    minor: int
    needed_by: str

    def __str__(self) -> str:
        return f"1.{self.minor}"


@record
class ExistingSecret:
    """A Secret that the plan refers to and nobody here makes. `readers` are pairs of a variable and
    a workload."""

    namespace: str
    name: str
    keys: tuple[str, ...]
    readers: tuple[tuple[str, str], ...]


@record
class StorageClass:
    """`name` is None for the cluster's default. `shared`: it makes volumes for several nodes."""

    name: str | None
    shared: bool


def release(objects: Iterable[KubernetesObject], components: Iterable[Component]) -> Release:
    used = _fields(objects)
    releases = [Release(minor=OLDEST, needed_by="pod-security.kubernetes.io/enforce")]
    fields = (FIRST_RELEASE[f] for f in sorted(used & FIRST_RELEASE.keys()))
    releases += (Release(minor=minor, needed_by=words) for minor, words in fields)
    releases += (
        Release(
            minor=int(c.kubernetes_minimum.partition(".")[2]), needed_by=f"{c.name} {c.version}"
        )
        for c in components
        if c.kubernetes_minimum
    )
    return max(releases, key=lambda r: r.minor)


def _fields(objects: Iterable[KubernetesObject]) -> set[str]:
    """The names of all fields that are used."""
    names: set[str] = set()
    for item in objects:
        _add_fields(item.tree, names)
    return names


def _add_fields(tree: Any, names: set[str]) -> None:
    if isinstance(tree, str | int | float):  # most of a tree, and quicker than a protocol
        return
    if isinstance(tree, Mapping):
        names.update(tree)
        for value in tree.values():
            _add_fields(value, names)
    elif isinstance(tree, Sequence):
        for value in tree:
            _add_fields(value, names)


def existing_secrets(plan: Plan) -> tuple[ExistingSecret, ...]:
    readers: dict[tuple[str, str], list[tuple[str, tuple[str, str]]]] = {}
    for workload in plan.workloads:
        namespace = naming.namespace_name(plan, workload.tenant)
        for secret in workload.secrets:
            if secret.store == "secret":
                reader = secret.environment, workload.name
                readers.setdefault((namespace, secret.name), []).append((secret.key, reader))
    return tuple(
        ExistingSecret(
            namespace=namespace,
            name=name,
            keys=tuple(sorted({key for key, _ in uses})),
            readers=tuple(reader for _, reader in uses),
        )
        for (namespace, name), uses in sorted(readers.items())
    )


def pull_secrets(plan: Plan) -> tuple[tuple[str, str], ...]:
    """(namespace, name) of each secret with a registry's credentials: of every tenant, and of the
    charts whose images come from mirrors too."""
    names = plan.network.pull_secrets if plan.network else ()
    spaces = [naming.namespace_name(plan, t.name) for t in plan.tenants]
    spaces += [c.namespace for c in plan.components]
    return tuple((space, name) for space in dict.fromkeys(spaces) for name in names)


def storage_classes(plan: Plan) -> tuple[StorageClass, ...]:
    shared: dict[str | None, bool] = {}
    for volume in (v for w in plan.workloads for v in w.volumes):
        shared[volume.storage_class] = shared.get(volume.storage_class, False) or volume.shared
    names = sorted(shared, key=lambda name: name or "")
    return tuple(StorageClass(name=n, shared=shared[n]) for n in names)


def kept_namespaces(objects: Iterable[KubernetesObject]) -> tuple[str, ...]:
    """Namespaces that stay when the stack goes, because they hold data."""
    return tuple(o.name for o in objects if o.kind == "Namespace" and o.retain_on_delete)


def never_equal(objects: Iterable[KubernetesObject]) -> tuple[str, ...]:
    """Parts that a server completes or keeps in another form: server-side apply takes them for
    changed, whoever applies them anew."""
    parts = {
        "stringData": "a Secret's text",
        "volumeClaimTemplates": "the claims of a StatefulSet",
    }
    used = _fields(objects)
    return tuple(words for name, words in parts.items() if name in used)


def listening(plan: Plan) -> tuple[Workload, ...]:
    """Workloads that others connect to."""
    return tuple(w for w in plan.workloads if listening_port(w) is not None)
