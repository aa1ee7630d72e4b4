"""Persistent volumes: claims that outlive whoever uses them; and the texts that an engine reads."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.engines.launch import Launch
from gpuplan.kubernetes import naming
from gpuplan.kubernetes.objects import FileText, KubernetesObject, build
from gpuplan.kubernetes.pods import claim_name, templated
from gpuplan.kubernetes.scene import Scene
from gpuplan.plan.model import Plan, RetainedClaim, Volume
from gpuplan.render.commented import Tree


def claims(scene: Scene) -> Iterator[KubernetesObject]:
    for volume in scene.workload.volumes:
        if not templated(scene, volume):
            yield _claim(scene, volume)


def claim_key(scene: Scene, volume: Volume) -> str:
    return naming.claim(scene.key, volume.name, volume.generation)


def claim_spec(volume: Volume | RetainedClaim) -> Tree:
    """A claim of the cluster's default storage class where the plan names none."""
    return {
        "accessModes": ["ReadWriteMany" if volume.shared else "ReadWriteOnce"],
        "storageClassName": volume.storage_class,
        "resources": {"requests": {"storage": naming.quantity(volume.size_bytes)}},
    }


def template(scene: Scene, volume: Volume) -> Tree:
    """The claim that a StatefulSet makes for each pod."""
    labels = naming.selector(scene.plan, scene.workload)
    return {"metadata": {"name": volume.name, "labels": labels}, "spec": claim_spec(volume)}


def retained(plan: Plan) -> Iterator[KubernetesObject]:
    """Claims of an earlier stack, whose data nobody may lose by an update."""
    for claim in plan.retained_claims:
        if claim.pods is not None:  # no object of the program: its StatefulSet made them
            continue
        metadata = {
            "name": naming.claim(claim.workload, claim.volume, claim.generation),
            "namespace": naming.namespace_name(plan, claim.tenant),
            "labels": {
                "app.kubernetes.io/name": claim.workload,
                "app.kubernetes.io/part-of": plan.name,
                "app.kubernetes.io/managed-by": naming.MANAGER,
                naming.TENANT_LABEL: claim.tenant,
            },
        }
        yield build(
            claim.key,
            "v1",
            "PersistentVolumeClaim",
            "cluster",
            {"metadata": metadata, "spec": claim_spec(claim)},
            depends_on=(f"Namespace/{naming.tenant_key(claim.tenant)}",),
            protect=True,
            retain_on_delete=True,
        )


def _claim(scene: Scene, volume: Volume) -> KubernetesObject:
    suffix = naming.claim("", volume.name, volume.generation)
    return build(
        claim_key(scene, volume),
        "v1",
        "PersistentVolumeClaim",
        "workload",
        {"metadata": scene.metadata(claim_name(scene, volume)), "spec": claim_spec(volume)},
        depends_on=(scene.of_tenant("Namespace"),),
        former=scene.former_keys("PersistentVolumeClaim", suffix),
        protect=True,
        retain_on_delete=True,
    )


def config(scene: Scene, launch: Launch) -> KubernetesObject:
    """The texts that an engine reads beside its arguments."""
    folder = f"workloads/{scene.name}"
    data = {name: FileText(f"{folder}/{name}", text) for name, text in launch.files}
    return scene.build("v1", "ConfigMap", {"metadata": scene.metadata(), "data": data})


def marked(launch: Launch) -> dict[str, str]:
    """An annotation that changes with the texts: pods read them once, at their start."""
    if not launch.files:
        return {}
    return {"gpuplan.dev/config": naming.fingerprint(dict(launch.files))}
