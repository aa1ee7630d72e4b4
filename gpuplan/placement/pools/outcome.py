"""What a combination of candidates, one a workload, takes and costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cached_property

from gpuplan.frozen import frozen
from gpuplan.placement.pools.asks import asked
from gpuplan.placement.pools.bins import Ask, more
from gpuplan.placement.pools.packing import Need, Packing
from gpuplan.placement.pools.stages import MONTH, Stage, node_hours, stages
from gpuplan.plan.model import Shortfall
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.decide.searched import Search
from gpuplan.sizing.evidence.formula import canonical
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.targets import TARGETS

MOST_FILLS = 4  # times that a run takes what its nodes hold: more of a kind are cut otherwise

Pair = tuple[int, Candidate]  # the workload's place, and what it may be


@frozen
class Bill:
    """Whole nodes of one pool, and how long they are needed."""

    offer: GpuOffer
    nodes: int
    stages: tuple[Stage, ...]

    def amount(self, most: Decimal | None = None) -> float:
        """GPUs by the hour of a month: those of runs by the part of a month that they take, which
        may be more than one, or `most` so many hours."""
        return float(node_hours(self.stages, most) / MONTH) * self.offer.gpus_per_node

    @property
    def usd_per_gpu_hour(self) -> float:
        price = self.offer.usd_per_gpu_hour
        return price.value if price else 0.0


@frozen
class Outcome:
    """`needs` are the pools of the workloads (none on machines), `lacking` what is short. `bills`
    are what is paid; `budget` is what an hour of the dearest month may cost."""

    candidates: tuple[Candidate, ...]
    needs: tuple[Need | None, ...]
    lacking: tuple[Shortfall, ...]
    refused: int
    bills: tuple[Bill, ...]
    budget: float | None = None

    @property
    def feasible(self) -> bool:
        return not self.lacking and not self.refused

    @property
    def short(self) -> tuple[Shortfall, ...]:
        """What is lacking, and what the nodes of pools have too little of for one of their pods."""
        beyond = (s for n in self.needs if n for short in n.refused.values() for s in short)
        return tuple(dict.fromkeys((*self.lacking, *beyond)))

    @cached_property
    def cost(self) -> float:
        """USD an hour of a month of what stays; each run with its whole cost over that month's
        hours. Times 730 it is what the plan prints."""
        return canonical(sum(b.amount() * b.usd_per_gpu_hour for b in self.bills))

    @cached_property
    def usd_per_hour(self) -> float:
        """What all workloads cost while all run."""
        return sum(b.nodes * b.offer.gpus_per_node * b.usd_per_gpu_hour for b in self.bills)

    @cached_property
    def over_budget(self) -> bool:
        """Whether the dearest month costs more than the budget."""
        if self.budget is None:
            return False
        month = sum(b.amount(MONTH) * b.usd_per_gpu_hour for b in self.bills)
        return canonical(month) > self.budget

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
    def paid(self) -> tuple[float, int, int, bool, float, float, float]:
        """What fits before what does not, priced before unpriced, within the budget, then cheapest,
        on fewest GPUs. Each part grows with every workload that is added."""
        short = sum(s.requested + s.used - s.capacity for s in self.lacking)
        unpriced = sum(c.device.offer.usd_per_gpu_hour is None for c in self.candidates)
        rest = sum(b.amount() for b in self.bills if b.offer.usd_per_gpu_hour is None)
        fit = (short, self.refused, unpriced, self.over_budget)
        return (*fit, self.cost, canonical(rest), self.gpus)

    @cached_property
    def rank(self) -> tuple[object, ...]:
        """As `paid`; of equals the one with most room, then the fastest."""
        names = tuple((c.device.gpu.identifier, c.device.pool, c.gpus) for c in self.candidates)
        return (*self.paid, *self.merit, names)

    def amount(self, pool: str) -> float:
        """GPUs of one kind of node by the hour of a month: the cost's slope over their price."""
        return sum(b.amount() for b in self.bills if b.offer.pool == pool)


class Weigher:
    """Weighs combinations for the workloads of `searches`, and remembers whole ones. `looks` counts
    what was weighed."""

    def __init__(
        self, searches: Sequence[Search], site: Site, budget: Decimal | None = None
    ) -> None:
        self.searches, self.offers = searches, site.gpus
        self.machines = TARGETS[site.target].guests_on_hosts
        self.budget = None if budget is None else float(budget)
        self.looks = 0
        self._packing = Packing(site.gpus)
        self._asks: dict[tuple[int, int], Ask] = {}
        self._counted: dict[tuple[int, int], Candidate | None] = {}
        self._least: dict[int, Candidate] = {}  # of one that was counted again, what it was
        self.seen: dict[tuple[int, ...], Outcome] = {}

    def __call__(self, candidates: Sequence[Candidate]) -> Outcome:
        least = [self._least.get(id(c), c) for c in candidates]
        key = tuple(map(id, least))
        if key not in self.seen:
            self.seen[key] = self.part(tuple(enumerate(least)))
        return self.seen[key]

    def part(self, pairs: Sequence[Pair]) -> Outcome:
        """Of some workloads alone. Runs have as many replicas as the nodes of their pools hold,
        where that costs less: they end sooner."""
        self.looks += 1
        if self.machines:
            return self._guests(pairs)
        best = self._pools(pairs)
        for at in range(len(pairs)):
            for _ in range(MOST_FILLS):
                changed = self._fuller(best, pairs, at)
                if changed is None or changed.paid >= best.paid:
                    break
                best = changed
        return best

    def _fuller(self, outcome: Outcome, pairs: Sequence[Pair], at: int) -> Outcome | None:
        """With a run that has all replicas which the nodes of its pool hold as they are filled."""
        (place, least), candidate = pairs[at], outcome.candidates[at]
        need = outcome.needs[at]
        if candidate.again is None or need is None or need.refused:
            return None
        room = more(need.filled, self._ask(place, candidate), candidate.device.gpu)
        fuller = self._counting(least, candidate.replicas + room) if room else None
        if fuller is None:
            return None
        others = [c if n != at else fuller for n, c in enumerate(outcome.candidates)]
        return self._pools([(n, c) for (n, _), c in zip(pairs, others, strict=True)])

    def _counting(self, least: Candidate, replicas: int) -> Candidate | None:
        """The same candidate for the same number, so that what was weighed is known again."""
        key = (id(least), replicas)
        if key not in self._counted:
            made = self._counted[key] = least.counting(replicas)
            self._least |= {id(made): least} if made else {}
        return self._counted[key]

    def paid(self, outcome: Outcome, place: int) -> Candidate:
        """The candidate of a workload with its part of the nodes that its pool buys."""
        candidate, need = outcome.candidates[place], outcome.needs[place]
        if need is None:
            return candidate
        bought = (need.nodes - need.spares, need.gpus)
        return replace(candidate, pool=bought, pool_spares=need.spares)

    def _pools(self, pairs: Sequence[Pair]) -> Outcome:
        asks = [self._ask(n, c) for n, c in pairs]
        needs: dict[str, Need] = {}
        for members, need in self._packing.pools(asks):
            assert need is not None, "the candidate's offer has its GPU"
            needs[members[0].pool] = need
        return Outcome(
            candidates=tuple(c for _, c in pairs),
            needs=tuple(needs[a.pool] for a in asks),
            lacking=tuple(s for need in needs.values() for s in need.lacking),
            refused=sum(len(need.refused) for need in needs.values()),
            bills=tuple(Bill(n.offer, n.nodes, n.stages) for n in needs.values()),
            budget=self.budget,
        )

    def _guests(self, pairs: Sequence[Pair]) -> Outcome:
        """On machines, GPUs are counted over all hosts of their type, and hosts as if all their
        GPUs could be had; where guests then find no room, placement says."""
        types: dict[str, list[Candidate]] = {}
        for _, candidate in pairs:
            types.setdefault(candidate.device.gpu.identifier, []).append(candidate)
        taken = {gpu: _gpus(candidates) for gpu, candidates in types.items()}
        capacities = {gpu: self._capacity(gpu) for gpu in taken}
        lacking = tuple(
            Shortfall(
                resource=gpu, requested=taken[gpu], used=0, capacity=capacities[gpu], unit="1"
            )
            for gpu in taken
            if taken[gpu] > capacities[gpu]
        )
        return Outcome(
            candidates=tuple(c for _, c in pairs),
            needs=(None,) * len(pairs),
            lacking=lacking,
            refused=0,
            bills=tuple(map(_hosts, types.values())),
            budget=self.budget,
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
            self._asks[key] = asked(self.searches[place].demand, candidate)
        return self._asks[key]


def _gpus(candidates: Iterable[Candidate]) -> int:
    """Whole GPUs: none is of two workloads."""
    return sum(math.ceil(c.taken_gpus) for c in candidates)


def _hosts(candidates: Sequence[Candidate]) -> Bill:
    """The fewest hosts that have the GPUs of candidates of one type."""
    offer = candidates[0].device.offer
    hours = [None if c.hours is None else Decimal(repr(c.hours)) for c in candidates]

    def nodes(until: Decimal | None) -> int:
        longer = [
            c
            for c, own in zip(candidates, hours, strict=True)
            if own is None or (until and own >= until)
        ]
        return -(-_gpus(longer) // offer.gpus_per_node)

    total = -(-_gpus(candidates) // offer.gpus_per_node)
    return Bill(offer, total, stages(hours, nodes, total))
