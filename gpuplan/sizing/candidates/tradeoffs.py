"""The Pareto set of a search: layouts that no other beats in cost, latency and headroom."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from gpuplan.plan.model import Tradeoff
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.evidence.formula import canonical

T = TypeVar("T")
Point = tuple[float, ...]


def front(items: Iterable[tuple[Point, T]]) -> list[tuple[Point, T]]:
    """Of points of which less is better everywhere, those that none is as good as everywhere; of
    equal ones the first. In their order."""
    kept: list[tuple[Point, T]] = []
    for point, item in sorted(items, key=lambda pair: pair[0]):
        if not any(_covers(other, point) for other, _ in kept):
            kept.append((point, item))
    return kept


def _covers(one: Point, other: Point) -> bool:
    return all(a <= b for a, b in zip(one, other, strict=True))


def tradeoffs(candidates: Iterable[Candidate], winner: Candidate) -> tuple[Tradeoff, ...]:
    """The cheapest first, each as if its nodes were its alone; the chosen one is always there.
    Where some have a price, those without are left out."""
    fitting = [c for c in candidates if c.feasible]
    priced = [c for c in fitting if c.whole_usd_per_hour is not None]
    points = [(_point(c), c) for c in priced or fitting]
    frontier = front(points)
    if not any(_same(c, winner) for _, c in frontier):
        frontier = sorted([*frontier, *_own(points, winner)], key=lambda pair: pair[0])
    return tuple(_tradeoff(point, c, winner) for point, c in frontier)


def _own(
    points: Sequence[tuple[Point, Candidate]], winner: Candidate
) -> list[tuple[Point, Candidate]]:
    return [(point, c) for point, c in points if _same(c, winner)]


def _same(one: Candidate, other: Candidate) -> bool:
    """A candidate, with or without its part of a pool."""
    return one.detail is other.detail and one.device is other.device


def _point(candidate: Candidate) -> Point:
    """Cost of whole nodes (or GPUs), minus headroom, latency."""
    cost = candidate.whole_usd_per_hour
    paid = float(candidate.paid_gpus if cost is None else cost)
    return paid, *candidate.merit.point


def _tradeoff(point: Point, candidate: Candidate, winner: Candidate) -> Tradeoff:
    return Tradeoff(
        gpu=candidate.device.gpu.identifier,
        node_type=candidate.device.offer.shape_name,
        partition=candidate.device.partition,
        gpu_count=candidate.gpu_count,
        tensor_parallel_size=candidate.tensor_parallel_size,
        replicas=candidate.replicas,
        usd_per_hour=candidate.whole_usd_per_hour,
        request_latency=canonical(point[2]),
        headroom=canonical(-point[1]),
        chosen=_same(candidate, winner),
    )
