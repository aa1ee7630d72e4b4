"""Candidates, the one that is chosen, and what rejected the others.

The cheapest feasible candidate wins; priced ones before unpriced, then fewer GPUs, then the name.
Each other GPU type becomes one `Alternative`: its best candidate, or the one that got furthest. An
override of the GPU type beats a lower cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from gpuplan.plan.model import Alternative, Flip, Shortfall
from gpuplan.sizing.api import GpuOffer
from gpuplan.sizing.devices import Device

MOST_REPLICAS = 10_000.0
MICRO = Decimal("0.000001")
NEARLY = 1.05


@dataclass(frozen=True, slots=True)
class Candidate:
    """A layout that was tried. `hours` weighs the hourly cost where a run ends (else 1). The first
    of the `shortfalls` is its gate, `passed` counts the gates before it. `detail` belongs to the
    kind of workload that made it."""

    device: Device
    gpus: int
    replicas: int
    isolation: str
    hours: float = 1.0
    shortfalls: tuple[Shortfall, ...] = ()
    passed: int = 0
    flip: Flip | None = None
    detail: object = field(default=None, compare=False)

    @property
    def feasible(self) -> bool:
        return not self.shortfalls

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
    def paid_gpus(self) -> Decimal:
        """GPUs that are paid for: whole nodes where they are not shared, and only the share of a
        GPU whose other partitions are free for others."""
        if self.isolation == "node":
            return Decimal(self.nodes * self.device.offer.gpus_per_node)
        if self.device.partition is not None:
            return Decimal(self.replicas) / self.device.per_gpu
        return Decimal(self.gpu_count)

    @property
    def usd_per_hour(self) -> Decimal | None:
        price = self.device.offer.usd_per_gpu_hour
        if price is None:
            return None
        return (Decimal(repr(price.value)) * self.paid_gpus).quantize(MICRO)

    @property
    def rank(self) -> tuple[object, ...]:
        cost = self.usd_per_hour
        paid = float(self.paid_gpus) if cost is None else float(cost)
        key = (self.device.gpu.identifier, self.device.pool, self.gpus)
        return (cost is None, paid * self.hours, self.gpu_count, *key)


def nodes_gate(candidate: Candidate) -> tuple[tuple[Shortfall, ...], Flip | None]:
    """The gate of a site with too few nodes, and of more replicas than are planned one by one."""
    if candidate.replicas > MOST_REPLICAS:
        many = float(candidate.replicas)
        gate = Shortfall(
            resource="replicas", requested=many, used=0.0, capacity=MOST_REPLICAS, unit="1"
        )
        return (gate,), None
    count = candidate.device.offer.node_count
    if count is None or candidate.nodes <= count:
        return (), None
    needed = float(candidate.nodes)
    gate = Shortfall(
        resource="nodes", requested=needed, used=0.0, capacity=float(count), unit="nodes"
    )
    flip = Flip(quantity="node.count", now=float(count), needed=needed, unit="nodes")
    return (gate,), flip


def best(candidates: Iterable[Candidate]) -> Candidate | None:
    """The cheapest feasible candidate; of runs that cost nearly the same, the one on least GPUs."""
    feasible = [c for c in candidates if c.feasible]
    cheapest = min(feasible, key=lambda c: c.rank, default=None)
    if cheapest is None or cheapest.hours == 1.0:
        return cheapest
    near = [c for c in feasible if _run_cost(c) <= NEARLY * _run_cost(cheapest)]
    return min(near, key=lambda c: (c.gpu_count, c.rank))


def _run_cost(candidate: Candidate) -> float:
    cost = candidate.usd_per_hour
    return math.inf if cost is None else float(cost) * candidate.hours


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


def choose(
    groups: Sequence[tuple[GpuOffer, Sequence[Candidate]]],
    *,
    forced: str | None,
    tensor_parallel: bool = False,
) -> tuple[Candidate | None, tuple[Alternative, ...]]:
    """The winner over all offers, and one alternative for each other offer, nearest first.
    `forced` is the GPU type that an override asks for; `tensor_parallel`: the GPUs of a replica
    split its layers."""
    wanted = (group for o, group in groups if forced in (None, o.gpu.identifier))
    winner = best(c for group in wanted for c in group)
    others: list[tuple[tuple[object, ...], Alternative]] = []
    for offer, group in groups:
        if winner is not None and offer is winner.device.offer:
            continue
        found = best(group) or furthest(group)
        if found is not None:
            key = (not found.feasible, *(found.rank if found.feasible else (-found.passed,)))
            size = found.gpus if tensor_parallel else 1
            gate = "cost" if forced is None else "override"
            others.append((key, _alternative(found, winner, gate, size)))
    ordered = sorted(others, key=lambda item: (item[0][0], item[0][1:], item[1].gpu))
    return winner, tuple(alternative for _, alternative in ordered)


def _alternative(
    candidate: Candidate, winner: Candidate | None, gate: str, size: int
) -> Alternative:
    """`gate` rejected a feasible, priced candidate; its first shortfall or missing price others."""
    flip = candidate.flip
    if not candidate.feasible:
        gate = candidate.shortfalls[0].resource
    elif candidate.usd_per_hour is None:
        gate = "price unknown"
    elif winner is not None:
        flip = _price_flip(candidate, winner)
    return Alternative(
        gpu=candidate.device.gpu.identifier,
        gpu_count=candidate.gpu_count,
        tensor_parallel_size=size,
        replicas=candidate.replicas,
        usd_per_hour=candidate.usd_per_hour if candidate.feasible else None,
        gate=gate,
        shortfalls=candidate.shortfalls,
        flip=flip,
    )


def _price_flip(candidate: Candidate, winner: Candidate) -> Flip | None:
    """The price of one GPU at which the candidate would cost what the winner does."""
    price, cost = candidate.device.offer.usd_per_gpu_hour, winner.usd_per_hour
    if price is None or cost is None:
        return None
    needed = float(cost) * winner.hours / (float(candidate.paid_gpus) * candidate.hours)
    return Flip(
        quantity="usd_per_gpu_hour",
        now=price.value,
        needed=float(f"{needed:.4g}"),
        unit="USD/h",
    )
