"""NVLink between the GPUs of a host: which of them bridges or a mesh join, from its links. A
workload on several takes those of which most pairs are joined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations, product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuplan.inventory.v1 import HostSpec, LinkSpec


MOST_GPUS = 16  # beyond it there are too many sets to list

GpuSet = tuple[int, ...]
Joined = Mapping[int, frozenset[int]]


def joined(spec: HostSpec) -> dict[int, frozenset[int]]:
    """Of each GPU that NVLink joins to another one, by its place in the list: those that it is
    joined to, and itself. Those of an island that is joined all in all have the same."""
    neighbours: dict[int, set[int]] = {}
    for pair in nvlinks(spec):
        for gpu in pair:
            neighbours.setdefault(gpu, set()).update(pair)
    return {gpu: frozenset(others) for gpu, others in neighbours.items() if len(others) > 1}


def nvlinks(spec: HostSpec) -> dict[tuple[int, int], int]:
    """How many links NVLink has between two GPUs, by their places in the list, lower first."""
    stated = [link for link in spec.links if link.link.startswith("NV")]
    return {
        (min(pair), max(pair)): int(link.link.removeprefix("NV"))
        for link in stated
        for pair in _pairs(link)
    }


def _pairs(link: LinkSpec) -> list[tuple[int, int]]:
    both = product(link.between, link.to) if link.to else combinations(link.between, 2)
    gpus = [(a, b) for a, b in both if a.startswith("gpu") and b.startswith("gpu")]
    return [(int(a[3:]), int(b[3:])) for a, b in gpus]


def joined_pairs(gpus: Sequence[int], links: Joined) -> int:
    """How many pairs of `gpus` NVLink joins."""
    return sum(b in links.get(a, ()) for a, b in combinations(gpus, 2))


def partly_joined(gpus: int, links: Joined) -> bool:
    """Whether NVLink joins some of so many GPUs, and not every two of them."""
    return bool(links) and any(len(links.get(gpu, ())) < gpus for gpu in range(gpus))


def best_sets(
    links: Joined, nodes: Sequence[GpuSet], together: Sequence[GpuSet]
) -> tuple[GpuSet, ...]:
    """Of each number of GPUs the sets with the most joined pairs, of those the ones on the fewest
    NUMA nodes; none where there are too many to list. `nodes` are the GPUs of each node,
    `together` those that only go together."""
    if sum(map(len, nodes)) > MOST_GPUS:
        return ()
    return _listed(tuple(sorted(links.items())), tuple(nodes), tuple(together))


@lru_cache(maxsize=64)
def _listed(
    links: tuple[tuple[int, frozenset[int]], ...],
    nodes: tuple[GpuSet, ...],
    together: tuple[GpuSet, ...],
) -> tuple[GpuSet, ...]:
    return tuple(_best(dict(links), nodes, together))


def _best(links: Joined, nodes: Sequence[GpuSet], together: Sequence[GpuSet]) -> Iterator[GpuSet]:
    gpus = sorted(gpu for node in nodes for gpu in node)
    for number in range(2, len(gpus) + 1):
        best, chosen = (0, 0), list[GpuSet]()
        for candidate in combinations(gpus, number):
            if not all(sum(g in candidate for g in group) in {0, len(group)} for group in together):
                continue
            used = sum(1 for node in nodes if any(g in candidate for g in node))
            worth = (joined_pairs(candidate, links), -used)
            if worth > best or not chosen:
                best, chosen = worth, []
            chosen += [candidate] if worth == best else []
        yield from chosen
