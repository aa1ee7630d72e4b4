"""A manifest and a costs file → what is compared, and plans of the manifest for other targets and
later loads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from math import ceil
from pathlib import Path

from gpuplan.catalog.load import Catalog, load_catalog
from gpuplan.catalog.market import load_market
from gpuplan.diagnostics import Diagnostic, Severity, did_you_mean, error
from gpuplan.errors import Rejected
from gpuplan.frozen import frozen
from gpuplan.manifest.load import Loaded, load_manifests
from gpuplan.manifest.parts import Growth
from gpuplan.manifest.regions import RegionsSpec
from gpuplan.manifest.v1 import Manifest, Platform
from gpuplan.money.compare import OWN, Asked, Planner
from gpuplan.money.document import extras, limits_of, read_costs, regions_of, values
from gpuplan.money.extras import NOTHING
from gpuplan.pipeline import plan_manifest
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.regions import Limits, Region
from gpuplan.resolve.regions.load import part_of
from gpuplan.resolve.regions.parts import contradictions, in_first, limits_said, regions_said
from gpuplan.source import Sources
from gpuplan.targets import OTHER_NAMES, TARGETS
from gpuplan.units import HOURS_PER_MONTH

SECONDS_PER_MONTH = HOURS_PER_MONTH * 3600
# Where nodes come from, which another provider's target does not take over; prices are of the
# machines that the manifest means.
PLACE: dict[str, object] = dict.fromkeys(("inventory", "node", "nodes", "provider", "region"))


def unknown_target(name: str) -> Diagnostic:
    known = (*TARGETS, *OWN)
    near = did_you_mean(name, known) or f"targets are {', '.join(known)}"
    return error("GP006", f"unknown target '{name}'", help=near)


def unknown_region(target: str, region: str, known: Sequence[str]) -> Diagnostic:
    near = did_you_mean(region, known) or f"{target} has {', '.join(known[:8])} …"
    return error("GP006", f"no price list of {target} has a region '{region}'", help=near)


def one_manifest(path: Path, count: int) -> Diagnostic:
    return error(
        "GP006", f"{path} holds {count} manifests", help="compare one: `---` divides a file"
    )


@frozen
class Comparing:
    """A manifest and the targets it is compared on. Of one in several regions it is that of the
    first of them, with all of its load, and `regions` are what it says of all."""

    loaded: Loaded
    targets: tuple[str, ...]
    regions: RegionsSpec | None = None

    def asked(self, months: int, costs_file: Path | None, sources: Sources) -> Asked:
        """With what a costs file says. Raises `Rejected`."""
        manifest = self.loaded.manifest
        asked = Asked(
            name=manifest.name,
            targets=self.targets,
            own_target=manifest.platform.target,
            months=months,
            growth_months=growth_months(manifest),
            given=lambda _: (),
            said=NOTHING,
            regions=self._regions(),
            limits=limits_said(self.regions) if self.regions else Limits(),
        )
        if costs_file is None:
            return asked
        costs = read_costs(costs_file, sources, load_catalog().gpu_ids)
        wrong = tuple(_unknown([r.target for r in costs.regions]))
        if wrong:
            raise Rejected(wrong)
        levels = costs.load_duration
        return replace(
            asked,
            given=lambda gpu: values(costs, costs_file.name, gpu),
            said=extras(costs),
            curve=None if levels is None else tuple((x.hours, x.load) for x in levels),
            carbon=costs.carbon_grams_per_kwh,
            regions=regions_of(costs) or asked.regions,
            limits=limits_of(costs) if costs.regions else asked.limits,
        )

    def _regions(self) -> tuple[Region, ...]:
        target = self.loaded.manifest.platform.target
        said = regions_said(self.regions) if self.regions else ()
        return tuple(replace(r, target=f"{target}:{r.target}") for r in said)


def asked_of(path: Path, targets: str, sources: Sources) -> Comparing:
    """Raises `Rejected` with all that is wrong with the manifest and the names of targets."""
    reading = load_manifests([path])
    for document in reading.sources.documents.values():
        sources.add(document)
    names = [OTHER_NAMES.get(n, n) for n in (t.strip() for t in targets.split(",")) if n]
    problems = [*reading.problems, *_unknown(names)]
    if not problems and len(reading.manifests) != 1:
        problems.append(one_manifest(path, len(reading.manifests)))
    if problems:
        raise Rejected(problems)
    loaded, spec = reading.manifests[0], reading.manifests[0].manifest.platform.regions
    if spec is not None:
        if wrong := [d for d in contradictions(loaded, spec) if d.severity is Severity.ERROR]:
            raise Rejected(wrong)
        loaded = in_first(loaded, spec)
    return Comparing(loaded, tuple(dict.fromkeys(names)), spec)


def _unknown(names: Iterable[str]) -> Iterable[Diagnostic]:
    for name in names:
        target, _, region = name.partition(":")
        if name in OWN:
            continue
        if target not in TARGETS:
            yield unknown_target(target)
        elif region:
            provider = TARGETS[target].provider
            known = load_market().regions(provider) if provider else ()
            if region not in known:
                yield unknown_region(target, region, known)


def growth_months(manifest: Manifest) -> int:
    """When the last of the loads has grown as far as it is said to; 0 where none does."""
    ends = [
        ceil(w.growth.horizon / SECONDS_PER_MONTH)
        for w in manifest.workloads
        if w.growth and w.growth.horizon and w.growth.factor > 1
    ]
    return max(ends, default=0)


def planner_of(
    loaded: Loaded, sources: Sources, catalog: Catalog, progress: Callable[[str], None]
) -> Planner:
    """Plans of the manifest for a target (`gke:europe-west4` in a region) and a month."""

    def planned(target: str, month: int, share: Decimal) -> Plan | str:
        when = f" at the end of month {month}" if month else ""
        progress(f"sizing for {target}{when}")
        try:
            return plan_manifest(
                _grown(_moved(loaded, target), month, share), sources, catalog
            ).plan
        except Rejected as rejected:
            wrong = [d for d in rejected.diagnostics if d.severity is Severity.ERROR]
            return f"no plan{when}: {wrong[0].message}"

    return planned


def _moved(loaded: Loaded, name: str) -> Loaded:
    """The manifest for another target; for its own as it is."""
    target, _, region = name.partition(":")
    platform = loaded.manifest.platform
    if target == platform.target and not region:
        return loaded
    changed: dict[str, object] = {"target": target}
    provider = TARGETS[target].provider
    if provider is not None:
        changed |= PLACE | {"prices": {}, "region": region or _kept(platform, provider)}
    manifest = loaded.manifest.model_copy(update={"platform": platform.model_copy(update=changed)})
    return replace(loaded, manifest=manifest)


def _kept(platform: Platform, provider: str) -> str | None:
    """The manifest's region where the provider has it too; else its cheapest one is taken."""
    return platform.region if platform.region in load_market().regions(provider) else None


def _grown(loaded: Loaded, month: int, share: Decimal) -> Loaded:
    """With the loads at the end of a month: the same growth in each, until it is as far as it is
    said to. A growth without a horizon is there from the first day. `share` is the part of the load
    of services that comes here."""

    def factor(growth: Growth) -> Growth:
        if not growth.horizon:
            return growth
        part = min(1.0, month * SECONDS_PER_MONTH / growth.horizon)
        return growth.model_copy(update={"factor": growth.factor**part})

    workloads = [
        part_of(
            w.model_copy(update={"growth": factor(w.growth)}) if w.growth else w,
            float(share),
            float(share),
        )
        for w in loaded.manifest.workloads
    ]
    manifest = loaded.manifest.model_copy(update={"workloads": workloads})
    return replace(loaded, manifest=manifest)
