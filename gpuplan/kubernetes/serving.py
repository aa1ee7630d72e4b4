"""A server: its pods, its address, and how many of them may be away at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gpuplan.engines import durations
from gpuplan.engines.launch import Indexed, Launch
from gpuplan.kubernetes import naming, network, pods, storage, timing
from gpuplan.kubernetes.objects import KubernetesObject
from gpuplan.kubernetes.scene import Scene
from gpuplan.plan.times import in_words
from gpuplan.render.commented import Because, Tree

PORT_NAME = "http"
LEAVE_SECONDS = timing.LEAVE_SECONDS
PERIOD_SECONDS = 10  # Kubernetes' own default, which the number of failures is counted with
# An engine under full load answers its health path late; a minute without any answer is a hang.
# It is killed soon then: neither the pause before a stop nor the drain brings an answer out of it.
HUNG_SECONDS = 10
ANY_SKEW = 1_000_000  # beside it the pods on a node count for nothing
LIVENESS = {"periodSeconds": PERIOD_SECONDS, "timeoutSeconds": 10, "failureThreshold": 6}


def serving(scene: Scene, launch: Launch, needs: tuple[str, ...]) -> Iterator[KubernetesObject]:
    """`needs` are the identities that must exist before the pods."""
    if launch.files:
        yield storage.config(scene, launch)
        needs = (*needs, f"ConfigMap/{scene.key}")
    make = _groups if scene.grouped else _controller
    yield make(scene, launch, needs)
    yield _service(scene, launch)
    if scene.workload.replicas > 1:
        yield disruption_budget(scene)


def _controller(scene: Scene, launch: Launch, needs: tuple[str, ...]) -> KubernetesObject:
    """A Deployment; a StatefulSet where each pod has a volume of its own, or a name that a router
    knows."""
    own = [v for v in scene.workload.volumes if pods.templated(scene, v)]
    named = bool(own) or scene.role is not None
    kind = "StatefulSet" if named else "Deployment"
    arrival = timing.arrival_seconds(scene)
    common: Tree = {
        "replicas": Because(scene.workload.replicas, _replicas(scene)),
        "selector": {"matchLabels": scene.selector},
        **({"serviceName": scene.called} if named else {}),
        **(_parallel_pods(scene) if named else _rollout(scene, arrival)),
        "template": {
            "metadata": pods.metadata(scene, storage.marked(launch)),
            "spec": _pod(scene, launch),
        },
        "volumeClaimTemplates": [storage.template(scene, v) for v in own] or None,
    }
    return scene.build(
        "apps/v1",
        kind,
        {"metadata": scene.described(), "spec": common},
        depends_on=needs,
        timeout_seconds=arrival,
        update_seconds=timing.update_seconds(scene),
    )


def _groups(scene: Scene, launch: Launch, needs: tuple[str, ...]) -> KubernetesObject:
    """A group of pods for each replica, one on each of its nodes."""
    lone = "a replica whose part is gone serves nothing: its pods come anew, all of them"
    update = {"maxSurge": 0, "maxUnavailable": 1}
    return scene.build(
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        {
            "metadata": {**scene.described(), "name": naming.group_name(scene.name)},
            "spec": {
                "replicas": Because(scene.workload.replicas, _replicas(scene)),
                "startupPolicy": "LeaderCreated",
                "rolloutStrategy": {
                    "type": "RollingUpdate",
                    "rollingUpdateConfiguration": Because(update, _in_turn(scene)),
                },
                "leaderWorkerTemplate": {
                    "size": Because(scene.workload.nodes_per_replica, "a pod on each node"),
                    "restartPolicy": Because("RecreateGroupOnPodRestart", lone),
                    "leaderTemplate": {
                        "metadata": pods.metadata(scene, role=naming.LEADS),
                        "spec": _pod(scene, launch),
                    },
                    "workerTemplate": {
                        "metadata": pods.metadata(scene, role=naming.FOLLOWS),
                        "spec": _worker(scene, launch),
                    },
                },
            },
        },
        depends_on=needs,
    )


def _worker(scene: Scene, launch: Launch) -> Tree:
    """Without a port: when it ends, its group comes anew. It waits with the leader for answers that
    are at work."""
    drain = durations.drain_seconds(scene.plan, scene.workload)
    others = replace(launch, arguments=launch.others)
    steps = [a.times for a in launch.others if isinstance(a, Indexed) and a.times > 1]
    if steps:
        others = _multiplied(others)
    sleep = Because(timing.LEAVE_SECONDS + drain, "until the leader has answered what is at work")
    return pods.spec(
        scene,
        others,
        role=naming.FOLLOWS,
        container={"lifecycle": {"preStop": {"sleep": {"seconds": sleep}}}},
        terminationGracePeriodSeconds=timing.LEAVE_SECONDS + drain + timing.STOP_SECONDS,
    )


def _multiplied(launch: Launch) -> Launch:
    """Kubernetes puts an index into an argument, and multiplies none: a shell does."""
    counted = [a for a in launch.arguments if isinstance(a, Indexed) and a.times > 1]
    words = " ".join(f"{a.before}$((LWS_WORKER_INDEX * {a.times})){a.after}" for a in counted)
    rest = tuple(a for a in launch.arguments if a not in counted)
    return replace(
        launch,
        command=("sh", "-c", f'exec "$@" {words}', "sh", *launch.command),
        arguments=rest,
    )


def _rollout(scene: Scene, arrival: int) -> Tree:
    """The one pod of a service goes before its successor is made. A rolling update would make it
    while the other ends: the quota refuses it, and the ReplicaSet tries again after as long as it
    has waited already, so that the outage would be twice the drain."""
    strategy: Tree = {
        "type": "RollingUpdate",
        "rollingUpdate": Because({"maxSurge": 0, "maxUnavailable": 1}, _in_turn(scene)),
    }
    if scene.workload.replicas == 1:
        strategy = {"type": Because("Recreate", _in_turn(scene))}
    return {
        "strategy": strategy,
        "progressDeadlineSeconds": Because(arrival, timing.PREPARE_REASON),
        "revisionHistoryLimit": 3,
    }


def _in_turn(scene: Scene) -> str:
    if scene.workload.replicas > 1:
        return "no GPU is spare: one pod goes before one comes"
    return f"no GPU is spare: the one pod goes before its successor comes, {timing.outage(scene)}"


def _parallel_pods(scene: Scene) -> Tree:
    retain = {"whenDeleted": "Retain", "whenScaled": "Retain"}
    return {
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": Because("RollingUpdate", _in_turn(scene))},
        "persistentVolumeClaimRetentionPolicy": retain,
        "revisionHistoryLimit": 3,
    }


def _pod(scene: Scene, launch: Launch) -> Tree:
    drain = durations.drain_seconds(scene.plan, scene.workload)
    why = durations.drain_reason(scene.plan, scene.workload)
    sleep = Because(timing.LEAVE_SECONDS, "until no new requests come; then the engine drains")
    if launch.drain_flag is None:
        sleep = Because(timing.LEAVE_SECONDS + drain, f"the engine drops its requests: {why}")
    else:
        own = Because(f"--{launch.drain_flag}={drain}", why)
        launch = replace(launch, arguments=(*launch.arguments, own))
    return pods.spec(
        scene,
        launch,
        container={
            "ports": [{"name": PORT_NAME, "containerPort": launch.port}],
            **_probes(scene, launch),
            "lifecycle": {"preStop": {"sleep": {"seconds": sleep}}},
        },
        terminationGracePeriodSeconds=timing.LEAVE_SECONDS + drain + timing.STOP_SECONDS,
        topologySpreadConstraints=[_over_nodes(scene)] if _several(scene) else None,
    )


def _several(scene: Scene) -> bool:
    """Whether replicas could share a node."""
    return scene.workload.replicas > 1 and not scene.grouped


def _probes(scene: Scene, launch: Launch) -> Tree:
    failures = durations.startup_seconds(scene.plan, scene.workload) // PERIOD_SECONDS
    return {
        "startupProbe": {
            **_probe(launch),
            "periodSeconds": PERIOD_SECONDS,
            "failureThreshold": Because(
                failures, durations.startup_reason(scene.plan, scene.workload)
            ),
        },
        "readinessProbe": {**_probe(launch), "periodSeconds": PERIOD_SECONDS},
        "livenessProbe": {
            **_probe(launch),
            **LIVENESS,
            "terminationGracePeriodSeconds": Because(
                HUNG_SECONDS, "what hangs has no one to drain"
            ),
        },
    }


def _over_nodes(scene: Scene) -> Tree:
    return filling(scene) if scene.workload.packed else spread(scene)


def filling(scene: Scene) -> Tree:
    """One node after the other. A pod without any word of it is spread by the cluster's own rule,
    where it has a Service."""
    reason = "replicas may share a node: some pods need whole ones"
    any_skew = Because(ANY_SKEW, reason)
    return {**spread(scene), "maxSkew": any_skew, "whenUnsatisfiable": "ScheduleAnyway"}


def spread(scene: Scene) -> Tree:
    """Over nodes, where there are several."""
    return {
        "maxSkew": 1,
        "topologyKey": naming.HOSTNAME_LABEL,
        "whenUnsatisfiable": Because(
            "ScheduleAnyway", "replicas spread over nodes where they can, but share one at need"
        ),
        "labelSelector": {"matchLabels": scene.selector},
    }


def _probe(launch: Launch) -> Tree:
    if launch.health is None:
        return {"tcpSocket": {"port": PORT_NAME}}
    return {"httpGet": {"path": launch.health, "port": PORT_NAME}}


def _replicas(scene: Scene) -> str:
    workload = scene.workload
    gpus = workload.parallelism.gpus
    each = f"{gpus} × {workload.partition or workload.gpu}"
    limits = [m for m in workload.metrics if m.limit is not None and not m.accepted_miss]
    goals = " and ".join(in_words(m.name) for m in limits)
    return f"each on {each}; meets {goals}" if goals else f"each on {each}"


def _service(scene: Scene, launch: Launch) -> KubernetesObject:
    ports = [{"name": PORT_NAME, "port": launch.port, "targetPort": PORT_NAME}]
    if scene.role is not None:
        each = Because("None", "the router asks each of its pods by its name")
        return network.service(scene, ports, clusterIP=each)
    return network.service(scene, ports, type="ClusterIP")


def disruption_budget(scene: Scene) -> KubernetesObject:
    """One pod may be away."""
    return scene.build(
        "policy/v1",
        "PodDisruptionBudget",
        {
            "metadata": scene.metadata(),
            "spec": {
                "maxUnavailable": 1,
                "unhealthyPodEvictionPolicy": Because(
                    "AlwaysAllow", "a drain does not wait for a pod that serves nobody"
                ),
                "selector": {"matchLabels": scene.selector},
            },
        },
    )
