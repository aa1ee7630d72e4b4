"""Fields of a manifest that its target does nothing with. None is ignored in silence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpuplan.diagnostics import Diagnostic
from gpuplan.manifest.v1 import Manifest
from gpuplan.plan.workload import Workload
from gpuplan.sizing.ask.messages import not_acted_on
from gpuplan.source import Origin
from gpuplan.targets import TARGETS, Ignored

WITHOUT_COMPONENTS = Ignored("versions", "no add-ons are installed")


def ignored(manifest: Manifest, document: str) -> Iterator[Diagnostic]:
    """A note for each field that has no effect with its target or its workloads."""
    platform, root = manifest.platform, Origin(document)
    reading = any(w.task != "notebook" for w in manifest.workloads)
    if platform.storage is not None and platform.storage.bandwidth and not reading:
        at = root.child("platform", "storage", "bandwidth")
        why = "notebooks say nothing of what they read"
        yield not_acted_on(f"platform.storage.bandwidth has no effect: {why}", at, "remove it")
    target = TARGETS[platform.target]
    of_platform = target.ignored_of_platform
    if not target.installs_components:
        of_platform = (WITHOUT_COMPONENTS, *of_platform)
    tree = manifest.model_dump(by_alias=True, include={"platform", "workloads"})
    for field, at in _written(tree["platform"], of_platform, root.child("platform")):
        yield _note(f"platform.{field.field}", target.name, field.reason, at)
    for number, workload in enumerate(tree["workloads"]):
        here = root.child("workloads", number)
        for field, at in _written(workload, target.ignored_of_workloads, here):
            yield _note(f"'{workload['name']}': {field.field}", target.name, field.reason, at)


def unneeded(
    manifest: Manifest, document: str, workloads: Sequence[Workload]
) -> Iterator[Diagnostic]:
    """A note for each field of the platform that this plan has no use for."""
    platform, at = manifest.platform, Origin(document).child("platform")
    spanning = any(w.nodes_per_replica > 1 for w in workloads)
    if platform.fabric is not None and not spanning:
        why = "every replica has its GPUs on one node, and no pod or guest gets a device of it"
        remedy = "keep it for work that needs several nodes, or remove it"
        yield not_acted_on(f"platform.fabric has no effect here: {why}", at.child("fabric"), remedy)
    storage = platform.storage
    several = spanning or any(w.replicas > 1 and w.notebook is None for w in workloads)
    if storage is not None and storage.shared is False and not several:
        why = "no volume is mounted by several pods"
        where = at.child("storage", "shared")
        yield not_acted_on(f"platform.storage.shared has no effect here: {why}", where, "remove it")


def _written(
    tree: Mapping[str, Any], fields: Sequence[Ignored], at: Origin
) -> Iterator[tuple[Ignored, Origin]]:
    """Those of `fields` that stand in `tree` and say something."""
    for field in fields:
        value: Any = tree
        for part in field.field.split("."):
            value = value[part] if value else None
        if value:
            yield field, at.child(*field.field.split("."))


def _note(field: str, target: str, why: str, at: Origin) -> Diagnostic:
    return not_acted_on(f"{field} has no effect on target '{target}': {why}", at, "remove it")
