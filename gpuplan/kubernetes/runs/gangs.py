"""A run over nodes as a JobSet: when one of its pods fails, all of them come anew at once.

Source: kubernetes-sigs/jobset at v0.12.0, api/jobset/v1alpha2/jobset_types.go. Its controller makes
the Job and a headless Service for the names of the pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuplan.kubernetes import naming
from gpuplan.kubernetes.objects import KubernetesObject
from gpuplan.kubernetes.scene import Scene
from gpuplan.render.commented import Because, Tree

KIND, API_VERSION = "JobSet", "jobset.x-k8s.io/v1alpha2"
NODES = "nodes"  # its one group of pods
# As the Job's controller calls them (k8s.io/api/batch/v1): a rule of podFailurePolicy, a deadline.
DISRUPTED, LATE = "PodFailurePolicy", "DeadlineExceeded"


def child(name: str) -> str:
    """The Job that the controller makes: its pods are `NAME-INDEX`."""
    return f"{name}-{NODES}-0"


def first_pod(scene: Scene) -> str:
    """Where the ranks meet: the pod of index 0, in the Service of its JobSet."""
    name = naming.job_name(scene.workload)
    return f"{child(name)}-0.{naming.group_name(name)}"


def job_set(
    scene: Scene, run: Mapping[str, Any], needs: tuple[str, ...], restarts: int
) -> KubernetesObject:
    """`run` is the spec of the Job that would do without; `restarts` of failures are allowed."""
    name = naming.job_name(scene.workload)
    return scene.build(
        API_VERSION,
        KIND,
        {
            "metadata": {**scene.described(), "name": name},
            "spec": {
                "network": {
                    "enableDNSHostnames": True,
                    "subdomain": naming.group_name(name),
                    "publishNotReadyAddresses": True,
                },
                "failurePolicy": _failures(restarts),
                "replicatedJobs": [
                    {
                        "name": NODES,
                        "replicas": 1,
                        "template": {
                            "metadata": {"labels": scene.metadata()["labels"]},
                            "spec": {**run, **_whole()},
                        },
                    }
                ],
            },
        },
        depends_on=needs,
        skip_await=True,
    )


def _failures(restarts: int) -> Tree:
    return {
        "maxRestarts": Because(restarts, "what fails more often has another cause"),
        "restartStrategy": Because(
            "BlockingRecreate", "the GPUs are those of the pods before: these go first"
        ),
        "rules": [
            {
                "name": "disrupted",
                "action": "RestartJobSetAndIgnoreMaxRestarts",
                "onJobFailureReasons": Because(
                    [DISRUPTED], "a pod that was preempted or drained has not failed"
                ),
            },
            {
                "name": "late",
                "action": "FailJobSet",
                "onJobFailureReasons": Because([LATE], "no restart brings the deadline back"),
            },
        ],
    }


def _whole() -> Tree:
    """In place of what a Job does of itself with a single pod."""
    condition = [{"type": "DisruptionTarget", "status": "True"}]
    lone = "the others would wait for it until NCCL's timeout"
    return {
        "backoffLimit": Because(0, "the first pod that fails ends all: they come anew together"),
        "podFailurePolicy": {
            "rules": [{"action": "FailJob", "onPodConditions": Because(condition, lone)}]
        },
    }
