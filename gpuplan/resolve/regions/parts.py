"""A manifest of several regions → that of one of them, and what contradicts itself before."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from gpuplan.catalog.market import load_market
from gpuplan.diagnostics import Diagnostic
from gpuplan.manifest.base import NAME_LENGTH
from gpuplan.manifest.cluster import ClusterSpec
from gpuplan.manifest.load import Loaded
from gpuplan.manifest.regions import RegionSpec, RegionsSpec
from gpuplan.manifest.v1 import Platform
from gpuplan.plan.outside.regions import Limits, Region
from gpuplan.resolve.messages import long_stack_name, unknown_region
from gpuplan.resolve.regions import messages
from gpuplan.resolve.regions.load import divisible, part_of
from gpuplan.source import Origin
from gpuplan.targets import TARGETS

OF_ONE = ("zones", "existing", "reservations")  # fields of the cluster that a region has by itself


def stack_name(loaded: Loaded, region: str) -> str:
    return f"{loaded.manifest.name}-{region}"


def in_region(loaded: Loaded, spec: RegionsSpec, index: int, count: int, *, home: bool) -> Loaded:
    """The manifest of one of `count` regions: its part of the services, and what is not divided
    where it is `home`. The budget is of all regions, so that it is none of this one."""
    manifest, place = loaded.manifest, spec.places[index]
    kept = [i for i, w in enumerate(manifest.workloads) if home or divisible(w)]
    works = [part_of(manifest.workloads[i], 1 / count, 1 / (count - 1)) for i in kept]
    platform = _platform(manifest.platform, place).model_copy(update={"budget": None})
    changed = {
        "name": stack_name(loaded, place.region),
        "platform": platform,
        "workloads": works,
    }
    return replace(loaded, manifest=manifest.model_copy(update=changed), kept=tuple(kept))


def in_first(loaded: Loaded, spec: RegionsSpec) -> Loaded:
    """The manifest with all of its load in the first region."""
    platform = _platform(loaded.manifest.platform, spec.places[0])
    return replace(loaded, manifest=loaded.manifest.model_copy(update={"platform": platform}))


def _platform(platform: Platform, place: RegionSpec) -> Platform:
    own = {name: getattr(place, name) for name in OF_ONE}
    changed: dict[str, object] = {"region": place.region, "regions": None}
    if platform.cluster is not None or any(own.values()):
        cluster = platform.cluster or ClusterSpec()
        changed["cluster"] = cluster.model_copy(update=own)
    return platform.model_copy(update=changed)


def regions_said(spec: RegionsSpec) -> tuple[Region, ...]:
    return tuple(
        Region(target=p.region, latency_seconds=p.latency, residency=p.residency)
        for p in spec.places
    )


def limits_said(spec: RegionsSpec) -> Limits:
    return Limits(latency_seconds=spec.latency, residency=tuple(spec.residency or ()))


def contradictions(loaded: Loaded, spec: RegionsSpec) -> Iterator[Diagnostic]:
    """What no choice of regions mends."""
    platform = loaded.manifest.platform
    at = Origin(loaded.document, ("platform",))
    provider = TARGETS[platform.target].provider or platform.provider
    if provider is None:
        yield messages.no_provider(platform.target, at.child("regions"))
        return
    if platform.region is not None:
        yield messages.said_twice("region", at.child("region"))
    for field in OF_ONE:
        if platform.cluster is not None and getattr(platform.cluster, field):
            yield messages.said_twice(field, at.child("cluster", field))
    if spec.count is not None and spec.count > len(spec.places):
        where = at.child("regions", "count")
        yield messages.no_room_for_count(spec.count, len(spec.places), where)
    yield from _places(loaded, spec, provider)
    yield from _undivided(loaded, at.child("regions"))


def _places(loaded: Loaded, spec: RegionsSpec, provider: str) -> Iterator[Diagnostic]:
    """Names of regions that nobody knows, that are there twice, or too long for a stack's."""
    platform, at = loaded.manifest.platform, Origin(loaded.document, ("platform",))
    known, names = load_market().regions(provider), [p.region for p in spec.places]
    for index, name in enumerate(names):
        where = at.child("regions", "places", index, "region")
        if known and name not in known:
            own = bool(platform.prices)
            yield unknown_region(provider, name, known, where, own=own)
        if name in names[:index]:
            yield messages.same_region(name, where)
        if len(stack := stack_name(loaded, name)) > NAME_LENGTH:
            yield long_stack_name(stack, NAME_LENGTH, Origin(loaded.document, ("name",)))


def _undivided(loaded: Loaded, at: Origin) -> Iterator[Diagnostic]:
    works = loaded.manifest.workloads
    home = {w.name for w in works if not divisible(w)}
    if len(home) == len(works):
        yield messages.nothing_divided(at)
    for index, work in enumerate(works):
        for place, name in enumerate(work.after if divisible(work) else ()):
            if name in home:
                where = Origin(loaded.document, ("workloads", index, "after", place))
                yield messages.waits_for_home(work.name, name, where)


def stacks_left(
    loaded: Loaded, spec: RegionsSpec, taken: Collection[str], exists: Callable[[str], bool]
) -> Iterator[Diagnostic]:
    """Stacks that are there of regions that are not taken any more."""
    for index, place in enumerate(spec.places):
        name = stack_name(loaded, place.region)
        if name not in taken and exists(name):
            at = Origin(loaded.document, ("platform", "regions", "places", index, "region"))
            yield messages.stack_left(name, loaded.manifest.name, at)
