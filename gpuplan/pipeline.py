"""The compiler, from files to files: load → resolve → size → place → emit. Read this first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path

from gpuplan import __version__
from gpuplan.catalog.load import Catalog, load_catalog
from gpuplan.diagnostics import Diagnostic, Severity, error, worst
from gpuplan.emission import Emission
from gpuplan.errors import Rejected
from gpuplan.frozen import frozen
from gpuplan.manifest.load import Loaded, load_manifests
from gpuplan.placement.api import Placement
from gpuplan.placement.ignored import ignored, unneeded, unshared
from gpuplan.placement.place import place
from gpuplan.placement.pools.together import size_all
from gpuplan.plan.model import Evidence, Plan, Provenance
from gpuplan.plan.outside.pins import pinned
from gpuplan.registry import backends, updater
from gpuplan.render.checksums import CHECKSUMS, checksums
from gpuplan.render.tree import File, FileTree
from gpuplan.resolve.clouds.cluster import cloud, cloud_problems
from gpuplan.resolve.messages import assumed_nodes, list_prices, several_places
from gpuplan.resolve.names import name_problems
from gpuplan.resolve.network import network
from gpuplan.resolve.ordering.architecture import arm_notes
from gpuplan.resolve.ordering.elsewhere import with_cheaper
from gpuplan.resolve.ordering.orders import order_notes, orders
from gpuplan.resolve.others import other_sites, places
from gpuplan.resolve.retarget import of_targets, retargeted
from gpuplan.resolve.run import Resolved, resolve
from gpuplan.resolve.used import digest_of, used_entries
from gpuplan.resolve.versions import balancer, components, kubernetes_version, monitors
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.sizing.hardware.sites import joined
from gpuplan.source import Origin, Sources
from gpuplan.stack.lower import stack
from gpuplan.stack.orders.emit import emit as order_list
from gpuplan.targets import TARGETS
from gpuplan.units import format_usd


@frozen
class Compiled:
    """A plan and its stack; `diagnostics` are warnings and notes, never errors."""

    plan: Plan
    files: FileTree
    diagnostics: tuple[Diagnostic, ...]


@frozen
class Result:
    """What became of some manifests: the stacks that compiled and every problem of all of them."""

    stacks: tuple[Compiled, ...]
    problems: tuple[Diagnostic, ...]
    sources: Sources


@frozen
class There:
    """The stack that is there already, which of its unused volumes to let go, and what its lock
    knows of names (`gpuplan.plan.outside.pins`)."""

    plan: Plan | None = None
    forget: tuple[str, ...] = ()
    known: Mapping[tuple[str, str], str] = field(default_factory=dict)


NOTHING = There()


def compile_files(
    paths: Sequence[Path],
    progress: Callable[[str], None] = lambda _: None,
    there: Callable[[str], There] = lambda _: NOTHING,
    *,
    targets: Sequence[str] = (),
    plan_only: bool = False,
) -> Result:
    """Compile every document of every file, for the manifest's own target or for each of `targets`;
    `there` says what of a stack's name exists. With `plan_only` stacks have no files."""
    reading = load_manifests(paths)
    problems, stacks = list(reading.problems), []
    found: list[tuple[str, Diagnostic]] = []
    catalog = load_catalog()
    valid = {loaded.document for loaded in reading.manifests}
    for name, document in list(reading.sources.documents.items()):
        if name not in valid:
            problems += name_problems(document, catalog, emitted=not (targets or plan_only))
    manifests, wrong = retargeted(reading.manifests, targets)
    problems += wrong
    for loaded in manifests:
        name, target = loaded.manifest.name, loaded.manifest.platform.target
        progress(f"sizing {name}")
        try:
            if plan_only:
                compiled = plan_manifest(loaded, reading.sources, catalog)
            else:
                compiled = compile_manifest(loaded, reading.sources, catalog, there(name))
        except Rejected as rejected:
            found += [(target, d) for d in rejected.diagnostics]
            continue
        stacks.append(compiled)
        found += [(target, d) for d in compiled.diagnostics]
    problems += of_targets(found, len(targets))
    return Result(tuple(stacks), tuple(problems), reading.sources)


def compile_manifest(
    loaded: Loaded,
    sources: Sources,
    catalog: Catalog,
    there: There = NOTHING,
) -> Compiled:
    """One stack. Raises `Rejected` with every problem of the first stage that has errors."""
    planned = plan_manifest(loaded, sources, catalog, there, emitted=True)
    plan, carried = update(pinned(planned.plan, there.known), there)
    notes = (*planned.diagnostics, *_checked(carried))
    emission = emit(plan)
    return Compiled(plan, emission.files, (*notes, *_checked(emission.diagnostics)))


def plan_manifest(
    loaded: Loaded,
    sources: Sources,
    catalog: Catalog,
    there: There = NOTHING,
    *,
    emitted: bool = False,
) -> Compiled:
    """A plan without files, for any target; only for one with backends where it is to be
    `emitted`. Raises `Rejected` as `compile_manifest` does."""
    resolved = resolve(loaded, sources, catalog, emitted=emitted)
    resolved = replace(resolved, site=joined(resolved.site))
    try:
        sized, notes, site = sizes(resolved, catalog)
    except Rejected as rejected:  # hosts that others hold may be why
        raise Rejected((*rejected.diagnostics, *resolved.diagnostics)) from None
    resolved = replace(resolved, site=site)
    placement = place_all(resolved, sized, there)
    notes += (
        *resolved.diagnostics,
        *_checked(placement.diagnostics),
        *_checked(machines(resolved, placement) if emitted else ()),
        *at_list_prices(resolved, sized),
    )
    notes += tuple(assumed(resolved, sized))
    notes += tuple(ignored(loaded.manifest, loaded.document))
    listed = resolved.inventory, resolved.inventory_document
    workloads = [s.workload for s in sized]
    notes += tuple(unneeded(loaded.manifest, loaded.document, workloads, *listed))
    notes += tuple(unshared(workloads, resolved.site.gpus))
    plan = assemble(resolved, sized, placement, catalog)
    if emitted:
        at = Origin(loaded.document, ("platform",))
        notes += tuple(order_notes(plan.orders, loaded.document))
        notes += tuple(arm_notes(plan, resolved.inventory, catalog, at))
    return Compiled(plan, FileTree(), notes)


def update(plan: Plan, there: There) -> tuple[Plan, tuple[Diagnostic, ...]]:
    """`plan` as an update of the stack that is there. Raises `Rejected` where none is possible."""
    if there.plan is None:
        return plan, ()
    if there.plan.target != plan.target:
        raise Rejected([other_target(plan, there.plan)])
    carry_over = updater(plan.target)
    return carry_over(there.plan, plan, there.forget) if carry_over else (plan, ())


def other_target(plan: Plan, there: Plan) -> Diagnostic:
    return error(
        "GP020",
        f"stack {plan.name} is there for target {there.target}, and an update to {plan.target}"
        " would remove all of it",
        help="choose another output folder, or remove that stack first and compile with --fresh",
    )


def emit(plan: Plan) -> Emission:
    """The whole stack: what every stack has, what the target's backends add, and the checksums."""
    emissions = [order_list(plan), *(backend(plan) for backend in backends(plan.target))]
    tree = FileTree.merge((stack(plan, emissions), *(e.files for e in emissions)))
    return Emission(
        files=FileTree((*tree.files, File(CHECKSUMS, checksums(tree)))),
        diagnostics=tuple(d for e in emissions for d in e.diagnostics),
    )


def sizes(
    resolved: Resolved, catalog: Catalog
) -> tuple[tuple[Sized, ...], tuple[Diagnostic, ...], Site]:
    """All workloads, so that together they cost least, and the site that they are on. Raises
    `Rejected` with all that fit nowhere."""
    others, alone = partial(other_sites, resolved, catalog), partial(places, resolved, catalog)
    budget = resolved.loaded.manifest.platform.budget
    answers, site = size_all(resolved.demands, resolved.site, others, budget, alone)
    sized = tuple(a for a in answers if isinstance(a, Sized))
    failed = [d for a in answers if not isinstance(a, Sized) for d in a]
    if failed:
        raise Rejected(failed)
    return sized, tuple(d for s in sized for d in s.diagnostics), site


def place_all(resolved: Resolved, sized: Sequence[Sized], there: There = NOTHING) -> Placement:
    """Where everything runs; virtual machines of the stack that is there stay where they are."""
    manifest = resolved.loaded.manifest
    sources, date = prices(resolved, sized)
    fabric = resolved.site.fabric
    return place(
        manifest.name,
        manifest.platform.target,
        [s.workload for s in sized],
        resolved.site.gpus,
        resolved.inventory,
        document=resolved.inventory_document,
        budget=manifest.platform.budget,
        price_source=sources,
        price_date=date,
        former=there.plan.virtual_machines if there.plan else (),
        pools_there=there.plan.node_pools if there.plan else (),
        fabric_bytes_per_s=None if fabric is None else fabric.bytes_per_s_per_gpu,
    )


def machines(resolved: Resolved, placement: Placement) -> Sequence[Diagnostic]:
    """What the cluster of a cloud cannot be made of."""
    return cloud_problems(resolved, placement.node_pools, placement.workloads)


def used_offers(resolved: Resolved, sized: Sequence[Sized]) -> Iterator[GpuOffer]:
    """The machines with a GPU type that is used; of those that are bought, the shapes."""
    gpus = {s.workload.gpu for s in sized}
    pools = {s.workload.node_pool for s in sized}
    for offer in resolved.site.gpus:
        if offer.gpu.identifier in gpus and (offer.shape is None or offer.pool in pools):
            yield offer


def prices(resolved: Resolved, sized: Sequence[Sized]) -> tuple[str, str]:
    """Where the prices of what is used come from, and the date of the oldest listing among them."""
    used = [o for o in used_offers(resolved, sized) if o.usd_per_gpu_hour]
    listed = [o.listed for o in used if o.listed]
    stated = [o.usd_per_gpu_hour.source for o in used if o.usd_per_gpu_hour and not o.listed]
    sources = {*stated, *(price.source for price in listed)}
    dates = [price.date for price in listed if price.dated]
    return "; ".join(sorted(sources)), min(dates, default="")


def at_list_prices(resolved: Resolved, sized: Sequence[Sized]) -> Iterator[Diagnostic]:
    """A note where machines that somebody has are priced as the catalogue lists them."""
    listed = {
        f"{o.gpu.identifier} {format_usd(o.listed.usd_per_hour)}/h"
        for o in used_offers(resolved, sized)
        if o.listed
    }
    if resolved.inventory is not None and listed:
        at = Origin(resolved.loaded.document, ("platform", "inventory"))
        yield list_prices(resolved.inventory_document, sorted(listed), at)


def assumed(resolved: Resolved, sized: Sequence[Sized]) -> Iterator[Diagnostic]:
    """Notes where nobody said what nodes there are, or in which place."""
    platform = resolved.loaded.manifest.platform
    shapes = [o.shape for o in used_offers(resolved, sized) if o.shape]
    names = [f"{s.name} ({s.rented or 'a server'})" for s in shapes]
    at = Origin(resolved.loaded.document, ("platform",))
    chosen = platform.nodes or platform.provider or TARGETS[platform.target].provider
    if shapes and not chosen:
        yield assumed_nodes(names, [s.name for s in shapes if s.assumed_cores], at)
    if len({s.place for s in shapes if s.price}) > 1:
        yield several_places(names, at)


def assemble(
    resolved: Resolved, sized: Sequence[Sized], placement: Placement, catalog: Catalog
) -> Plan:
    manifest = resolved.loaded.manifest
    evidence: tuple[Evidence, ...] = tuple(e for s in sized for e in s.evidence)
    pinned = components(manifest.platform, placement.node_pools, placement.workloads, catalog)
    spread = balancer(manifest.platform.target, placement.workloads, catalog)
    watch = monitors(manifest.platform.target, placement.workloads, catalog)
    images = (spread, *watch) if spread else watch
    ordered = orders(manifest.platform.target, placement.node_pools, placement.workloads, catalog)
    entries = used_entries(resolved, pinned, images, catalog, ordered)
    return Plan(
        name=manifest.name,
        target=manifest.platform.target,
        region=manifest.platform.region,
        kubernetes_version=kubernetes_version(manifest.platform),
        description=manifest.description,
        workloads=placement.workloads,
        tenants=placement.tenants,
        node_pools=with_cheaper(resolved, placement.node_pools, placement.workloads),
        neighbours=resolved.neighbours
        if TARGETS[manifest.platform.target].installs_components
        else (),
        hosts=placement.hosts,
        virtual_machines=placement.virtual_machines,
        fabric=resolved.site.fabric,
        queue=manifest.platform.queue if TARGETS[manifest.platform.target].groups else None,
        network=network(manifest.platform),
        cluster=resolved.cluster,
        cloud=cloud(resolved, placement.node_pools, placement.workloads),
        orders=ordered,
        components=pinned,
        balancer=spread,
        monitors=watch,
        cost=placement.cost,
        provenance=Provenance(
            gpuplan_version=__version__,
            catalog_sha256=digest_of(entries),
            catalog=entries,
            inputs=resolved.inputs,
        ),
        evidence=(*evidence, *placement.evidence),
    )


def _checked(diagnostics: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    if worst(diagnostics) is Severity.ERROR:
        raise Rejected(diagnostics)
    return tuple(diagnostics)
