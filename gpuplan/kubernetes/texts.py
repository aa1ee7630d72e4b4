"""What an engine reads beside its arguments: a ConfigMap, and what marks the pods that read it."""

from __future__ import annotations

from gpuplan.engines.launch import Launch
from gpuplan.kubernetes import naming
from gpuplan.kubernetes.objects import FileText, KubernetesObject
from gpuplan.kubernetes.scene import Scene


def config(scene: Scene, launch: Launch) -> KubernetesObject:
    folder = f"workloads/{scene.name}"
    data = {name: FileText(f"{folder}/{name}", text) for name, text in launch.files}
    return scene.build("v1", "ConfigMap", {"metadata": scene.metadata(), "data": data})


def marked(launch: Launch) -> dict[str, str]:
    """An annotation that changes with the texts: pods read them once, at their start."""
    if not launch.files:
        return {}
    return {"gpuplan.dev/config": naming.fingerprint(dict(launch.files))}
