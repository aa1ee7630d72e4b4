"""A preview as JSON data: stable keys, secrets masked, empty fields left out."""

from __future__ import annotations

from typing import Any

from gpuplan.preview.comparing.compare import Comparison, Step
from gpuplan.preview.comparing.diff import Change
from gpuplan.preview.registered import LogMessage, Preview, Registered
from gpuplan.preview.values import displayed, route_text

FORMAT = "gpuplan.dev/preview/v1"


def to_json(preview: Preview) -> dict[str, Any]:
    """Every resource that the program registers, in its order."""
    return {
        "format": FORMAT,
        "project": preview.project,
        "stack": preview.stack,
        "resources": [resource_json(r) for r in preview.resources],
        "outputs": displayed(preview.outputs),
        "placeholders": list(preview.placeholders),
        "messages": [_message(m) for m in preview.messages],
    }


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Every step, with its property changes, and the counts by operation."""
    operations = sorted({s.operation for s in comparison.steps})
    return {
        "format": FORMAT,
        "project": comparison.project,
        "stack": comparison.stack,
        "steps": [_step(s) for s in comparison.steps],
        "outputs": [_change(c) for c in comparison.outputs],
        "counts": {o: comparison.count(o) for o in operations},
        "unjudged": list(comparison.unjudged),
        "placeholders": list(comparison.placeholders),
        "messages": [_message(m) for m in comparison.messages],
    }


def resource_json(resource: Registered) -> dict[str, Any]:
    provider = resource.provider
    entry: dict[str, Any] = {
        "urn": resource.urn,
        "type": resource.type,
        "name": resource.name,
        "parent": resource.parent,
        "custom": resource.custom,
        "remote": resource.remote,
        "protect": resource.protect,
        "position": resource.position,
        "provider": None
        if provider is None
        else _present(
            package=provider.package, version=provider.version, name=provider.name, urn=provider.urn
        ),
        "version": resource.version,
        "dependencies": list(resource.dependencies),
        "property_dependencies": {k: list(v) for k, v in resource.property_dependencies},
        "aliases": list(resource.aliases),
        "ignore_changes": list(resource.ignore_changes),
        "replace_on_changes": list(resource.replace_on_changes),
        "replace_with": list(resource.replace_with),
        "retain_on_delete": resource.retain_on_delete,
        "import_id": resource.import_id,
        "inputs": displayed(resource.inputs),
    }
    kept = _present(**entry)
    if resource.delete_before_replace is not None:
        kept["delete_before_replace"] = resource.delete_before_replace
    return kept


def _step(step: Step) -> dict[str, Any]:
    return _present(
        operation=step.operation,
        urn=step.urn,
        type=step.resource.type,
        name=step.resource.name,
        renamed_from=step.renamed_from,
        changes=[_change(c) for c in step.changes],
        reasons=list(step.reasons),
        delete_before_replace=step.delete_before_replace,
        blocked=step.blocked,
        stateful=step.stateful,
        retained=step.retained,
        notes=list(step.notes),
    )


def _change(change: Change) -> dict[str, Any]:
    sides = {
        side: displayed(getattr(change, side))
        for side, absent in (("old", "add"), ("new", "delete"))
        if change.kind != absent
    }
    entry = {"path": route_text(change.route), "kind": change.kind, **sides}
    return {**entry, "replaces": True} if change.replaces else entry


def _message(message: LogMessage) -> dict[str, Any]:
    return _present(severity=message.severity, text=message.text, urn=message.urn)


def _present(**fields: Any) -> dict[str, Any]:
    return {k: v for k, v in fields.items() if v not in (None, "", False, [], {})}
