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


# Fields as they are, before and after those that are written differently.
_HEAD = ("urn", "type", "name", "parent", "custom", "remote", "protect", "position")
_LISTS = ("aliases", "ignore_changes", "replace_on_changes", "replace_with")


def resource_json(resource: Registered) -> dict[str, Any]:
    provider = resource.provider
    names = ("package", "version", "name", "urn")
    kept = _present(
        **{name: getattr(resource, name) for name in _HEAD},
        provider=provider and _present(**{name: getattr(provider, name) for name in names}),
        version=resource.version,
        dependencies=list(resource.dependencies),
        property_dependencies={k: list(v) for k, v in resource.property_dependencies},
        **{name: list(getattr(resource, name)) for name in _LISTS},
        retain_on_delete=resource.retain_on_delete,
        import_id=resource.import_id,
        inputs=displayed(resource.inputs),
    )
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
        refused=list(step.refused),
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
