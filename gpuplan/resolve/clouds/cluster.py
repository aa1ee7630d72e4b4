"""The cluster of a cloud's target: which machines in which zones, by which facts."""

from __future__ import annotations

from collections.abc import Sequence

from gpuplan.catalog.clouds import CloudRelease
from gpuplan.diagnostics import Diagnostic
from gpuplan.manifest.cluster import ClusterSpec
from gpuplan.plan.model import NodePool, Workload
from gpuplan.plan.outside.cloud import Addons, Cloud, NodeImage, Release
from gpuplan.resolve.clouds.checks import checks
from gpuplan.resolve.clouds.driver import driver_on_nodes
from gpuplan.resolve.clouds.groups import groups_of, quotas_of
from gpuplan.resolve.clouds.provider import Asked
from gpuplan.resolve.clouds.providers import PROVIDERS
from gpuplan.resolve.clouds.release import facts_of, release_of
from gpuplan.resolve.run import Resolved
from gpuplan.source import Origin
from gpuplan.targets import TARGETS


def cloud(
    resolved: Resolved, pools: Sequence[NodePool], workloads: Sequence[Workload]
) -> Cloud | None:
    """None of a target whose cluster nobody manages, or where `cloud_problems` are errors."""
    asked = _asked(resolved, pools, workloads)
    platform = resolved.loaded.manifest.platform
    release = release_of(platform, asked.facts) if asked else None
    target = TARGETS[platform.target]
    if asked is None or release is None:
        return None
    provider = PROVIDERS[target.provider or ""]
    if provider.least_zones and not asked.spec.zones:
        return None
    own_driver = driver_on_nodes(platform, pools)
    groups = groups_of(asked, provider)
    return Cloud(
        provider=provider.name,
        existing=asked.spec.existing,
        zones=tuple(asked.spec.zones or ()),
        scaling=asked.spec.scaling or "fixed",
        release=_release(release),
        driver_on_nodes=own_driver,
        runtime_class=provider.runtime_class if own_driver else None,
        plugin_on_nodes=target.plugin_on_nodes,
        network_class=provider.network_class if any(g.network_cards for g in groups) else None,
        groups=groups,
        quotas=tuple(quotas_of(asked, provider, groups)),
    )


def _release(known: CloudRelease) -> Release:
    image, addons = known.image, known.addons
    return Release(
        version=known.version,
        standard_until=known.standard_until,
        extended_until=known.extended_until,
        source=known.source,
        image=NodeImage(release=image.release, driver=image.driver, source=image.source)
        if image
        else None,
        addons=Addons(versions=addons.versions, source=addons.source) if addons else None,
    )


def cloud_problems(
    resolved: Resolved, pools: Sequence[NodePool], workloads: Sequence[Workload]
) -> list[Diagnostic]:
    """What the cluster cannot be made of, and what a person should know of it."""
    asked = _asked(resolved, pools, workloads)
    if asked is None:
        return []
    target = TARGETS[resolved.loaded.manifest.platform.target]
    return list(checks(asked, PROVIDERS[target.provider or ""]))


def _asked(
    resolved: Resolved, pools: Sequence[NodePool], workloads: Sequence[Workload]
) -> Asked | None:
    facts, loaded = facts_of(resolved), resolved.loaded
    return (
        None
        if facts is None
        else Asked(
            resolved=resolved,
            facts=facts,
            spec=loaded.manifest.platform.cluster or ClusterSpec(),
            pools=tuple(pools),
            workloads=tuple(workloads),
            at=Origin(loaded.document, ("platform",)),
        )
    )
