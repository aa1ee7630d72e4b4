"""A batch waits for its requests, which somebody puts into its volume: what lets them."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.engines.container import image
from gpuplan.engines.launch import Launch
from gpuplan.kubernetes import naming, pods
from gpuplan.kubernetes.objects import BooleanSetting
from gpuplan.kubernetes.scene import Scene, scene_of
from gpuplan.plan.model import Plan, Workload
from gpuplan.render import commented
from gpuplan.render.commented import Because, Tree, strip
from gpuplan.render.tree import File
from gpuplan.units import GIB

EXCHANGED = ("requests", "results")  # purposes of volumes
AS_THE_RUN = (
    "serviceAccountName",
    "automountServiceAccountToken",
    "nodeSelector",
    "tolerations",
    "affinity",
    "securityContext",
)
# Of a pod that only copies: a quota counts what it asks for.
COPYING = {"cpu": "1", "memory": naming.quantity(4 * GIB)}


def hold_setting(workload: Workload) -> str:
    return f"hold-{workload.name}"


def held(scene: Scene) -> Because | None:
    if scene.workload.task != "batch":
        return None
    reason = "no GPU is taken until its requests are there"
    return Because(BooleanSetting(hold_setting(scene.workload)), reason)


def files_pod(scene: Scene) -> str:
    return f"{scene.name}-files"


def files(plan: Plan) -> Iterator[File]:
    """A pod for each batch that mounts what it reads and writes. No part of the program: it is
    there only while somebody copies."""
    for workload in plan.workloads:
        if workload.task == "batch" and any(v.purpose in EXCHANGED for v in workload.volumes):
            tree, comments = strip(_pod(scene_of(plan, workload)))
            title = f"Files of {workload.name}, to copy; delete it before the run starts"
            text = commented.dumps(tree, dict(comments), title)
            yield File(files_path(workload), text)


def files_path(workload: Workload) -> str:
    return f"workloads/{workload.name}/files.yaml"


def _pod(scene: Scene) -> Tree:
    volumes = [v for v in scene.workload.volumes if v.purpose in EXCHANGED]
    names = {v.name for v in volumes}
    run = pods.spec(scene, Launch(), container={})
    (engine,) = run["containers"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": scene.metadata(files_pod(scene)),
        "spec": {
            **{name: run[name] for name in AS_THE_RUN},
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "files",
                    "image": Because(
                        image(scene.workload.engine, scene.plan.network), "the run needs it anyway"
                    ),
                    "command": ["sleep", "infinity"],
                    "resources": {"requests": COPYING, "limits": COPYING},
                    "securityContext": engine["securityContext"],
                    "volumeMounts": [{"name": v.name, "mountPath": v.mount_path} for v in volumes],
                }
            ],
            "volumes": [v for v in run["volumes"] if v["name"] in names],
        },
    }
