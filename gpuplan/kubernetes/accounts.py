"""Who a workload's pods are: an account without rights, and the secrets they read."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.kubernetes.objects import KubernetesObject, SecretValue
from gpuplan.kubernetes.scene import Scene


def accounts(scene: Scene) -> Iterator[KubernetesObject]:
    body = {"metadata": scene.metadata(), "automountServiceAccountToken": False}
    yield scene.build("v1", "ServiceAccount", body)
    values = {s.key: SecretValue(s.name) for s in scene.workload.secrets if s.store == "config"}
    if values:
        body = {"metadata": scene.metadata(), "type": "Opaque", "stringData": values}
        yield scene.build("v1", "Secret", body)
