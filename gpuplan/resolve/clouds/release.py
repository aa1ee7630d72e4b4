"""What is known of a cloud, and the release of Kubernetes that a manifest takes of it."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.catalog.clouds import CloudFacts, CloudRelease, load_cloud
from gpuplan.manifest.v1 import Platform
from gpuplan.plan.serialize import to_json
from gpuplan.resolve.run import Resolved
from gpuplan.targets import TARGETS


def facts_of(resolved: Resolved) -> CloudFacts | None:
    """None for a target whose cluster no cloud manages, or that nothing is emitted for."""
    target = TARGETS[resolved.loaded.manifest.platform.target]
    return load_cloud(target.provider) if target.provider and target.backends else None


def release_of(platform: Platform, facts: CloudFacts) -> CloudRelease | None:
    """The one that the manifest names, else the newest whose days are known."""
    stated = platform.versions.get("kubernetes")
    if stated is None:
        return facts.newest
    minor = ".".join(stated.version.removeprefix("v").split(".")[:2])
    return next((r for r in facts.releases if r.version == minor), None)


def used_facts(resolved: Resolved) -> Iterator[tuple[str, object]]:
    """What a plan for the cloud rests on, by name: the release, and what is known of the machines
    that it may rent beside the catalogue's list of them."""
    facts = facts_of(resolved)
    release = release_of(resolved.loaded.manifest.platform, facts) if facts else None
    if facts is None or release is None:
        return
    file = release.source.file
    known: tuple[object, ...] = release.standard_until, release.extended_until
    if release.image or release.addons:
        known += to_json(release.image), to_json(release.addons)
    yield f"{file} {release.version}", known
    for name in sorted({o.shape.name for o in resolved.site.gpus if o.shape}):
        cards, numa = facts.interfaces.get(name), facts.numa_nodes.get(name)
        known = facts.accelerator(name), facts.capacities.get(name), facts.drives.get(name)
        disk = facts.temporary_bytes.get(name)
        if cards or numa or disk or any(known):
            entry: tuple[object, ...] = cards and (cards.cards, cards.first), numa
            entry += known if any(known) else ()
            yield f"{file} {name}", (*entry, disk) if disk else entry
