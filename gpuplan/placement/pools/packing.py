"""How many nodes of which offer a pool takes: what the choice of candidates and the pools share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from gpuplan.placement.pools.bins import Ask, Node, beyond, capacity, filled, items
from gpuplan.plan.model import Shortfall, record
from gpuplan.sharing.partitions import profile_of, vgpu_of
from gpuplan.sizing.hardware.offers import GpuOffer

Packed = tuple[tuple[Node, ...], dict[str, tuple[Shortfall, ...]]]


@record
class Need:
    """Nodes of one offer for a pool's workloads, and how each is `filled`; which workloads no node
    holds (by name), and the nodes that are lacking. `gpus` counts what was asked, a partition as
    its share of a GPU."""

    offer: GpuOffer
    place: int
    nodes: int
    filled: tuple[Node, ...]
    gpus: Decimal
    refused: dict[str, tuple[Shortfall, ...]]
    lacking: tuple[Shortfall, ...]

    @property
    def short(self) -> int:
        """How many nodes are lacking."""
        return sum(int(s.requested + s.used - s.capacity) for s in self.lacking)


def pool_name(pool: str, partition: str | None, isolation: str, tenant: str) -> str:
    """The pool, with its tenant where it shares no node; a scheduler cannot keep tenants apart on
    instances of one GPU."""
    parts = [_slug(pool)]
    if isolation == "node" or (isolation == "gpu" and partition is not None):
        parts.append(tenant)
    name = parts[0]
    for part in parts[1:]:
        if not name.endswith(f"-{part}"):
            name = f"{name}-{part}"
    return name


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-")


class Packing:
    """Packs pools on `offers`, and remembers what it packed."""

    def __init__(self, offers: Sequence[GpuOffer]) -> None:
        self.offers = tuple(offers)
        self._packed: dict[tuple[tuple[Ask, ...], int], Packed] = {}

    def pools(self, asks: Iterable[Ask]) -> Iterator[tuple[tuple[Ask, ...], Need | None]]:
        """Pools in the order of the asks, each on the offer that suits it best; None where no node
        has its GPU."""
        taken: Counter[int] = Counter()
        pools: dict[str, list[Ask]] = {}
        for ask in asks:
            pools.setdefault(ask.pool, []).append(ask)
        for members in pools.values():
            together = tuple(members)
            need = self._best(together, taken)
            if need is not None:
                taken[need.place] += need.nodes
            yield together, need

    def _best(self, asks: tuple[Ask, ...], taken: Counter[int]) -> Need | None:
        needs = [
            self._need(asks, place, taken[place])
            for place, offer in enumerate(self.offers)
            if offer.gpu.identifier == asks[0].gpu
        ]
        return min(needs, key=_rank, default=None)

    def _need(self, asks: tuple[Ask, ...], place: int, taken: int) -> Need:
        offer = self.offers[place]
        key = (asks, place)
        if key not in self._packed:
            self._packed[key] = _pack(asks, offer)
        held, refused = self._packed[key]
        nodes = len(held)
        lacking: tuple[Shortfall, ...] = ()
        if offer.node_count is not None and taken + nodes > offer.node_count:
            lacking = (
                Shortfall(
                    resource=f"nodes with {offer.gpu.identifier}",
                    requested=nodes,
                    used=taken,
                    capacity=offer.node_count,
                    unit="1",
                ),
            )
        gpus = sum((asked_gpus(a, offer) for a in asks), Decimal(0))
        return Need(
            offer=offer,
            place=place,
            nodes=nodes,
            filled=held,
            gpus=gpus,
            refused=refused,
            lacking=lacking,
        )


def per_gpu(partition: str | None, offer: GpuOffer) -> int:
    """How many of `partition` fit one GPU; 1 for a whole GPU."""
    shared = profile_of(partition, offer.gpu) or vgpu_of(partition, offer.gpu)
    return shared.maximum if shared else 1


def asked_gpus(ask: Ask, offer: GpuOffer) -> Decimal:
    return Decimal(ask.replicas * ask.nodes * ask.gpus) / per_gpu(ask.partition, offer)


def _pack(asks: tuple[Ask, ...], offer: GpuOffer) -> Packed:
    profiles = {p.name: p for p in offer.gpu.mig_profiles}
    vgpu = vgpu_of(asks[0].partition, offer.gpu)  # then the pool has no other
    room = capacity(offer, vgpu.maximum if vgpu else 1)
    gpu = vgpu.name if vgpu else offer.gpu.identifier
    wanted = items(asks, profiles)
    refused = {i.workload: short for i in wanted if (short := beyond(i, room, gpu))}
    held = filled([i for i in wanted if i.workload not in refused], room)
    return tuple(held), refused


def _rank(need: Need) -> tuple[int, bool, float, int]:
    """An offer that holds everything, the cheapest of those, the one with the fewest nodes."""
    price = need.offer.usd_per_gpu_hour
    cost = (price.value if price else 0.0) * need.offer.gpus_per_node * need.nodes
    return len(need.refused) + len(need.lacking), price is None, cost, need.nodes
