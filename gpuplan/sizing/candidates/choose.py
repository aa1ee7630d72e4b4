"""Candidates: what each takes and costs, and the best of some.

The cheapest feasible candidate wins, priced ones before unpriced: what stays by the hour, what ends
by its whole run. Of equals it is one on fewest GPUs (a partition counts as its share of one), which
leaves the others of a paid node to other work; of those the one with most room, then the fastest,
then the first by name. Nodes are paid whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from decimal import Decimal
from functools import cached_property
from typing import Generic

from typing_extensions import TypeVar

from gpuplan.catalog.model import MigProfile
from gpuplan.frozen import frozen
from gpuplan.plan.isolation import Isolation, own_node
from gpuplan.plan.model import Flip, Parallelism, Shortfall
from gpuplan.sizing.evidence.formula import canonical
from gpuplan.sizing.hardware.devices import Device
from gpuplan.sizing.hardware.offers import GpuOffer
from gpuplan.sizing.hardware.power import most_watts
from gpuplan.units import MICRO

MOST_REPLICAS = 10_000.0
RACK = "rack_power"

Rank = tuple[bool, float, float, str, str, int]


class Merit:
    """What a candidate gives for its price: `measure` gives its room, which is what it could do
    over what it must, and the seconds that are waited for it; 1 and 1 where neither is known."""

    def __init__(self, measure: Callable[[], tuple[float, float]] = lambda: (1.0, 1.0)) -> None:
        self._measure = measure

    @cached_property
    def point(self) -> tuple[float, float]:
        """Minus the room, and the seconds: less is better. To three digits, below which no
        prediction is better than another."""
        room, seconds = self._measure()
        return -float(f"{room:.3g}"), float(f"{seconds:.3g}")


UNKNOWN_MERIT = Merit()


L = TypeVar("L")  # what a kind of workload evaluates of a layout
L_co = TypeVar("L_co", covariant=True, default=object)


@frozen
class Candidate(Generic[L_co]):
    """A layout that was tried. `hours` is how long a run takes; None: it stays. The first of the
    `shortfalls` is its gate, `passed` counts the gates before it. `pool` are the nodes that are
    bought for its pool, without `spares`, those of a run that stand by, and the GPUs that are asked
    of them; None: it is alone there. `pool_spares` stand by for any run of that pool. `parallelism`
    is that of a served replica; None: its GPUs split each layer. `detail` is what its kind of
    workload evaluated, None where it was refused before; `merit` is its kind's too. `again` makes
    the same layout with so many replicas, where more of them end a run sooner."""

    device: Device
    gpus: int
    replicas: int
    isolation: Isolation
    hours: float | None = None
    spares: int = 0
    shortfalls: tuple[Shortfall, ...] = ()
    passed: int = 0
    flip: Flip | None = None
    pool: tuple[int, Decimal] | None = None
    pool_spares: int = 0
    parallelism: Parallelism | None = None
    detail: L_co | None = field(default=None, compare=False)
    merit: Merit = field(default=UNKNOWN_MERIT, compare=False)
    again: Callable[[int], Candidate[L_co]] | None = field(default=None, compare=False)

    @property
    def evaluated(self) -> L_co:
        """What its kind of workload evaluated, of one that no gate refused before."""
        assert self.detail is not None
        return self.detail

    @property
    def feasible(self) -> bool:
        return not self.shortfalls

    @property
    def tensor_parallel_size(self) -> int:
        """Of a served replica."""
        return self.parallelism.tensor_parallel_size if self.parallelism else self.gpus

    @property
    def gpu_count(self) -> int:
        """Whole GPUs."""
        if self.device.partition is not None:
            return math.ceil(self.replicas / self.device.per_gpu)
        return self.replicas * self.gpus

    @property
    def nodes(self) -> int:
        """Nodes that hold the replicas; a replica lies on whole nodes or inside one."""
        room = self.device.offer.gpus_per_node
        if self.device.partition is not None:
            return math.ceil(self.gpu_count / room)
        if self.gpus > room:
            return self.replicas * math.ceil(self.gpus / room)
        return math.ceil(self.replicas / (room // self.gpus))

    @property
    def bought(self) -> bool:
        """Whether nodes are bought for it, and not there already."""
        return self.device.offer.node_count is None

    @property
    def asked_gpus(self) -> Decimal:
        """GPUs that it asks of its pool, a partition as its share of one."""
        return Decimal(self.replicas * self.gpus) / self.device.per_gpu

    @property
    def held_replicas(self) -> int:
        """As many replicas as the nodes hold that are paid for it."""
        offer, device = self.device.offer, self.device
        if self.gpus > offer.gpus_per_node:
            return self.replicas
        return self.nodes * (offer.gpus_per_node * device.per_gpu // self.gpus)

    def counting(self, replicas: int) -> Candidate[L_co] | None:
        """The same layout with so many replicas; None where it is not made so."""
        if self.again is None:
            return None
        made = replace(self.again(replicas), device=self.device)
        return made if made.feasible else None

    @property
    def taken_gpus(self) -> Decimal:
        """GPUs that nobody else can have: whole nodes where they are not shared."""
        if own_node(self.isolation):
            return Decimal(self.nodes * self.device.offer.gpus_per_node)
        return self.asked_gpus

    @property
    def paid_gpus(self) -> Decimal:
        """GPUs that are paid for: of nodes that are bought, its part of all GPUs of its pool; and
        all of its spare nodes."""
        if not self.bought:
            return self.taken_gpus + self.spare_gpus
        nodes, asked = self.pool or (self.nodes, self.asked_gpus)
        part = nodes * self.device.offer.gpus_per_node * self.asked_gpus / asked
        return part + self.spare_gpus

    @property
    def spare_gpus(self) -> int:
        return self.spares * self.device.offer.gpus_per_node

    @property
    def usd_per_hour(self) -> Decimal | None:
        return self._price(self.paid_gpus)

    @property
    def whole_gpus(self) -> Decimal:
        """All GPUs of its nodes, whoever has them."""
        return Decimal((self.nodes + self.spares) * self.device.offer.gpus_per_node)

    @property
    def whole_usd_per_hour(self) -> Decimal | None:
        return self._price(self.whole_gpus)

    def _price(self, gpus: Decimal) -> Decimal | None:
        return usd_per_hour(self.device.offer, gpus)

    @property
    def least_gpus(self) -> Decimal:
        """GPUs that its devices fill at least, in the tightest layout that they may be part of."""
        share = self.device.share
        if isinstance(share, MigProfile):
            slices = self.device.gpu.mig_slices
            return Decimal(self.replicas * self.gpus * share.memory_slices) / slices
        return self.asked_gpus

    @property
    def weight(self) -> float:
        """By what its hourly cost counts: what stays costs by the hour, a run as a whole."""
        return 1.0 if self.hours is None else self.hours

    def rank(self, *, sharing: bool = False) -> Rank:
        """Order by cost, as it is paid alone, or `sharing` its nodes with others."""
        gpus = self.taken_gpus + self.spare_gpus if sharing else self.whole_gpus
        cost = self._price(gpus)
        paid = canonical(float(gpus if cost is None else cost) * self.weight)
        key = (self.device.gpu.identifier, self.device.pool, self.gpus)
        return (cost is None, paid, float(self.asked_gpus), *key)


def usd_per_hour(offer: GpuOffer, gpus: Decimal) -> Decimal | None:
    """Of so many GPUs of `offer`; None where nobody states a price."""
    price = offer.usd_per_gpu_hour
    return None if price is None else (Decimal(repr(price.value)) * gpus).quantize(MICRO)


def nodes_gate(candidate: Candidate) -> tuple[tuple[Shortfall, ...], Flip | None]:
    """The gate of a site with too few nodes, of racks that feed none of them, and of more replicas
    than are planned one by one."""
    if candidate.replicas > MOST_REPLICAS:
        many = float(candidate.replicas)
        gate = Shortfall(
            resource="replicas", requested=many, used=0.0, capacity=MOST_REPLICAS, unit="1"
        )
        return (gate,), None
    offer = candidate.device.offer
    if (rack := offer.rack_watts) is not None and (watts := most_watts(offer)) > rack.value:
        gate = Shortfall(resource=RACK, requested=watts, used=0.0, capacity=rack.value, unit="W")
        return (gate,), None
    count, needed = offer.node_count, float(candidate.nodes + candidate.spares)
    if count is None or needed <= count:
        return (), None
    gate = Shortfall(
        resource="nodes", requested=needed, used=0.0, capacity=float(count), unit="nodes"
    )
    if offer.node_names:
        return (gate,), None  # those that an inventory names are all there are
    flip = Flip(quantity="node.count", now=float(count), needed=needed, unit="nodes")
    return (gate,), flip


def best(candidates: Iterable[Candidate]) -> Candidate | None:
    """The cheapest feasible candidate; of equals that with most merit."""
    return least([c for c in candidates if c.feasible])


def least(group: Sequence[Candidate], *, sharing: bool = False) -> Candidate | None:
    """The cheapest of `group`, alone or `sharing` its nodes; of equals that with most merit."""
    ranked = [(c, c.rank(sharing=sharing)) for c in group]
    if not ranked:
        return None
    cheapest = min(rank for _, rank in ranked)
    equal = [pair for pair in ranked if pair[1][:3] == cheapest[:3]]
    return min(equal, key=lambda pair: (pair[0].merit.point, pair[1]))[0]


def leading(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The best of each device of each offer: alone on its nodes, and sharing them."""
    groups = _devices(candidates)
    leaders = [least(group, sharing=s) for group in groups for s in (False, True)]
    return list({id(c): c for c in leaders if c is not None}.values())


def shortlist(candidates: Iterable[Candidate]) -> list[Candidate]:
    """All that can be part of a cheapest combination: those that no other of the same device takes
    the place of, being no larger and no longer."""
    return [c for group in _devices(candidates) for c in _undominated(group)]


def _undominated(group: Sequence[Candidate]) -> Iterator[Candidate]:
    kept: list[tuple[int, int, float]] = []
    for candidate in sorted(group, key=lambda c: (c.rank()[:3], c.merit.point, c.rank())):
        size = (candidate.gpus, candidate.replicas, candidate.weight)
        if not any(all(map(float.__le__, map(float, k), map(float, size))) for k in kept):
            kept.append(size)
            yield candidate


def _devices(candidates: Iterable[Candidate]) -> list[list[Candidate]]:
    """The feasible candidates of each device."""
    devices: dict[tuple[int, str | None], list[Candidate]] = {}
    for candidate in candidates:
        if candidate.feasible:
            device = candidate.device
            devices.setdefault((id(device.offer), device.partition), []).append(candidate)
    return list(devices.values())


def furthest(candidates: Iterable[Candidate]) -> Candidate | None:
    """The infeasible candidate that passed most gates; of those, the least short of the next."""

    def short(candidate: Candidate) -> tuple[float, float, int]:
        gate = candidate.shortfalls[0]
        missing = (gate.requested + gate.used) / gate.capacity if gate.capacity else math.inf
        return (
            -candidate.passed,
            max(missing, 1 / missing) if missing else math.inf,
            candidate.gpus,
        )

    return min((c for c in candidates if not c.feasible), key=short, default=None)
