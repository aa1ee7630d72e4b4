"""A service whose prompts and answers have pods of their own: those of both roles, and the router
that clients ask."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gpuplan.engines import disaggregated, durations
from gpuplan.engines.container import image
from gpuplan.engines.disaggregated import ROLES, Role
from gpuplan.engines.launch import Launch
from gpuplan.kubernetes import naming, network, serving
from gpuplan.kubernetes.objects import KubernetesObject
from gpuplan.kubernetes.scene import Scene
from gpuplan.render.commented import Because, Tree
from gpuplan.units import GIB

ROUTERS = 2  # one may be away
NOBODY = 65534
# What the router's own example asks for: scripts/k8s/llama3/vllm-router/pd-disagg of
# vllm-project/router, 4d2d7f5713dc, read 2026-11-24.
CPUS, MEMORY_BYTES = 2, 4 * GIB


def scene_of_role(scene: Scene, role: Role) -> Scene:
    """The replicas of one role."""
    count = disaggregated.replicas(scene.workload, role)
    return replace(scene, role=role, workload=replace(scene.workload, replicas=count))


def parts(scene: Scene) -> tuple[Scene, ...]:
    """The workload as its controllers have it: a scene a role, where its pods have some."""
    return tuple(scene_of_role(scene, r) for r in ROLES) if scene.split else (scene,)


def routed(scene: Scene, launch: Launch, needs: tuple[str, ...]) -> Iterator[KubernetesObject]:
    """`launch` is of a replica that does both."""
    before: list[str] = []
    for own, role in zip(parts(scene), ROLES, strict=True):
        for item in serving.serving(own, disaggregated.launch(launch, role), needs):
            yield item
            before.append(item.identity)
    front = replace(scene, role="router", workload=replace(scene.workload, replicas=ROUTERS))
    yield _router(front, _launch(scene), (*needs, *before))
    yield network.service(
        front,
        [{"name": serving.PORT_NAME, "port": launch.port, "targetPort": serving.PORT_NAME}],
        named=scene,
        type="ClusterIP",
    )
    yield serving.disruption_budget(front)


def _launch(scene: Scene) -> Launch:
    urls = {role: [*_urls(scene_of_role(scene, role))] for role in ROLES}
    seconds = durations.startup_seconds(scene.plan, scene.workload)
    return disaggregated.router(scene.workload, urls["prefill"], urls["decode"], seconds)


def _urls(scene: Scene) -> Iterator[str]:
    """Of each pod of a role, by the name that its StatefulSet gives it."""
    assert scene.workload.serving is not None
    for index in range(scene.workload.replicas):
        host = f"{scene.called}-{index}.{scene.called}.{scene.namespace}.svc"
        yield f"http://{host}:{scene.workload.serving.port}"


def _router(scene: Scene, launch: Launch, needs: tuple[str, ...]) -> KubernetesObject:
    labels = scene.metadata()["labels"]
    body: Tree = {
        "metadata": scene.metadata(),
        "spec": {
            "replicas": Because(scene.workload.replicas, "one may be away"),
            "selector": {"matchLabels": scene.selector},
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
            },
            "revisionHistoryLimit": 3,
            "template": {"metadata": {"labels": labels}, "spec": _pod(scene, launch)},
        },
    }
    return scene.build("apps/v1", "Deployment", body, depends_on=needs)


def _pod(scene: Scene, launch: Launch) -> Tree:
    engine = scene.plan.router
    assert engine is not None
    drain = durations.drain_seconds(scene.plan, scene.workload)
    amounts = {"cpu": str(CPUS), "memory": naming.quantity(MEMORY_BYTES)}
    ports = [
        {"name": serving.PORT_NAME, "containerPort": launch.port},
        {"name": "metrics", "containerPort": disaggregated.METRICS_PORT},
    ]
    return {
        "serviceAccountName": scene.name,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "priorityClassName": naming.priority_name(scene.plan, scene.workload),
        "terminationGracePeriodSeconds": Because(
            serving.LEAVE_SECONDS + drain, durations.drain_reason(scene.plan, scene.workload)
        ),
        "topologySpreadConstraints": [serving.spread(scene)],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": NOBODY,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "router",
                "image": image(engine, scene.plan.network),
                "command": list(launch.command),
                "args": [naming.argument(a) for a in launch.arguments],
                "ports": ports,
                **_probes(scene),
                "lifecycle": {"preStop": {"sleep": {"seconds": serving.LEAVE_SECONDS}}},
                "resources": {"requests": amounts, "limits": amounts},
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                },
            }
        ],
    }


def _probes(scene: Scene) -> Tree:
    """It listens when a server of each kind answers, and is dead when it says so."""
    seconds = durations.startup_seconds(scene.plan, scene.workload)
    period = serving.PERIOD_SECONDS

    def probe(path: str) -> Tree:
        get = {"path": path, "port": serving.PORT_NAME}
        return {"httpGet": get, "periodSeconds": period}

    waits = Because(seconds // period, "it listens once a server of each kind answers")
    return {
        "startupProbe": {**probe(disaggregated.LIVE), "failureThreshold": waits},
        "readinessProbe": probe(disaggregated.READY),
        "livenessProbe": probe(disaggregated.LIVE),
    }
