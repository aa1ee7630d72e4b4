"""Versions of a manifest against those that the catalogue's sources state together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from gpuplan.catalog.load import Catalog
from gpuplan.catalog.model import ComponentPin
from gpuplan.diagnostics import Diagnostic
from gpuplan.manifest.load import Loaded
from gpuplan.manifest.v1 import Platform, VersionSpec
from gpuplan.plan.model import Component, Engine, NodePool, Operators, Workload
from gpuplan.resolve.clouds.driver import driver_on_nodes
from gpuplan.resolve.messages import unknown_name
from gpuplan.resolve.network import chart_repository
from gpuplan.resolve.untested import (
    no_minor,
    numbers,
    old_driver,
    old_kubernetes,
    other_driver,
    other_kubernetes,
    unstated,
)
from gpuplan.source import Origin
from gpuplan.targets import TARGETS
from gpuplan.vendors import FIRST, VENDORS

DRIVER, KUBERNETES = "driver", "kubernetes"
OTHERS = (DRIVER, KUBERNETES)  # what is no component
CLUSTER = "cluster"  # what the catalogue's component is needed for: nothing of a stack
INFINIBAND = "network-operator"  # of a target whose nodes have no driver for adapters
ROUTER = "vllm-router"  # between replicas of prefill and of decode
GROUPS = "lws"  # what brings the pods of a replica over nodes
RUNS = "jobset"  # what brings those of a run over nodes, where the manifest wants it
DOMAINS = "nvidia-dra-driver-gpu"  # what lets pods reach GPUs of other nodes over NVLink


def balancer(target: str, workloads: Sequence[Workload], catalog: Catalog) -> Engine | None:
    """What spreads requests over replicas, where a service has some and the target has nothing."""
    name = TARGETS[target].balancer
    if name is None or all(w.task != "inference" or w.replicas < 2 for w in workloads):
        return None
    return _image(name, catalog)


def router(workloads: Sequence[Workload], catalog: Catalog) -> Engine | None:
    """What hands prompts to one kind of replicas and answers to the other."""
    return _image(ROUTER, catalog) if any(w.disaggregation for w in workloads) else None


def monitors(target: str, workloads: Sequence[Workload], catalog: Catalog) -> tuple[Engine, ...]:
    """What watches the workloads, where the target starts it itself: what is asked of GPUs is known
    of the first vendor's."""
    if _vendors(workloads, catalog) - {FIRST}:
        return ()
    return tuple(_image(name, catalog) for name in TARGETS[target].monitors)


def _image(name: str, catalog: Catalog) -> Engine:
    pin = catalog.image(name)
    assert pin is not None
    return Engine(**{f: getattr(pin, f) for f in ("name", "version", "image", "digest", "source")})


def components(
    platform: Platform,
    pools: Sequence[NodePool],
    workloads: Sequence[Workload],
    catalog: Catalog,
) -> tuple[Component, ...]:
    """The add-ons of the target that the workloads need, pinned; a version of the manifest replaces
    the catalogue's. What no source states of an untested one is None."""
    if not TARGETS[platform.target].installs_components:
        return ()
    grouped = any(w.task == "inference" and w.nodes_per_replica > 1 for w in workloads)
    needed = _needed(platform, catalog, _vendors(workloads, catalog))
    near = any(w.one_domain for w in workloads)
    gangs = jobs_of(platform, workloads) is not None
    idle = {n for n, used in ((GROUPS, grouped), (DOMAINS, near), (RUNS, gangs)) if not used}
    names = (n for n in needed if n not in idle)
    by_provider = driver_on_nodes(platform, pools)
    return tuple(_component(platform, name, catalog, by_provider=by_provider) for name in names)


def jobs_of(platform: Platform, workloads: Sequence[Workload]) -> Literal["jobset"] | None:
    """What runs over nodes are, where one that starts once is there; None: Jobs."""
    wanted = platform.jobs == "jobset" and any(w.gang for w in workloads)
    return "jobset" if wanted and TARGETS[platform.target].queues_pods else None


def operators(platform: Platform) -> Operators | None:
    """Which other Pulumi stack has them; None where it is the one of the workloads."""
    if platform.operators == "here" or not TARGETS[platform.target].installs_components:
        return None
    return platform.operators


def _vendors(workloads: Sequence[Workload], catalog: Catalog) -> set[str]:
    """Whose GPUs they have."""
    return {gpu.vendor for w in workloads if (gpu := catalog.gpu(w.gpu))}


def _needed(platform: Platform, catalog: Catalog, vendors: Collection[str]) -> tuple[str, ...]:
    """Of all add-ons those that the platform has a use for, with GPUs of these vendors."""
    fabric = platform.fabric.kind if platform.fabric else None
    others = {v.operator for v in VENDORS.values() if v.name not in vendors}
    names = (n for n in catalog.ids("components") if n not in others)
    pins = ((name, catalog.component(name)) for name in names)
    wanted = (name for name, pin in pins if pin and pin.needed_for in (None, fabric))
    target = TARGETS[platform.target]
    absent = target.has_instead if target.infiniband else (*target.has_instead, INFINIBAND)
    return tuple(name for name in wanted if name not in absent)


def _of_the_cluster(platform: Platform, catalog: Catalog) -> Iterator[str]:
    """What the cluster's owner has installed, as the manifest says."""
    for name in platform.versions:
        pin = catalog.component(name)
        if pin is not None and pin.needed_for == CLUSTER:
            yield name


def kubernetes_version(platform: Platform) -> str | None:
    """The minor release that the manifest says the cluster has."""
    stated = platform.versions.get(KUBERNETES)
    installs = TARGETS[platform.target].installs_components
    return stated.version.removeprefix("v") if stated and installs else None


def version_problems(
    loaded: Loaded, engines: Sequence[Engine], vendors: Collection[str], catalog: Catalog
) -> Iterator[Diagnostic]:
    """Every version that no source states with the others, unless the manifest says why. `vendors`
    are those of the GPUs that may be used."""
    platform = loaded.manifest.platform
    at = Origin(loaded.document, ("platform", "versions"))
    known = (*catalog.ids("components"), *OTHERS)
    for name in (n for n in platform.versions if n not in known):
        key = Origin(at.document, (*at.path, name), key=True)
        yield unknown_name("component", name, known, f"use {', '.join(known)}", key)
    if not TARGETS[platform.target].installs_components:
        return
    pinned = _of_the_cluster(platform, catalog)
    for name in (*_needed(platform, catalog, vendors), *pinned):
        asked, pin = platform.versions.get(name), _pin(platform, name, catalog)
        if asked is None or not asked.untested:
            if pin is None:
                assert asked is not None, "the catalogue's own pin is stated"
                yield unstated(name, asked.version, catalog.releases(name), at.child(name))
            else:
                yield from _beside(platform, pin, engines, catalog, at)


def _beside(
    platform: Platform, pin: ComponentPin, engines: Sequence[Engine], catalog: Catalog, at: Origin
) -> Iterator[Diagnostic]:
    """What the release was not tested with."""
    yield from _kubernetes(platform, pin, at)
    driver = platform.versions.get(DRIVER)
    if driver_on_nodes(platform) or not (pin.driver or pin.drivers):
        return  # it installs none
    if driver and not driver.untested and driver.version not in pin.drivers:
        yield other_driver(pin, driver.version, at.child(DRIVER))
    elif not (driver and driver.untested):
        version = driver.version if driver else pin.driver
        origin = at.child(DRIVER if driver else pin.name)
        yield from _engines(pin, version, engines, catalog, origin)


def _kubernetes(platform: Platform, pin: ComponentPin, at: Origin) -> Iterator[Diagnostic]:
    stated = platform.versions.get(KUBERNETES)
    if stated is None:
        return
    minor, tested = stated.version.removeprefix("v"), pin.kubernetes_tested
    if not numbers(stated.version)[1:]:
        yield no_minor(stated.version, at.child(KUBERNETES))
    elif stated.untested:
        return
    elif tested and not numbers(tested[0]) <= numbers(minor)[:2] <= numbers(tested[1]):
        yield other_kubernetes(pin, minor, at.child(KUBERNETES))
    elif pin.needed_for == CLUSTER and _older(minor, pin.kubernetes_minimum):
        yield old_kubernetes(pin, minor, at.child(KUBERNETES))


def _older(minor: str, oldest: str | None) -> bool:
    return oldest is not None and numbers(minor)[:2] < numbers(oldest)


def _engines(
    pin: ComponentPin, driver: str | None, engines: Sequence[Engine], catalog: Catalog, at: Origin
) -> Iterator[Diagnostic]:
    """Engines of the catalogue, each once, that need a newer driver; of other images nothing is
    known."""
    for engine in dict.fromkeys(engines):
        known = catalog.engine(engine.name)
        cuda = known and known.cuda and known.image == engine.image and catalog.cuda(known.cuda)
        if driver and cuda and numbers(driver) < numbers(cuda.driver):
            enough = {
                f"{pin.name} {release.version}": release.driver
                for version in reversed(catalog.releases(pin.name))
                if (release := catalog.component(pin.name, version)) and release.driver
            }
            if at.path[-1] == DRIVER:
                enough = {f"driver {d}": d for d in sorted(pin.drivers, key=numbers)}
            wanted = numbers(cuda.driver)
            near = next((name for name, d in enough.items() if numbers(d) >= wanted), "")
            yield old_driver(engine, cuda, pin, driver, enough=near, at=at)


def _pin(platform: Platform, name: str, catalog: Catalog) -> ComponentPin | None:
    """The release that the manifest asks for, else the catalogue's; None where nobody states it."""
    asked = platform.versions.get(name)
    return catalog.component(name, asked.version if asked else None)


def _component(platform: Platform, name: str, catalog: Catalog, *, by_provider: bool) -> Component:
    asked, usual = platform.versions.get(name), catalog.component(name)
    assert usual is not None
    pin = _pin(platform, name, catalog)
    if pin is None:
        assert asked is not None
        stated = f"manifest: platform.versions.{name}"
        nothing = replace(usual, app_version=None, digest=None, driver=None, kubernetes_tested=())
        pin = replace(nothing, version=asked.version, source=stated)
    pin = replace(pin, repository=chart_repository(platform, pin.repository))
    fields = {f: getattr(pin, f) for f in Component.__dataclass_fields__ if hasattr(pin, f)}
    driver = platform.versions.get(DRIVER)
    if by_provider:
        fields["driver"] = None
    elif driver and usual.driver:
        fields |= {"driver": driver.version, "driver_asked_for": True}
    return Component(**fields, untested=_reason(platform, name))


def _reason(platform: Platform, name: str) -> str | None:
    """Why somebody takes what no source states."""
    asked: list[tuple[str, VersionSpec | None]] = [
        (n, platform.versions.get(n)) for n in (name, *OTHERS)
    ]
    reasons = [
        f"{n} {spec.version}: {spec.untested}" for n, spec in asked if spec and spec.untested
    ]
    return "; ".join(reasons) or None
