"""The Kubernetes objects that a program registers, as plain manifests for a real API server."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from gpuplan.frozen import record
from gpuplan.preview import urn as urns
from gpuplan.preview.comparing.replace import is_patch
from gpuplan.preview.registered import Preview, Registered
from gpuplan.preview.values import MASK, Secret, Unknown, has_unknown, transform

UNKNOWN_TEXT = "unknown"


@record
class ManifestObject:
    """A manifest with placeholders for secrets and for what only a provider knows (`has_unknown`).
    A `patch` sets fields of an object that somebody else owns: apply it server-side, last."""

    urn: str
    manifest: Mapping[str, Any]
    patch: bool
    has_unknown: bool

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """API version, kind, namespace (empty for none) and name."""
        metadata = self.manifest["metadata"]
        place = str(metadata.get("namespace", ""))
        return (
            str(self.manifest["apiVersion"]),
            str(self.manifest["kind"]),
            place,
            str(metadata["name"]),
        )


def kubernetes_objects(preview: Preview) -> tuple[ManifestObject, ...]:
    """Every object, after what it depends on. Helm releases are charts, not objects."""
    return tuple(_object(r) for r in preview.resources if _is_object(r))


def _is_object(resource: Registered) -> bool:
    chart = resource.type.startswith("kubernetes:helm.sh/")
    managed = resource.custom and urns.package_of(resource.type) == "kubernetes"
    return managed and not chart and {"apiVersion", "kind"} <= set(resource.inputs)


def _object(resource: Registered) -> ManifestObject:
    manifest = {k: _revealed(k, v, resource) for k, v in resource.inputs.items()}
    metadata = manifest.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    manifest["metadata"] = named if "generateName" in named else {"name": resource.name, **named}
    return ManifestObject(
        urn=resource.urn,
        manifest=manifest,
        patch=is_patch(resource),
        has_unknown=has_unknown(resource.inputs),
    )


def _revealed(key: str, value: Any, resource: Registered) -> Any:
    """`value` with placeholders; in a Secret's `data` they are Base64, as the API wants them."""
    encoded = key == "data" and resource.inputs.get("kind") == "Secret"
    mask = base64.b64encode(MASK.encode()).decode() if encoded else MASK

    def leaf(leaf_value: Any) -> Any:
        if isinstance(leaf_value, Secret):
            return transform(leaf_value.shape, lambda v: mask if v == MASK else leaf(v))
        return UNKNOWN_TEXT if isinstance(leaf_value, Unknown) else leaf_value

    return transform(value, leaf)
