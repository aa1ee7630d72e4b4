"""Who a workload's pods are: an account without rights, and the secrets they read."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.kubernetes.objects import KubernetesObject, SecretValue, build
from gpuplan.kubernetes.scene import Scene


def accounts(scene: Scene) -> Iterator[KubernetesObject]:
    needs = (f"Namespace/tenant-{scene.workload.tenant}",)
    yield build(
        scene.key,
        "v1",
        "ServiceAccount",
        "workload",
        {"metadata": scene.metadata(), "automountServiceAccountToken": False},
        depends_on=needs,
        former=scene.former_keys("ServiceAccount"),
    )
    values = {s.key: SecretValue(s.name) for s in scene.workload.secrets if s.store == "config"}
    if values:
        yield build(
            scene.key,
            "v1",
            "Secret",
            "workload",
            {"metadata": scene.metadata(), "type": "Opaque", "stringData": values},
            depends_on=needs,
            former=scene.former_keys("Secret"),
        )
