"""Manifests → the packer's requests: each workload sized as `compile` sizes it.

What stays may run in every layout that the search found: a way is a number of replicas and of nodes
for each, with every GPU type, partition and shape of host that serves it so. What ends keeps the
layout whose whole run costs least: an hour of it says nothing. What growth adds is room that is
kept, not replicas that run now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace

from gpuplan.diagnostics import Diagnostic
from gpuplan.fleet.problem import PRIORITIES, Option, Request
from gpuplan.frozen import record
from gpuplan.placement.pools.asks import asked
from gpuplan.plan import window
from gpuplan.plan.isolation import neighbours
from gpuplan.sharing.partitions import held_by
from gpuplan.sizing.ask.demand import GROWING, Demand
from gpuplan.sizing.ask.given import mapped
from gpuplan.sizing.candidates.choose import Candidate, best, shortlist
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.decide.searched import Search
from gpuplan.sizing.decide.size import finish, search
from gpuplan.sizing.decide.without import with_number
from gpuplan.sizing.hardware.offers import Site
from gpuplan.targets import TARGETS

Footprint = tuple[str, int]  # the kind of node, and the GPUs of a replica


@record
class Way:
    """`replicas` of `nodes` items each; `growth` more run only later."""

    options: tuple[Option, ...]
    replicas: int
    growth: int
    nodes: int


@record
class Holding:
    """The ways in which a workload may be held, first the one that costs least alone."""

    ways: tuple[Way, ...]


class Sizer:
    """Sizes workloads of one site; equal ones, but for their names, once."""

    def __init__(
        self,
        site: Site,
        uncounted: frozenset[str] = frozenset(),
        hosts: Mapping[str, frozenset[int]] | None = None,
    ) -> None:
        """`uncounted` are GPU types with hosts whose network cards are not described, `hosts` the
        numbers of GPUs that hosts of a type have."""
        self.site, self.uncounted, self.hosts = site, uncounted, hosts or {}
        self._known: dict[object, Holding | tuple[Diagnostic, ...]] = {}

    def __call__(self, demand: Demand) -> Holding | tuple[Diagnostic, ...]:
        key = _key(demand)
        if key not in self._known:
            self._known[key] = self._holding(demand)
        return self._known[key]

    def _holding(self, demand: Demand) -> Holding | tuple[Diagnostic, ...]:
        tried = search(demand, self.site)
        if not isinstance(tried, Search):
            return tried
        winner = best(tried.allowed)
        assert winner is not None, "a search without a feasible candidate is a diagnostic"
        sized = finish(tried, self.site, winner, ())
        if not isinstance(sized, Sized):
            return sized
        today = self._today(demand)
        own = (winner.replicas, sized.workload.nodes_per_replica)
        ways: dict[tuple[int, int], list[Candidate]] = {own: []}
        for candidate in sorted(shortlist(tried.allowed), key=_size):
            ways.setdefault((candidate.replicas, _nodes(candidate)), []).append(candidate)
        ends = winner.hours is not None
        made = [
            self._way(demand, alike, today)
            for layout, alike in ways.items()
            if alike and (layout == own or not ends)
        ]
        return Holding(ways=tuple(made))

    def _today(self, demand: Demand) -> dict[Footprint, int]:
        """The replicas that the load takes before it grows, of each layout; none where it does
        not."""
        before = _today(demand)
        tried = None if before is None else search(before, self.site)
        least: dict[Footprint, int] = {}
        for candidate in tried.allowed if isinstance(tried, Search) else ():
            if candidate.feasible:
                known = least.get(_footprint(candidate), candidate.replicas)
                least[_footprint(candidate)] = min(known, candidate.replicas)
        return least

    def _way(self, demand: Demand, alike: list[Candidate], today: Mapping[Footprint, int]) -> Way:
        """Candidates with as many replicas and nodes; of those with growth the one that runs with
        most now."""
        replicas = alike[0].replicas
        now = max(min(today.get(_footprint(c), replicas), replicas) for c in alike)
        options: dict[Option, None] = {}
        for candidate in alike:
            for option in self._options(demand, candidate):
                options[option] = None
        return Way(
            options=tuple(_smallest(options)),
            replicas=now,
            growth=replicas - now,
            nodes=_nodes(alike[0]),
        )

    def _options(self, demand: Demand, candidate: Candidate) -> Iterator[Option]:
        """One node's part of a replica, on hosts as its offer has them. A guest needs memory beside
        its own; the part of a replica that lies on several hosts needs a network function a GPU."""
        guest = TARGETS[self.site.target].virtual_machines
        device, ask = candidate.device, asked(demand, candidate)
        mode, part = held_by(device.share, device.gpu) if device.share else (None, None)
        between = self.site.fabric is not None and ask.nodes > 1
        counted = guest or ask.gpu not in self.uncounted
        option = Option(
            gpu=ask.gpu,
            gpus=0 if part else ask.gpus,
            mode=mode.name if mode else None,
            part=part.name if part else None,
            cores=ask.cores,
            memory_bytes=ask.memory_bytes + window.GUEST_OVERHEAD_BYTES * guest,
            functions=ask.gpus if between and counted else 0,
            host_gpus=device.offer.gpus_per_node,
        )
        yield option
        offered = {
            o.gpus_per_node for o in self.site.gpus if o.gpu.identifier == device.gpu.identifier
        }
        for gpus in sorted(self.hosts.get(ask.gpu, frozenset()) - offered):
            if gpus >= option.gpus:
                yield replace(option, host_gpus=gpus)


def _nodes(candidate: Candidate) -> int:
    """Of a replica."""
    return -(-candidate.gpus // candidate.device.offer.gpus_per_node)


def _footprint(candidate: Candidate) -> Footprint:
    return f"{candidate.device.pool} {candidate.device.partition}", candidate.gpus


def _smallest(options: Mapping[Option, None]) -> Iterator[Option]:
    """Without those beside which another one is of the same device on the same hosts, and takes no
    more."""
    kept: list[Option] = []
    for option in options:
        like = (
            k
            for k in kept
            if (k.gpu, k.mode, k.part, k.host_gpus)
            == (option.gpu, option.mode, option.part, option.host_gpus)
        )
        if not any(_within(k, option) for k in like):
            kept.append(option)
            yield option


def _within(one: Option, other: Option) -> bool:
    pairs = (
        (one.gpus, other.gpus),
        (one.cores, other.cores),
        (one.memory_bytes, other.memory_bytes),
        (one.functions, other.functions),
    )
    return all(a <= b for a, b in pairs)


def _today(demand: Demand) -> Demand | None:
    """The same before it grows; None where it does not."""
    growth = demand.growth if isinstance(demand, GROWING) else None
    if growth is None or growth.factor.value <= 1:
        return None
    return with_number(demand, growth.factor.field.path, 1.0, "today's load")


_NAMES = ("name", "description", "tenant", "renamed_from", "origin", "anchors")


def _key(demand: Demand) -> object:
    """Everything but names, the place and where numbers come from."""
    plain = mapped(demand, lambda number: replace(number, source="", replaced=None))
    values = [(f.name, getattr(plain, f.name)) for f in fields(plain) if f.name not in _NAMES]
    return (demand.kind, repr(values), id(demand.anchors))


def _size(candidate: Candidate) -> tuple[float, float, str, str, int]:
    device = candidate.device
    share = candidate.gpus / device.per_gpu
    name = device.gpu.identifier
    hosts = device.offer.gpus_per_node
    return (share, device.memory_bytes.value, name, device.partition or "", hosts)


def requests_of(
    stack: str, demand: Demand, holding: Holding, *, spread: bool
) -> Iterator[tuple[Request, ...]]:
    """The requests of each way: one of a workload; where a replica lies on several hosts, one of
    each replica."""
    return (tuple(_requests(stack, demand, way, spread=spread)) for way in holding.ways)


def _requests(stack: str, demand: Demand, way: Way, *, spread: bool) -> Iterator[Request]:
    name = f"{stack}/{demand.name}"
    common = Request(
        name=name,
        count=way.replicas,
        options=way.options,
        tenant=demand.tenant,
        isolation=neighbours(demand.isolation),
        spread=name if spread else None,
        growth=way.growth,
        priority=PRIORITIES.index(demand.priority),
        origin=demand.origin,
    )
    if way.nodes == 1:
        yield common
        return
    for number in range(way.replicas + way.growth):
        replica, later = f"{name}/{number}", number >= way.replicas
        count, growth = (0, way.nodes) if later else (way.nodes, 0)
        yield replace(common, name=replica, count=count, growth=growth, spread=replica)
