"""The compiler, from files to files: load → resolve → size → place → emit. Read this first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from pathlib import Path

from gpuplan import __version__
from gpuplan.catalog.load import Catalog, load_catalog
from gpuplan.diagnostics import Diagnostic, Severity, error, worst
from gpuplan.emission import Emission
from gpuplan.errors import Rejected
from gpuplan.frozen import frozen
from gpuplan.manifest.load import Loaded, load_manifests
from gpuplan.manifest.regions import RegionsSpec
from gpuplan.placement.api import Placement
from gpuplan.placement.ignored import ignored, unneeded, unshared
from gpuplan.plan.model import Evidence, Plan, Provenance
from gpuplan.plan.outside.cloud import Cloud
from gpuplan.plan.outside.pins import pinned
from gpuplan.registry import backends, updater
from gpuplan.render.checksums import CHECKSUMS, checksums
from gpuplan.render.tree import File, FileTree
from gpuplan.resolve.licences import licences
from gpuplan.resolve.names import name_problems
from gpuplan.resolve.network import network
from gpuplan.resolve.ordering.architecture import arm_notes
from gpuplan.resolve.ordering.elsewhere import with_cheaper
from gpuplan.resolve.ordering.lists import assumed, at_list_prices
from gpuplan.resolve.ordering.notes import order_notes
from gpuplan.resolve.ordering.orders import orders
from gpuplan.resolve.retarget import of_targets, retargeted
from gpuplan.resolve.run import Resolved, resolve
from gpuplan.resolve.used import digest_of, used_entries
from gpuplan.resolve.versions import (
    balancer,
    components,
    jobs_of,
    kubernetes_version,
    monitors,
    operators,
    router,
)
from gpuplan.seating import seated
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.hardware.sites import joined
from gpuplan.source import Origin, Sources
from gpuplan.stack.lower import stack
from gpuplan.stack.regions import emit as regions_section
from gpuplan.targets import TARGETS


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
class Standing:
    """The stack that is there already, which of its unused volumes to let go, and what its lock
    knows of names (`gpuplan.plan.outside.pins`)."""

    plan: Plan | None = None
    forget: tuple[str, ...] = ()
    known: Mapping[tuple[str, str], str] = field(default_factory=dict)


NOTHING = Standing()


def compile_files(
    paths: Sequence[Path],
    progress: Callable[[str], None] = lambda _: None,
    standing: Callable[[str], Standing] = lambda _: NOTHING,
    *,
    targets: Sequence[str] = (),
    plan_only: bool = False,
) -> Result:
    """Compile every document of every file, for the manifest's own target or for each of `targets`;
    `standing` says what of a stack's name exists. With `plan_only` stacks have no files."""
    reading = load_manifests(paths)
    problems = list(reading.problems)
    stacks: list[Compiled] = []
    diagnostics: list[tuple[str, Diagnostic]] = []
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
        regions = loaded.manifest.platform.regions
        try:
            made: tuple[Compiled, ...]
            if regions is not None:
                made, notes = compile_regions(
                    loaded, regions, reading.sources, catalog, standing, plan_only=plan_only
                )
            else:
                one = (
                    plan_manifest(loaded, reading.sources, catalog)
                    if plan_only
                    else compile_manifest(loaded, reading.sources, catalog, standing(name))
                )
                made, notes = (one,), one.diagnostics
        except Rejected as rejected:
            diagnostics += [(target, d) for d in rejected.diagnostics]
            continue
        stacks += made
        diagnostics += [(target, d) for d in notes]
    problems += of_targets(diagnostics, len(targets))
    return Result(tuple(stacks), tuple(problems), reading.sources)


def compile_regions(
    loaded: Loaded,
    spec: RegionsSpec,
    sources: Sources,
    catalog: Catalog,
    standing: Callable[[str], Standing],
    *,
    plan_only: bool,
) -> tuple[tuple[Compiled, ...], tuple[Diagnostic, ...]]:
    """A stack for each region that is taken, and what is to be said of all. Raises `Rejected`."""
    from gpuplan.resolve.regions.choose import take
    from gpuplan.resolve.regions.origins import all_written
    from gpuplan.resolve.regions.parts import stacks_left

    standing = cache(standing)

    def compiled(one: Loaded) -> Compiled:
        if plan_only:
            return plan_manifest(one, sources, catalog)
        return compile_manifest(one, sources, catalog, standing(one.manifest.name))

    def planned(one: Loaded) -> Plan:
        known = NOTHING if plan_only else standing(one.manifest.name)
        return plan_manifest(one, sources, catalog, known, emitted=not plan_only).plan

    taken = take(loaded, spec, planned)
    made: list[Compiled] = []
    diagnostics: list[tuple[str, Diagnostic]] = []
    for one, index in taken.manifests:
        region = spec.places[index].region
        try:
            made.append(compiled(one))
        except Rejected as rejected:
            raise Rejected(all_written(rejected.diagnostics, (), index)) from None
        diagnostics += [(region, d) for d in all_written(made[-1].diagnostics, (), index)]
    notes = (*taken.diagnostics, *of_targets(diagnostics, len(made), "region"))
    if not plan_only:
        names = {stack.plan.name for stack in made}
        notes += tuple(
            stacks_left(loaded, spec, names, lambda name: standing(name).plan is not None)
        )
    return tuple(made), notes


def compile_manifest(
    loaded: Loaded,
    sources: Sources,
    catalog: Catalog,
    standing: Standing = NOTHING,
) -> Compiled:
    """One stack. Raises `Rejected` with every problem of the first stage that has errors."""
    planned = plan_manifest(loaded, sources, catalog, standing, emitted=True)
    plan, carried = update(pinned(planned.plan, standing.known), standing)
    notes = (*planned.diagnostics, *_checked(carried))
    emission = emit(plan)
    return Compiled(plan, emission.files, (*notes, *_checked(emission.diagnostics)))


def plan_manifest(
    loaded: Loaded,
    sources: Sources,
    catalog: Catalog,
    standing: Standing = NOTHING,
    *,
    emitted: bool = False,
) -> Compiled:
    """A plan without files, for any target; only for one with backends where it is to be
    `emitted`. Raises `Rejected` as `compile_manifest` does."""
    if not loaded.kept:
        return _plan(loaded, sources, catalog, standing, emitted=emitted)
    from gpuplan.resolve.regions.origins import all_written, written

    try:
        made = _plan(loaded, sources, catalog, standing, emitted=emitted)
    except Rejected as rejected:
        raise Rejected(all_written(rejected.diagnostics, loaded.kept)) from None
    plan = replace(written(made.plan, loaded.kept), regions=loaded.regions)
    return replace(made, plan=plan, diagnostics=all_written(made.diagnostics, loaded.kept))


def _plan(
    loaded: Loaded, sources: Sources, catalog: Catalog, standing: Standing, *, emitted: bool
) -> Compiled:
    resolved = resolve(loaded, sources, catalog, emitted=emitted)
    resolved = replace(resolved, site=joined(resolved.site))
    try:
        resolved, sized, notes, placement = seated(resolved, catalog, standing.plan)
    except Rejected as rejected:  # hosts that others hold may be why
        raise Rejected((*rejected.diagnostics, *resolved.diagnostics)) from None
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


def update(plan: Plan, standing: Standing) -> tuple[Plan, tuple[Diagnostic, ...]]:
    """`plan` as an update of the stack that is there. Raises `Rejected` where none is possible."""
    if standing.plan is None:
        return plan, ()
    if standing.plan.target != plan.target:
        raise Rejected([other_target(plan, standing.plan)])
    carry_over = updater(plan.target)
    return carry_over(standing.plan, plan, standing.forget) if carry_over else (plan, ())


def other_target(plan: Plan, standing: Plan) -> Diagnostic:
    return error(
        "GP020",
        f"stack {plan.name} is there for target {standing.target}, and an update to {plan.target}"
        " would remove all of it",
        help="choose another output folder, or remove that stack first and compile with --fresh",
    )


def emit(plan: Plan) -> Emission:
    """The whole stack: what every stack has, what the target's backends add, and the checksums."""
    emissions = [
        regions_section(plan),
        *_order_lists(plan),
        *(backend(plan) for backend in backends(plan.target)),
    ]
    tree = FileTree.merge((stack(plan, emissions), *(e.files for e in emissions)))
    return Emission(
        files=FileTree((*tree.files, File(CHECKSUMS, checksums(tree)))),
        diagnostics=tuple(d for e in emissions for d in e.diagnostics),
    )


def _order_lists(plan: Plan) -> Iterator[Emission]:
    if plan.orders:
        from gpuplan.stack.orders.emit import emit as order_list

        yield order_list(plan)


def machines(resolved: Resolved, placement: Placement) -> Sequence[Diagnostic]:
    """What the cluster of a cloud cannot be made of."""
    if not _rented(resolved):
        return ()
    from gpuplan.resolve.clouds.cluster import cloud_problems

    return cloud_problems(resolved, placement.node_pools, placement.workloads)


def assemble(
    resolved: Resolved, sized: Sequence[Sized], placement: Placement, catalog: Catalog
) -> Plan:
    manifest = resolved.loaded.manifest
    evidence: tuple[Evidence, ...] = tuple(e for s in sized for e in s.evidence)
    pinned = components(manifest.platform, placement.node_pools, placement.workloads, catalog)
    spread = balancer(manifest.platform.target, placement.workloads, catalog)
    watch = monitors(manifest.platform.target, placement.workloads, catalog)
    between = router(placement.workloads, catalog)
    images = (*(i for i in (spread, between) if i), *watch)
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
        queue=manifest.platform.queue if TARGETS[manifest.platform.target].queues_pods else None,
        jobs=jobs_of(manifest.platform, placement.workloads),
        operators=operators(manifest.platform),
        ansible=bool(manifest.platform.ansible)
        and TARGETS[manifest.platform.target].guests_on_hosts,
        network=network(manifest.platform),
        cluster=resolved.cluster,
        cloud=_cloud(resolved, placement),
        orders=ordered,
        components=pinned,
        balancer=spread,
        router=between,
        monitors=watch,
        quadlet=bool(manifest.platform.quadlet)
        and not TARGETS[manifest.platform.target].ignores("quadlet"),
        cost=placement.cost,
        provenance=Provenance(
            gpuplan_version=__version__,
            catalog_sha256=digest_of(entries),
            catalog=entries,
            inputs=resolved.inputs,
        ),
        evidence=(
            *(*evidence, *placement.evidence),
            *licences(manifest.platform, placement.workloads, placement.virtual_machines),
        ),
    )


def _rented(resolved: Resolved) -> bool:
    """Whether a cloud makes the cluster."""
    return TARGETS[resolved.loaded.manifest.platform.target].provider is not None


def _cloud(resolved: Resolved, placement: Placement) -> Cloud | None:
    if not _rented(resolved):
        return None
    from gpuplan.resolve.clouds.cluster import cloud

    return cloud(resolved, placement.node_pools, placement.workloads)


def _checked(diagnostics: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    if worst(diagnostics) is Severity.ERROR:
        raise Rejected(diagnostics)
    return tuple(diagnostics)
