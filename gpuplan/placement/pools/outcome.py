"""What a combination of candidates, one a workload, takes and costs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property

from gpuplan.placement.pools.bins import Ask
from gpuplan.placement.pools.packing import Need, Packing, pool_name
from gpuplan.plan.model import Shortfall
from gpuplan.sizing.candidates.choose import Candidate, best
from gpuplan.sizing.candidates.resources import host_resources
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.decide.size import Search
from gpuplan.sizing.evidence.formula import canonical
from gpuplan.sizing.hardware.offers import Site
from gpuplan.targets import TARGETS


@dataclass(frozen=True)
class Outcome:
    """`needs` are the pools of the workloads (none on machines), `lacking` what is short. `paid`
    are the GPUs that each workload pays; a run without a time limit weighs them by its hours,
    beside those of the run that is cheapest alone."""

    candidates: tuple[Candidate, ...]
    needs: tuple[Need | None, ...]
    lacking: tuple[Shortfall, ...]
    refused: int
    paid: tuple[Decimal, ...]
    weights: tuple[float, ...]

    @property
    def feasible(self) -> bool:
        return not self.lacking and not self.refused

    @cached_property
    def parts(self) -> tuple[float, ...]:
        """The weighed cost of each workload; 0 where it has no price."""
        prices = (c.device.offer.usd_per_gpu_hour for c in self.candidates)
        triples = zip(prices, self.paid, self.weights, strict=True)
        return tuple(p.value * float(gpus) * w if p else 0.0 for p, gpus, w in triples)

    @cached_property
    def cost(self) -> float:
        return canonical(sum(self.parts))

    @cached_property
    def usd_per_hour(self) -> float:
        """What all workloads cost, unweighed."""
        pairs = zip(self.parts, self.weights, strict=True)
        return sum(part / weight for part, weight in pairs)

    @cached_property
    def gpus(self) -> float:
        return float(sum(c.asked_gpus for c in self.candidates))

    @cached_property
    def merit(self) -> tuple[float, float]:
        """Of all workloads together: a product, that no one of them could better alone."""
        points = [c.merit.point for c in self.candidates]
        rooms, seconds = (-math.prod(-p[0] for p in points), math.prod(p[1] for p in points))
        return canonical(rooms), canonical(seconds)

    @cached_property
    def rank(self) -> tuple[object, ...]:
        """What fits before what does not, priced before unpriced, then cheapest by the
        hour, then with runs that end first, on fewest GPUs, with most room and fastest."""
        short = sum(s.requested + s.used - s.capacity for s in self.lacking)
        unpriced = [c.device.offer.usd_per_gpu_hour is None for c in self.candidates]
        triples = zip(unpriced, self.paid, self.weights, strict=True)
        rest = canonical(sum(float(gpus) * w for absent, gpus, w in triples if absent))
        names = tuple((c.device.gpu.identifier, c.device.pool, c.gpus) for c in self.candidates)
        fit = (short, self.refused, sum(unpriced), self.cost, rest)
        until = canonical(sum(c.seconds for c in self.candidates))
        return (*fit, until, self.gpus, *self.merit, names)

    def amount(self, pool: str) -> float:
        """Weighed GPUs of one kind of node: the cost's slope over their price."""
        triples = zip(self.candidates, self.paid, self.weights, strict=True)
        return sum(float(g) * w for c, g, w in triples if c.device.offer.pool == pool)


class Weigher:
    """Weighs combinations for the workloads of `searches`, and remembers them."""

    def __init__(self, searches: Sequence[Search], site: Site) -> None:
        self.searches, self.offers = searches, site.gpus
        self.machines = TARGETS[site.target].guests_on_hosts
        self._packing = Packing(site.gpus)
        alone = [best(s.allowed) for s in searches]
        self._hours = [1.0 if c is None else c.hours for c in alone]
        self._asks: dict[tuple[int, int], Ask] = {}
        self.seen: dict[tuple[int, ...], Outcome] = {}

    def __call__(self, candidates: Sequence[Candidate]) -> Outcome:
        key = tuple(map(id, candidates))
        if key not in self.seen:
            weights = (c.hours / h for c, h in zip(candidates, self._hours, strict=True))
            weigh = self._guests if self.machines else self._pools
            self.seen[key] = weigh(tuple(candidates), tuple(weights))
        return self.seen[key]

    def paid(self, outcome: Outcome, place: int) -> Candidate:
        """The candidate of a workload with its part of the nodes that its pool buys."""
        candidate, need = outcome.candidates[place], outcome.needs[place]
        return candidate if need is None else replace(candidate, pool=(need.nodes, need.gpus))

    def _pools(self, candidates: tuple[Candidate, ...], weights: tuple[float, ...]) -> Outcome:
        asks = [self._ask(n, c) for n, c in enumerate(candidates)]
        needs: dict[str, Need] = {}
        for members, need in self._packing.pools(asks):
            assert need is not None, "the candidate's offer has its GPU"
            needs[members[0].pool] = need
        of_each = tuple(needs[a.pool] for a in asks)
        pairs = zip(candidates, of_each, strict=True)
        return Outcome(
            candidates=candidates,
            needs=of_each,
            lacking=tuple(s for need in needs.values() for s in need.lacking),
            refused=sum(len(need.refused) for need in needs.values()),
            paid=tuple(replace(c, pool=(n.nodes, n.gpus)).paid_gpus for c, n in pairs),
            weights=weights,
        )

    def _guests(self, candidates: tuple[Candidate, ...], weights: tuple[float, ...]) -> Outcome:
        """On machines, whole GPUs are counted; where guests then find no room, placement says."""
        taken: Counter[str] = Counter()
        for candidate in candidates:
            taken[candidate.device.gpu.identifier] += math.ceil(candidate.taken_gpus)
        capacities = {gpu: self._capacity(gpu) for gpu in taken}
        lacking = tuple(
            Shortfall(
                resource=gpu, requested=taken[gpu], used=0, capacity=capacities[gpu], unit="1"
            )
            for gpu in taken
            if taken[gpu] > capacities[gpu]
        )
        return Outcome(
            candidates=candidates,
            needs=(None,) * len(candidates),
            lacking=lacking,
            refused=0,
            paid=tuple(c.paid_gpus for c in candidates),
            weights=weights,
        )

    def _capacity(self, gpu: str) -> float:
        """GPUs of a type that the site has."""
        counts = [
            math.inf if o.node_count is None else o.node_count * o.gpus_per_node
            for o in self.offers
            if o.gpu.identifier == gpu
        ]
        return sum(counts)

    def _ask(self, place: int, candidate: Candidate) -> Ask:
        key = (place, id(candidate))
        if key not in self._asks:
            self._asks[key] = self._asked(self.searches[place], candidate)
        return self._asks[key]

    def _asked(self, search: Search, candidate: Candidate) -> Ask:
        device, demand = candidate.device, search.demand
        room = device.offer.gpus_per_node
        inside = min(candidate.gpus, room)
        host = host_resources(Settled(demand), device, inside)
        return Ask(
            workload=demand.name,
            pool=pool_name(
                device.pool, demand.isolation, demand.tenant, partitioned=device.share is not None
            ),
            kind=device.pool,
            gpu=device.gpu.identifier,
            partition=device.partition,
            replicas=candidate.replicas,
            nodes=math.ceil(candidate.gpus / room),
            gpus=inside,
            cores=host.cpu_cores,
            memory_bytes=host.host_memory_bytes,
        )
