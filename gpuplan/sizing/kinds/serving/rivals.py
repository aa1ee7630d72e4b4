"""Kinds of layouts of a served model: the best of each that lost, and why."""

from __future__ import annotations

from collections.abc import Iterable

from gpuplan.plan.model import Parallelism, ServedLayout
from gpuplan.sizing.candidates.choose import Candidate, furthest, least

NAMES = ("tensor", "pipeline", "data", "expert")


def kind(parallelism: Parallelism, nodes: int) -> str:
    """`tensor parallel in a node`, `tensor, pipeline parallel over nodes`."""
    sizes = {name: getattr(parallelism, f"{name}_parallel_size") for name in NAMES}
    names = ", ".join(name for name, size in sizes.items() if size > 1)
    over = "over nodes" if nodes > 1 else "in a node"
    return f"{names} parallel {over}" if names else "one GPU"


def rivals(candidates: Iterable[Candidate], winner: Candidate) -> tuple[ServedLayout, ...]:
    """On the winner's nodes, of each other kind the cheapest that fits, else the one that got
    furthest; nothing where all lie in a node."""
    groups: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        if candidate.device.offer is winner.device.offer and candidate.parallelism is not None:
            groups.setdefault(kind(candidate.parallelism, _nodes(candidate)), []).append(candidate)
    if not any(_nodes(c) > 1 for group in groups.values() for c in group):
        return ()
    assert winner.parallelism is not None
    groups.pop(kind(winner.parallelism, _nodes(winner)), None)
    layouts = [_layout(name, group, winner) for name, group in groups.items()]
    return tuple(sorted(layouts, key=lambda x: (x.gate not in ("cost", "room"), x.kind)))


def _nodes(candidate: Candidate) -> int:
    """Of one replica."""
    return -(-candidate.gpus // candidate.device.offer.gpus_per_node)


def _layout(name: str, group: list[Candidate], winner: Candidate) -> ServedLayout:
    best = least([c for c in group if c.feasible]) or furthest(group)
    assert best is not None and best.parallelism is not None  # noqa: PT018 - of a group of some
    gate = best.shortfalls[0].resource if best.shortfalls else "cost"
    if best.feasible and best.whole_gpus == winner.whole_gpus:
        gate = "room"
    return ServedLayout(
        kind=name,
        parallelism=best.parallelism,
        nodes_per_replica=_nodes(best),
        replicas=best.replicas,
        gpu_count=best.gpu_count,
        usd_per_hour=best.whole_usd_per_hour if best.feasible else None,
        gate=gate,
        shortfalls=best.shortfalls[:1],
    )
