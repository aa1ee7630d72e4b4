"""The queues of tenants: of one of the cluster's, by which Kueue admits the pods of a run, or of a
replica, over several nodes at once."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.kubernetes import naming
from gpuplan.kubernetes.objects import KubernetesObject, build
from gpuplan.kubernetes.pods import resources
from gpuplan.kubernetes.scene import Scene
from gpuplan.plan.model import Plan

API = "kueue.x-k8s.io/v1beta2"


def queues(plan: Plan, scenes: tuple[Scene, ...]) -> Iterator[KubernetesObject]:
    """One for each tenant who has such work, called like the cluster's: it cannot change which that
    is."""
    for tenant in dict.fromkeys(s.workload.tenant for s in scenes if s.queued):
        key = naming.tenant_key(tenant)
        metadata = {
            "name": plan.queue,
            "namespace": naming.namespace_name(plan, tenant),
            "labels": {"app.kubernetes.io/managed-by": naming.MANAGER},
        }
        yield build(
            key,
            API,
            "LocalQueue",
            "cluster",
            {"metadata": metadata, "spec": {"clusterQueue": plan.queue}},
            depends_on=(f"Namespace/{key}",),
        )


def covered(scenes: tuple[Scene, ...]) -> tuple[str, ...]:
    """What pods ask of it: a resource that a queue does not cover is never admitted."""
    asked = {name for s in scenes if s.queued for name, n in _limits(s).items() if n is not None}
    return tuple(sorted(asked))


def _limits(scene: Scene) -> dict[str, object]:
    limits: dict[str, object] = resources(scene)["limits"]
    return limits
