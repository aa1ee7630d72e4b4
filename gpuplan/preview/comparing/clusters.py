"""Whether a Kubernetes provider's new settings mean another cluster, so that all in it is replaced.

Source: pulumi-kubernetes provider/pkg/provider/provider.go DiffConfig and util.go (v4.32.0).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gpuplan.preview.comparing.diff import changes
from gpuplan.preview.values import Secret, has_unknown

IDENTIFIER = "clusterIdentifier"
CONNECTION = ("kubeconfig", "context", "cluster")


def provider_replacement(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[str, ...]:
    """The settings that force a replacement of the provider; an unchanged `clusterIdentifier` rules
    it out."""
    changed = {str(c.route[0]) for c in changes(old, new)}
    if IDENTIFIER in changed and old.get(IDENTIFIER) and new.get(IDENTIFIER):
        return (IDENTIFIER,)
    if not changed or (new.get(IDENTIFIER) and IDENTIFIER not in changed):
        return ()
    unknown = tuple(k for k in CONNECTION if has_unknown(new.get(k)))
    if unknown:
        return unknown
    forcing = [k for k in ("renderYamlToDirectory",) if k in changed]
    before, after = _active_cluster(old), _active_cluster(new)
    if before is not None and after is not None and before != after:
        forcing += [k for k in CONNECTION if k in changed]
    return tuple(forcing)


def _active_cluster(inputs: Mapping[str, Any]) -> str | None:
    """What the kubeconfig says of the cluster in use; a hidden kubeconfig stands for itself, so
    another one counts as another cluster."""
    config = inputs.get("kubeconfig")
    if isinstance(config, Secret):
        return config.digest
    config = _parsed(config) if isinstance(config, str) else config
    if not isinstance(config, Mapping):
        return None
    context = _named(config, "contexts", inputs.get("context") or config.get("current-context"))
    name = inputs.get("cluster") or _part(context, "context").get("cluster")
    cluster = _named(config, "clusters", name)
    return json.dumps(_part(cluster, "cluster"), sort_keys=True, default=str) if cluster else None


def _parsed(text: str) -> object:
    from gpuplan.manifest.text import read_yaml

    for document, problems in read_yaml("kubeconfig", text):
        return None if problems else document.data
    return None


def _named(config: Mapping[str, Any], section: str, name: object) -> Mapping[str, Any]:
    entries = config.get(section)
    mappings = [e for e in entries if isinstance(e, Mapping)] if isinstance(entries, list) else []
    return next((e for e in mappings if e.get("name") == name), {})


def _part(entry: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = entry.get(name)
    return part if isinstance(part, Mapping) else {}
