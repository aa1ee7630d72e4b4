"""Manifests, lists of requests and an inventory → the problem that the packer solves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gpuplan.catalog.load import Catalog
from gpuplan.catalog.shapes import Place
from gpuplan.catalog.shapes import Wanted as Sellers
from gpuplan.diagnostics import Diagnostic, Severity, worst
from gpuplan.errors import Rejected
from gpuplan.fleet import messages
from gpuplan.fleet.buy import with_bought
from gpuplan.fleet.host_sharing import common, uneven
from gpuplan.fleet.hosts import Hosts, hosts
from gpuplan.fleet.kept import read_kept
from gpuplan.fleet.limits import beyond
from gpuplan.fleet.options import gpu_model
from gpuplan.fleet.problem import GpuModel, Placed, Problem, Request, Ways
from gpuplan.fleet.requests.lower import grown, plain_requests
from gpuplan.fleet.requests.reading import Wanted
from gpuplan.fleet.sized import Holding, Sizer, requests_of
from gpuplan.frozen import record
from gpuplan.inventory.allocations import available, held_by_others
from gpuplan.inventory.v1 import Inventory
from gpuplan.manifest.load import Loaded
from gpuplan.placement.contradictions import contradictions
from gpuplan.resolve.messages import list_prices
from gpuplan.resolve.run import read_inventory, resolve
from gpuplan.resolve.site import find_site, gpu_names, plannable
from gpuplan.resolve.variants import NO_NODES
from gpuplan.resolve.where import Where
from gpuplan.sizing.ask.demand import Demand
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.sizing.hardware.sites import joined
from gpuplan.source import Origin


@record
class Asked:
    """What the command line says beside the files to pack. `place`: where alone hosts are
    rented."""

    inventory: Path | None = None
    buy: tuple[str, ...] = ()
    keep: Path | None = None
    move_cost: int = 0
    growth: float = 0.0
    spread: bool = False
    place: Place | None = None


@dataclass(slots=True)
class Built:
    """The problem, or None where it has errors; and everything that is to be said about it."""

    problem: Problem | None = None
    diagnostics: list[Diagnostic] = field(default_factory=list)


def build(
    wanted: Wanted,
    asked: Asked,
    catalog: Catalog,
    progress: Callable[[str], None] = lambda _: None,
) -> Built:
    """Every problem of all documents at once."""
    built = Built(diagnostics=list(wanted.problems))
    fleet = _hosts(asked, wanted, catalog, built)
    if worst(built.diagnostics) is Severity.ERROR or not fleet.types:
        if worst(built.diagnostics) is not Severity.ERROR:
            empty = asked.inventory and messages.no_gpus(asked.inventory.name)
            built.diagnostics.append(empty or messages.no_hosts())
        return built
    models = _models(fleet, catalog)
    built.diagnostics += uneven(fleet.sharing)
    largest = {m.name: 0 for m in models}
    for kind in fleet.types:
        largest[kind.gpu] = max(largest[kind.gpu], sum(len(n.gpus) for n in kind.nodes))
    requests, unserved = plain_requests(wanted.lists, {m.name: m for m in models}, largest)
    built.diagnostics += unserved
    sizing = _Sizing(asked, fleet, catalog, wanted)
    for loaded in wanted.manifests:
        progress(f"sizing {loaded.manifest.name}")
        requests += sizing.requests(loaded)
    built.diagnostics += sizing.diagnostics
    requests = [_with_growth(r, asked.growth) for r in requests]
    ways = tuple(
        Ways(ways=tuple(tuple(_with_growth(r, asked.growth) for r in way) for way in each))
        for each in sizing.ways
    )
    built.diagnostics += beyond(requests, fleet.types)
    if worst(built.diagnostics) is Severity.ERROR:
        return built
    kept = _kept(asked, wanted, fleet, requests, built)
    if worst(built.diagnostics) is Severity.ERROR:
        return built
    if not requests:
        built.diagnostics.append(messages.nothing_to_pack())
        return built
    built.problem = Problem(
        gpus=models,
        hosts=fleet.types,
        requests=tuple(requests),
        ways=ways,
        kept=kept,
        move_cost=asked.move_cost,
    )
    return built


def _kept(
    asked: Asked, wanted: Wanted, fleet: Hosts, requests: Sequence[Request], built: Built
) -> tuple[Placed, ...]:
    if asked.keep is None:
        return ()
    kept, problems = read_kept(asked.keep, fleet.types, requests, wanted.sources)
    built.diagnostics += problems
    return kept


def _bought(asked: Asked, wanted: Wanted) -> tuple[str, ...]:
    """What may be bought: as the command line says; where it names no hosts at all, the GPU types
    that the manifests allow."""
    if asked.buy or asked.inventory is not None:
        return asked.buy
    allowed = [m.manifest.platform.gpus for m in wanted.manifests]
    return tuple(sorted({gpu for gpus in allowed for gpu in gpus or ()})) if all(allowed) else ()


def sellers(wanted: Wanted) -> Sellers:
    """Where the manifests buy, if all buy at one place; else anywhere."""
    platforms = [m.manifest.platform for m in wanted.manifests]
    places = {Sellers(p.provider, p.region, tuple(p.nodes or ())) for p in platforms}
    return places.pop() if len(places) == 1 else Sellers()


def _hosts(asked: Asked, wanted: Wanted, catalog: Catalog, built: Built) -> Hosts:
    sources = wanted.sources
    fleet = Hosts()
    if asked.inventory is not None:
        label = asked.inventory.name
        if label in sources.documents:
            label = str(asked.inventory)
        inventory, problems = read_inventory(asked.inventory, label, sources, catalog)
        if inventory is not None:
            inventory, left_out = plannable(inventory, label, catalog, None)
            problems += (*_checked(inventory, label, catalog), *left_out)
        built.diagnostics += problems
        if inventory is None or worst(problems) is Severity.ERROR:
            return fleet
        inventory, taken = available(inventory, _stacks(wanted))
        built.diagnostics += (
            [held_by_others(taken, Origin(label, ("allocations",)))] if taken else []
        )
        fleet = hosts(inventory, label, catalog)
        if fleet.stand_ins:
            listed = [
                f"{g} ${p.usd_per_hour}/h" for g in fleet.stand_ins if (p := catalog.price(g))
            ]
            built.diagnostics.append(list_prices(label, listed, Origin(label, ("hosts",))))
    where = sellers(wanted)._replace(place=asked.place)
    fleet = with_bought(fleet, _bought(asked, wanted), catalog, where)
    built.diagnostics += fleet.problems
    return fleet


def _stacks(wanted: Wanted) -> tuple[str, ...]:
    """Whose hosts may be packed anew: those of the manifests; no list of requests holds any."""
    return tuple(m.manifest.name for m in wanted.manifests)


def _checked(inventory: Inventory, label: str, catalog: Catalog) -> list[Diagnostic]:
    """Names and contradictions."""
    return [*gpu_names(inventory, label, catalog, None), *contradictions(inventory, label)]


def _models(fleet: Hosts, catalog: Catalog) -> tuple[GpuModel, ...]:
    gpus = (catalog.gpu(name) for name in sorted({k.gpu for k in fleet.types}))
    return tuple(
        gpu_model(gpu, common(s for name, s, _ in fleet.sharing if name == gpu.identifier))
        for gpu in gpus
        if gpu is not None
    )


class _Sizing:
    """Sizes the workloads of manifests; one sizer for each site. `ways` are those of workloads that
    have several."""

    def __init__(self, asked: Asked, fleet: Hosts, catalog: Catalog, wanted: Wanted) -> None:
        self.asked, self.fleet, self.catalog = asked, fleet, catalog
        self.sources, self.stacks = wanted.sources, _stacks(wanted)
        self.sizers: list[Sizer] = []
        self.ways: list[tuple[tuple[Request, ...], ...]] = []
        self.diagnostics: list[Diagnostic] = []
        described = {
            k.name: any(c.functions for n in k.nodes for c in n.cards) for k in fleet.types
        }
        self.uncounted = frozenset(k.gpu for k in fleet.types if not described[k.name])
        sizes: dict[str, set[int]] = {}
        for kind in fleet.types:
            sizes.setdefault(kind.gpu, set()).add(sum(len(n.gpus) for n in kind.nodes))
        self.hosts = {gpu: frozenset(counts) for gpu, counts in sizes.items()}

    def requests(self, loaded: Loaded) -> Iterator[Request]:
        try:
            on_fleet = _on_fleet(loaded, self.asked, self.fleet)
            resolved = resolve(on_fleet, self.sources, self.catalog, beside=self.stacks)
        except Rejected as rejected:
            self.diagnostics += rejected.diagnostics
            return
        site = _with_offers(
            joined(resolved.site), loaded, self.fleet, self.catalog, self.asked.place
        )
        sizer = next((s for s in self.sizers if s.site == site), None) or Sizer(
            site, self.uncounted, self.hosts
        )
        self.sizers.append(sizer)
        for demand in resolved.demands:
            holding = sizer(demand)
            if isinstance(holding, tuple):
                self.diagnostics += holding
                continue
            stack = loaded.manifest.name
            self.diagnostics += self._uncounted(demand, holding, site)
            ways = tuple(requests_of(stack, demand, holding, spread=self.asked.spread))
            if len(ways) > 1:
                self.ways.append(ways)
            yield from ways[0]

    def _uncounted(self, demand: Demand, holding: Holding, site: Site) -> Iterator[Diagnostic]:
        several = [way for way in holding.ways if way.nodes > 1]
        if several and site.fabric is not None:
            options = (o for way in several for o in way.options)
            for gpu in dict.fromkeys(o.gpu for o in options if not o.functions):
                yield messages.uncounted_functions(demand.name, gpu, demand.origin)


def _on_fleet(loaded: Loaded, asked: Asked, fleet: Hosts) -> Loaded:
    """The manifest on the fleet: of the GPU types it allows, those that are there, else those that
    may be bought."""
    platform = loaded.manifest.platform
    types = sorted({k.gpu for k in fleet.types if asked.inventory is None or k.names})
    own = [g for g in platform.gpus or types if g in types]
    bought = [k.gpu for k in fleet.types if k.gpu in (platform.gpus or ())]
    changed: dict[str, object] = {"inventory": None, "node": None}
    if asked.inventory is not None:
        changed = dict(NO_NODES)
        if own or not bought:
            changed["inventory"] = str(asked.inventory.resolve())
    changed["gpus"] = own or list(dict.fromkeys(bought)) or platform.gpus
    new = loaded.manifest.model_copy(update={"platform": platform.model_copy(update=changed)})
    return Loaded(new, loaded.document, loaded.folder)


def _with_offers(
    site: Site, loaded: Loaded, fleet: Hosts, catalog: Catalog, place: Place | None
) -> Site:
    """`site` with what may be bought, of the GPU types that the manifest allows."""
    platform = loaded.manifest.platform
    offers: list[GpuOffer] = list(site.gpus)
    for kind in fleet.types:
        allowed = platform.gpus is None or kind.gpu in platform.gpus
        if kind.available is not None or not allowed:
            continue
        like = [o for o in site.gpus if o.gpu.identifier == kind.gpu]
        if not like:
            changed = NO_NODES | {"gpus": [kind.gpu]}
            where = Where(
                platform.model_copy(update=changed), loaded.document, None, "", place=place
            )
            bought, _ = find_site(where, catalog)
            like = list(bought.gpus) if bought else []
        offers += [replace(o, node_count=None, node_names=()) for o in like if o.node_count]
        offers += [o for o in like if o.node_count is None and o not in offers]
    # A packing seats groups on nodes one by one and knows of no domain: they stay inside a node.
    return replace(site, gpus=tuple(replace(o, nvlink_nodes=1) for o in offers))


def _with_growth(request: Request, part: float) -> Request:
    return replace(request, growth=max(request.growth, grown(request.count, part)))
