"""How many nodes of which offer a pool takes: what the choice of candidates and the pools share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from gpuplan.catalog.model import VgpuType
from gpuplan.placement.pools.bins import Ask, Node, beyond, capacity, filled, items
from gpuplan.placement.pools.stages import Stage, both, stages
from gpuplan.plan.isolation import Isolation, own_pool
from gpuplan.plan.model import Shortfall, record
from gpuplan.sharing.partitions import partition, per_gpu
from gpuplan.sizing.hardware.offers import GpuOffer

Packed = tuple[tuple[Node, ...], dict[str, tuple[Shortfall, ...]]]


@record
class Need:
    """Nodes of one offer for a pool's workloads, and how each is `filled`; which workloads no node
    holds (by name), and the nodes that are lacking. `gpus` counts what was asked, a partition as
    its share of a GPU; `vgpu` is what all GPUs are shared as, `stages` say how long nodes are
    needed. `spares` of the nodes stand by, and are filled with nothing."""

    offer: GpuOffer
    place: int
    nodes: int
    vgpu: VgpuType | None
    filled: tuple[Node, ...]
    gpus: Decimal
    refused: dict[str, tuple[Shortfall, ...]]
    lacking: tuple[Shortfall, ...]
    stages: tuple[Stage, ...] = ()
    spares: int = 0


def pool_name(pool: str, isolation: Isolation, tenant: str, *, partitioned: bool) -> str:
    """The pool, with its tenant where the tenant has pools of its own."""
    parts = [_slug(pool)]
    if own_pool(isolation, partitioned=partitioned):
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
            and (offer.shape is None or asks[0].kind in _kinds(offer, asks[0]))
        ]
        return min(needs, key=_rank, default=None)

    def _need(self, asks: tuple[Ask, ...], place: int, taken: int) -> Need:
        offer = self.offers[place]
        held, refused = self._held(asks, place)
        spares = _spares(asks)
        nodes = len(held) + spares
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
            vgpu=pool_vgpu(asks, offer),
            filled=held,
            gpus=gpus,
            refused=refused,
            lacking=lacking,
            stages=self._stages(asks, place, nodes),
            spares=spares,
        )

    def _nodes(self, asks: tuple[Ask, ...], place: int) -> int:
        return len(self._held(asks, place)[0]) + _spares(asks)

    def _held(self, asks: tuple[Ask, ...], place: int) -> Packed:
        key = (asks, place)
        if key not in self._packed:
            self._packed[key] = _pack(asks, self.offers[place])
        return self._packed[key]

    def _stages(self, asks: tuple[Ask, ...], place: int, total: int) -> tuple[Stage, ...]:
        recurring = tuple(a for a in asks if a.hours is None or a.recurs)
        if not any(a.recurs for a in recurring):
            return self._of_kind(asks, place, total)
        ending = tuple(a for a in asks if not a.recurs)
        first, again = (
            self._of_kind(kind, place, self._nodes(kind, place)) if kind else ()
            for kind in (ending, recurring)
        )
        return both(first, again, total)

    def _of_kind(self, asks: tuple[Ask, ...], place: int, total: int) -> tuple[Stage, ...]:
        def nodes(until: Decimal | None) -> int:
            longer = [a for a in asks if a.hours is None or (until and a.hours >= until)]
            return self._nodes(tuple(longer), place)

        return stages((a.hours for a in asks), nodes, total)


def _spares(asks: Iterable[Ask]) -> int:
    return sum(a.spares for a in asks)


def asked_gpus(ask: Ask, offer: GpuOffer) -> Decimal:
    part = partition(ask.partition, offer.gpu)
    return Decimal(ask.replicas * ask.nodes * ask.gpus) / per_gpu(part)


def _pack(asks: tuple[Ask, ...], offer: GpuOffer) -> Packed:
    vgpu = pool_vgpu(asks, offer)
    room = capacity(offer, per_gpu(vgpu))
    gpu = vgpu.name if vgpu else offer.gpu.identifier
    wanted = items(asks, offer.gpu)
    refused = {i.workload: short for i in wanted if (short := beyond(i, room, gpu))}
    held = filled([i for i in wanted if i.workload not in refused], room)
    return tuple(held), refused


def pool_vgpu(asks: Sequence[Ask], offer: GpuOffer) -> VgpuType | None:
    """The vGPU type that all GPUs of the pool are shared as: such a pool has no other asks."""
    part = partition(asks[0].partition, offer.gpu)
    return part if isinstance(part, VgpuType) else None


def _rank(need: Need) -> tuple[int, bool, float, int]:
    """An offer that holds everything, the cheapest of those, the one with the fewest nodes."""
    price = need.offer.usd_per_gpu_hour
    cost = (price.value if price else 0.0) * need.offer.gpus_per_node * need.nodes
    return len(need.refused) + len(need.lacking), price is None, cost, need.nodes


def _kinds(offer: GpuOffer, ask: Ask) -> tuple[str, str]:
    """What `Device.pool` is on an offer: its own pool, or that of its vGPUs of the asked type."""
    return offer.pool, f"{offer.pool}-{ask.partition}".lower()
