"""Kubernetes' own schemas of each release, from the package kubernetes-validate, unknown fields
refused. What is no part of Kubernetes itself has none there."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from tests.support.require import require
from tests.tools.kube import Object

NEWEST = "1.36"


def faults(objects: Iterable[Object], release: str) -> list[str]:
    """What release `1.30` says of the objects: one line for each that it does not accept."""
    if find_spec("kubernetes_validate") is None:
        require("schemas", "kubernetes-validate is not installed: pip install --group dev")
    from kubernetes_validate import SchemaNotFoundError, ValidationError, validate

    found = []
    for item in objects:
        try:
            validate(item.tree, release, strict=True)
        except SchemaNotFoundError:
            group = item.tree["apiVersion"].partition("/")[0]
            assert "." in group, item.reference  # Kubernetes' own would have one
            assert not group.endswith(".k8s.io") or group.endswith(".x-k8s.io"), item.reference
        except ValidationError as fault:
            found.append(f"{item.reference}: {fault.message}")
    return found
