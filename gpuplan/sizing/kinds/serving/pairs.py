"""Pools of two kinds of replicas, prefill and decode, and the nodes that they take."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gpuplan.frozen import frozen

ROUNDING = 1e-9


@frozen
class PoolReplica:
    """One replica of a pool: its requests per second with the wanted confidence, and the likely
    time that its objective is about. `sequences` of a prefill replica are 1; `load` is its busy
    part."""

    gpus: int
    rate: float
    seconds: float
    sequences: int = 1
    load: float = 1.0

    def serving(self, rate: float) -> int:
        """Replicas that serve `rate` requests per second."""
        return max(1, math.ceil(rate / self.rate - ROUNDING))


@frozen
class Pair:
    """So many replicas of both."""

    prefill: PoolReplica
    decode: PoolReplica
    prefills: int
    decodes: int

    @property
    def served(self) -> float:
        """Requests per second, with the wanted confidence."""
        return min(self.prefills * self.prefill.rate, self.decodes * self.decode.rate)

    @property
    def gpus(self) -> int:
        return self.prefills * self.prefill.gpus + self.decodes * self.decode.gpus

    def times(self, number: int) -> Pair:
        return Pair(self.prefill, self.decode, self.prefills * number, self.decodes * number)


def pairs(prefill: PoolReplica, decode: PoolReplica, room: int, nodes: int = 1) -> Iterator[Pair]:
    """Those that `nodes` nodes of `room` GPUs hold, each replica inside one; for so many that
    decode no more that prefill than those need."""
    for decodes in range(1, nodes * (room // decode.gpus) + 1):
        left = nodes * room - decodes * decode.gpus
        most = min(nodes * (room // prefill.gpus), left // prefill.gpus)
        if most:
            wanted = prefill.serving(decodes * decode.rate)
            yield Pair(prefill, decode, min(most, wanted), decodes)


def in_each(
    prefill: PoolReplica, decode: PoolReplica, room: int, rate: float
) -> tuple[int, Pair] | None:
    """The fewest nodes of `room` GPUs, each with replicas of both, that serve `rate`, and all of
    the replicas."""
    best = max((p.served for p in pairs(prefill, decode, room)), default=0.0)
    if not best:
        return None
    nodes = math.ceil(rate / best - ROUNDING)
    return nodes, _serving(prefill, decode, rate / nodes).times(nodes)


def anywhere(
    prefill: PoolReplica, decode: PoolReplica, room: int, rate: float
) -> tuple[int, Pair] | None:
    """The fewest nodes of `room` GPUs that hold replicas for `rate`, each inside one, and all of
    the replicas."""
    pair = _serving(prefill, decode, rate)
    sizes = [(prefill.gpus, pair.prefills), (decode.gpus, pair.decodes)]
    (small, few), (large, many) = sorted(sizes)
    if large > room:
        return None
    beside, each = room // large, room // small
    nodes = -(-many // beside)
    last = many - (nodes - 1) * beside
    held = (nodes - 1) * ((room - beside * large) // small) + (room - last * large) // small
    return nodes + max(0, -(-(few - held) // each)), pair


def _serving(prefill: PoolReplica, decode: PoolReplica, rate: float) -> Pair:
    return Pair(prefill, decode, prefill.serving(rate), decode.serving(rate))
