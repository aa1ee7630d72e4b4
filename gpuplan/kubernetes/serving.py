"""A server: its pods, its address, and how many of them may be away at once."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gpuplan.kubernetes import naming, pods, storage
from gpuplan.kubernetes.engines import Launch
from gpuplan.kubernetes.objects import Because, KubernetesObject, Tree, build
from gpuplan.kubernetes.scene import Scene
from gpuplan.units import GIB, MB, format_bytes

PORT_NAME = "http"
LOAD_BYTES_PER_S: int = 100 * MB
WARM_UP_SECONDS = 600
PERIOD_SECONDS = 10
ANSWER_TOKENS = 1024
DRAIN_SECONDS = (30, 600)


def serving(scene: Scene, launch: Launch, needs: tuple[str, ...]) -> Iterator[KubernetesObject]:
    """`needs` are the identities that must exist before the pods."""
    yield _controller(scene, launch, needs)
    yield _service(scene, launch)
    if scene.workload.replicas > 1:
        yield _disruption_budget(scene)


def _controller(scene: Scene, launch: Launch, needs: tuple[str, ...]) -> KubernetesObject:
    """A Deployment; a StatefulSet where each pod has a volume of its own."""
    own = [v for v in scene.workload.volumes if pods.templated(scene, v)]
    kind = "StatefulSet" if own else "Deployment"
    startup = startup_seconds(scene)
    common: Tree = {
        "replicas": Because(scene.workload.replicas, _replicas(scene)),
        "selector": {"matchLabels": naming.selector(scene.plan, scene.workload)},
        **({"serviceName": scene.name} if own else {}),
        **(_parallel_pods() if own else _rollout(startup)),
        "template": {"metadata": pods.metadata(scene), "spec": _pod(scene, launch, startup)},
        "volumeClaimTemplates": [storage.template(scene, v) for v in own] or None,
    }
    return build(
        scene.key,
        "apps/v1",
        kind,
        "workload",
        {"metadata": scene.described(), "spec": common},
        depends_on=needs,
        former=scene.former_keys(kind),
        timeout_seconds=startup * scene.workload.replicas,
    )


def _rollout(startup: int) -> Tree:
    update = {"maxSurge": 0, "maxUnavailable": 1}
    return {
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": Because(update, "no GPU is spare: one pod goes before one comes"),
        },
        "progressDeadlineSeconds": startup + PERIOD_SECONDS,
        "revisionHistoryLimit": 3,
    }


def _parallel_pods() -> Tree:
    retain = {"whenDeleted": "Retain", "whenScaled": "Retain"}
    return {
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "RollingUpdate"},
        "persistentVolumeClaimRetentionPolicy": retain,
        "revisionHistoryLimit": 3,
    }


def _pod(scene: Scene, launch: Launch, startup: int) -> Tree:
    drain = drain_seconds(scene)
    container = {
        "ports": [{"name": PORT_NAME, "containerPort": launch.port}],
        "startupProbe": {
            **_probe(launch),
            "periodSeconds": PERIOD_SECONDS,
            "failureThreshold": Because(startup // PERIOD_SECONDS, _startup(scene)),
        },
        "readinessProbe": {**_probe(launch), "periodSeconds": PERIOD_SECONDS},
        "livenessProbe": {
            **_probe(launch),
            "periodSeconds": PERIOD_SECONDS,
            "timeoutSeconds": 10,
            "failureThreshold": 6,
        },
        "lifecycle": {
            "preStop": {
                "sleep": Because({"seconds": drain}, f"{ANSWER_TOKENS} more tokens of each answer")
            }
        },
    }
    spread = {
        "maxSkew": 1,
        "topologyKey": naming.HOSTNAME_LABEL,
        "whenUnsatisfiable": Because(
            "ScheduleAnyway", "replicas spread over nodes where they can, but share one at need"
        ),
        "labelSelector": {"matchLabels": naming.selector(scene.plan, scene.workload)},
    }
    return pods.spec(
        scene,
        launch,
        container=container,
        terminationGracePeriodSeconds=drain + 30,
        topologySpreadConstraints=[spread] if scene.workload.replicas > 1 else None,
    )


def _probe(launch: Launch) -> Tree:
    if launch.health is None:
        return {"tcpSocket": {"port": PORT_NAME}}
    return {"httpGet": {"path": launch.health, "port": PORT_NAME}}


def startup_seconds(scene: Scene) -> int:
    """A bound on loading, not a prediction: slower than this is taken for hanging."""
    loading = _weights(scene) / LOAD_BYTES_PER_S
    return math.ceil((WARM_UP_SECONDS + loading) / 60) * 60


def _weights(scene: Scene) -> int:
    return scene.workload.memory.weights_bytes * scene.workload.parallelism.gpus


def _startup(scene: Scene) -> str:
    size = format_bytes(max(_weights(scene), GIB))
    rate = LOAD_BYTES_PER_S // MB
    return f"{size} of weights at no less than {rate} MB/s, and {WARM_UP_SECONDS} s to warm up"


def drain_seconds(scene: Scene) -> int:
    """How long a pod that goes still answers: the requests it has at the pessimistic speed."""
    paces = [m.estimate for m in scene.workload.metrics if m.name == "time_per_output_token"]
    low, high = DRAIN_SECONDS
    seconds = math.ceil(ANSWER_TOKENS * paces[0].high) if paces else 2 * low
    return sorted((low, seconds, high))[1]


def _replicas(scene: Scene) -> str:
    workload = scene.workload
    gpus = workload.parallelism.gpus
    each = f"{gpus} × {workload.partition or workload.gpu}"
    limits = [m for m in workload.metrics if m.limit is not None]
    goals = " and ".join(m.name.replace("_", " ") for m in limits)
    return f"each on {each}; meets {goals}" if goals else f"each on {each}"


def _service(scene: Scene, launch: Launch) -> KubernetesObject:
    return build(
        scene.key,
        "v1",
        "Service",
        "workload",
        {
            "metadata": scene.metadata(),
            "spec": {
                "type": "ClusterIP",
                "selector": naming.selector(scene.plan, scene.workload),
                "ports": [{"name": PORT_NAME, "port": launch.port, "targetPort": PORT_NAME}],
            },
        },
        depends_on=(f"Namespace/tenant-{scene.workload.tenant}",),
        former=scene.former_keys("Service"),
        skip_await=True,
    )


def _disruption_budget(scene: Scene) -> KubernetesObject:
    return build(
        scene.key,
        "policy/v1",
        "PodDisruptionBudget",
        "workload",
        {
            "metadata": scene.metadata(),
            "spec": {
                "maxUnavailable": 1,
                "selector": {"matchLabels": naming.selector(scene.plan, scene.workload)},
            },
        },
        depends_on=(f"Namespace/tenant-{scene.workload.tenant}",),
        former=scene.former_keys("PodDisruptionBudget"),
    )
