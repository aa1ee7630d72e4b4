"""A run that ends, once or at each time of a schedule: training, fine-tuning, or a batch. Every pod
has an index."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gpuplan.engines.launch import Launch
from gpuplan.engines.rendezvous import RENDEZVOUS_PORT
from gpuplan.kubernetes import batches, naming, network, pods, storage
from gpuplan.kubernetes.objects import KubernetesObject
from gpuplan.kubernetes.runs import gangs
from gpuplan.kubernetes.scene import Scene
from gpuplan.render.commented import Because, Tree

# Nodes and networks fail now and then in days of a run; what fails more often has another cause.
RETRIES = 3
LATE_SECONDS = 3600
INDEX_LABEL = "batch.kubernetes.io/job-completion-index"  # of a Job's pods, from Kubernetes 1.28 on


def job(scene: Scene, launch: Launch, needs: tuple[str, ...]) -> Iterator[KubernetesObject]:
    """`needs` must exist before the pods."""
    if launch.files:
        yield storage.config(scene, launch)
        needs = (*needs, f"ConfigMap/{scene.key}")
    if scene.restarts_whole:
        yield gangs.job_set(scene, _run(scene, launch), needs, RETRIES)
        return
    if scene.workload.nodes_per_replica > 1:
        yield _service(scene)
        needs = (*needs, f"Service/{scene.key}")
    yield (_cron_job if scene.workload.schedule else _job)(scene, launch, needs)


def first_pod(scene: Scene) -> str:
    """The host name of the pod that the others meet at. Every start of a CronJob has its own."""
    if scene.workload.schedule:
        return scene.name
    if scene.restarts_whole:
        return gangs.first_pod(scene)
    return f"{naming.job_name(scene.workload)}-0.{scene.name}"


def _service(scene: Scene) -> KubernetesObject:
    """Names for the pods, also before they are ready: that is when they look for each other."""
    ports = [{"name": "rendezvous", "port": RENDEZVOUS_PORT}]
    first = {INDEX_LABEL: "0"} if scene.workload.schedule else {}
    return network.service(
        scene, ports, only=first, clusterIP="None", publishNotReadyAddresses=True
    )


def _cron_job(scene: Scene, launch: Launch, needs: tuple[str, ...]) -> KubernetesObject:
    described = scene.described()
    body = {
        "metadata": described,
        "spec": {
            "schedule": scene.workload.schedule,
            "timeZone": "Etc/UTC",
            "concurrencyPolicy": Because("Forbid", "no GPUs are planned for two at once"),
            "startingDeadlineSeconds": Because(
                LATE_SECONDS, "what could not start within the hour waits for its next time"
            ),
            "suspend": batches.held(scene),
            "jobTemplate": {
                "metadata": {"labels": described["labels"]},
                "spec": _run(scene, launch),
            },
        },
    }
    return scene.build("batch/v1", "CronJob", body, depends_on=needs)


def _job(scene: Scene, launch: Launch, needs: tuple[str, ...]) -> KubernetesObject:
    body = {
        "metadata": {**scene.described(), "name": naming.job_name(scene.workload)},
        "spec": {"suspend": batches.held(scene), **_run(scene, launch)},
    }
    return scene.build("batch/v1", "Job", body, depends_on=needs, skip_await=True)


def _run(scene: Scene, launch: Launch) -> Tree:
    several = scene.workload.nodes_per_replica > 1 and not scene.restarts_whole
    return {
        "completionMode": "Indexed",
        "completions": scene.pods,
        "parallelism": scene.pods,
        "backoffLimit": Because(RETRIES * scene.pods, f"{RETRIES} failures of every pod"),
        "podFailurePolicy": {
            "rules": [
                {
                    "action": "Ignore",
                    "onPodConditions": Because(
                        [{"type": "DisruptionTarget", "status": "True"}],
                        "a pod that was preempted or drained has not failed",
                    ),
                }
            ]
        },
        "activeDeadlineSeconds": _deadline(scene),
        "template": {
            "metadata": pods.metadata(scene, storage.marked(launch)),
            "spec": pods.spec(
                scene,
                launch,
                container={},
                restartPolicy="Never",
                subdomain=scene.name if several else None,
            ),
        },
    }


def _deadline(scene: Scene) -> Because | None:
    seconds = scene.workload.deadline_seconds
    return None if seconds is None else Because(math.ceil(seconds), "the manifest's deadline")
