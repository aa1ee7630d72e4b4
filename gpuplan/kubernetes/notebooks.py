"""Notebooks: one pod and one home volume a user, kept when the pod goes."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.engines.launch import Launch
from gpuplan.kubernetes import naming, network, pods, serving, storage, timing
from gpuplan.kubernetes.objects import KubernetesObject
from gpuplan.kubernetes.scene import Scene

USERS_GROUP = 100  # the group `users` of Jupyter's images (NB_GID)


def notebooks(scene: Scene, start: Launch, needs: tuple[str, ...]) -> Iterator[KubernetesObject]:
    yield _service(scene, start)
    yield _set(scene, start, (*needs, f"Service/{scene.key}"))


def _set(scene: Scene, start: Launch, needs: tuple[str, ...]) -> KubernetesObject:
    workload = scene.workload
    own = [v for v in workload.volumes if pods.templated(scene, v)]
    container = {
        "ports": [{"name": "http", "containerPort": start.port}],
        "readinessProbe": {"tcpSocket": {"port": "http"}, "periodSeconds": 10},
    }
    filling = [serving.filling(scene)] if workload.packed and workload.replicas > 1 else None
    spec = pods.spec(scene, start, container=container, topologySpreadConstraints=filling)
    # The home volume must be writable for the image's own user.
    spec["securityContext"] = {**spec["securityContext"], "fsGroup": USERS_GROUP}
    return scene.build(
        "apps/v1",
        "StatefulSet",
        {
            "metadata": scene.described(),
            "spec": {
                "replicas": workload.replicas,
                "serviceName": scene.name,
                "podManagementPolicy": "Parallel",
                "selector": {"matchLabels": naming.selector(scene.plan, workload)},
                "persistentVolumeClaimRetentionPolicy": {
                    "whenDeleted": "Retain",
                    "whenScaled": "Retain",
                },
                "template": {"metadata": pods.metadata(scene), "spec": spec},
                "volumeClaimTemplates": [storage.template(scene, v) for v in own] or None,
            },
        },
        depends_on=needs,
        timeout_seconds=timing.PREPARE_SECONDS,
        update_seconds=timing.update_seconds(scene),
    )


def _service(scene: Scene, start: Launch) -> KubernetesObject:
    """A name for each user's pod: NAME-0.NAME, NAME-1.NAME, …"""
    ports = [{"name": "http", "port": start.port, "targetPort": "http"}]
    return network.service(scene, ports, clusterIP="None")
