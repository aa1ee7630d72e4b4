"""Fields of a manifest that its target does nothing with. None is ignored in silence."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.diagnostics import Diagnostic
from gpuplan.manifest.v1 import Manifest
from gpuplan.sizing.ask.messages import not_acted_on
from gpuplan.source import Origin

# Of a workload on machines: the plan names them, and nothing that is written from it does them.
ONLY_NAMED = {
    "priority": "the guests of a host are equals",
    "preemptible": "nothing stops a guest for another one",
    "secrets": "nothing puts them into the guests",
}


def ignored(manifest: Manifest, document: str) -> Iterator[Diagnostic]:
    """A note for each field that has no effect with its target or its workloads."""
    platform, root = manifest.platform, Origin(document)
    reading = any(w.task != "notebook" for w in manifest.workloads)
    if platform.storage is not None and platform.storage.bandwidth and not reading:
        at = root.child("platform", "storage", "bandwidth")
        why = "notebooks say nothing of what they read"
        yield not_acted_on(f"platform.storage.bandwidth has no effect: {why}", at, "remove it")
    if platform.target == "kubernetes":
        return
    at = root.child("platform")
    fields = [
        (bool(platform.versions), "versions", "no add-ons are installed"),
        (
            platform.storage is not None and platform.storage.storage_class is not None,
            "storage.class",
            "volumes are disks of the guests",
        ),
        (
            platform.fabric is not None and platform.fabric.resource is not None,
            "fabric.resource",
            "guests get virtual functions of the network cards",
        ),
    ]
    for written, name, why in fields:
        if written:
            yield _note(f"platform.{name}", platform.target, why, at.child(*name.split(".")))
    for number, workload in enumerate(manifest.workloads):
        for name, why in ONLY_NAMED.items():
            if getattr(workload, name):
                at = root.child("workloads", number, name)
                yield _note(f"'{workload.name}': {name}", platform.target, why, at)


def _note(field: str, target: str, why: str, at: Origin) -> Diagnostic:
    return not_acted_on(f"{field} has no effect on target '{target}': {why}", at, "remove it")
