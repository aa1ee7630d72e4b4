"""Registered resources without a program, for tests of what comes after one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuplan.preview import urn as urns
from gpuplan.preview.comparing.compare import compare
from gpuplan.preview.registered import Preview, Provider, Registered
from gpuplan.preview.sections import View
from gpuplan.preview.tree import render

STACK_URN = "urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev"


def urn(kind: str, name: str, parent: str = "") -> str:
    return urns.make("dev", "shop", urns.qualified_type(parent) if parent else "", kind, name)


def resource(
    kind: str = "kubernetes:core/v1:ConfigMap",
    name: str = "settings",
    inputs: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Registered:
    parent = changes.pop("parent", STACK_URN)
    values = {"custom": True, "parent": parent, **changes}
    return Registered(
        urn=urn(kind, name, parent), type=kind, name=name, inputs=inputs or {}, **values
    )


def manifest(
    kind: str, name: str, api: str = "v1", namespace: str = "shop", **more: Any
) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **more}


def config_map(name: str = "settings", data: Any = None, **changes: Any) -> Registered:
    inputs = manifest("ConfigMap", name, data={"a": "1"} if data is None else data)
    return resource("kubernetes:core/v1:ConfigMap", name, inputs, **changes)


def deployment(name: str = "web", image: str = "web:1", **changes: Any) -> Registered:
    containers = [{"name": "web", "image": image}]
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": {"app": name}},
        "template": {"spec": {"containers": containers}},
    }
    inputs = manifest("Deployment", name, "apps/v1", spec=spec)
    return resource("kubernetes:apps/v1:Deployment", name, inputs, **changes)


def claim(name: str = "models", storage_class: str = "fast", **changes: Any) -> Registered:
    inputs = manifest("PersistentVolumeClaim", name, spec={"storageClassName": storage_class})
    return resource("kubernetes:core/v1:PersistentVolumeClaim", name, inputs, **changes)


def provider(name: str = "cluster", **inputs: Any) -> Registered:
    return resource("pulumi:providers:kubernetes", name, inputs, version="4.34.2")


def managed_by(found: Registered) -> Provider:
    return Provider(package="kubernetes", version=found.version, name=found.name, urn=found.urn)


def preview(*resources: Registered, **changes: Any) -> Preview:
    stack = Registered(
        urn=STACK_URN,
        type=urns.STACK_TYPE,
        name="shop-dev",
        parent=None,
        custom=False,
        inputs={},
    )
    values = {"project": "shop", "stack": "dev", "outputs": {}, **changes}
    return Preview(resources=(stack, *resources), **values)


def shown(made: Preview, view: View | None = None) -> str:
    """What the terminal shows where nothing exists yet."""
    return render(compare(None, made), view)
