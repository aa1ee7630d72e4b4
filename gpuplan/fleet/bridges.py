"""NVLink bridges: the sets of GPUs that a workload on several takes, on hosts where NVLink joins
some GPUs and not all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations

from gpuplan.inventory.v1 import HostSpec
from gpuplan.sharing.islands import pairs

MOST_GPUS = 16  # beyond it there are too many sets to list

Set = tuple[int, ...]
Pair = frozenset[int]


def bridged(
    spec: HostSpec, nodes: Sequence[Set], together: Sequence[Set]
) -> tuple[tuple[Set, ...], bool]:
    """Of each number of GPUs the sets with the most joined pairs, of those the ones on the fewest
    NUMA nodes; and whether NVLink joins some GPUs and not all. `nodes` are the GPUs of each node,
    `together` those that only go together."""
    gpus = tuple(sorted(g for node in nodes for g in node))
    joined = {
        frozenset(pair)
        for link in spec.links
        if link.link.startswith("NV")
        for pair in pairs(link)
        if pair[0] != pair[1]
    }
    if not joined or len(joined) == len(gpus) * (len(gpus) - 1) // 2:
        return (), False
    if len(gpus) > MOST_GPUS:
        return (), True
    return _sets(gpus, frozenset(joined), tuple(nodes), tuple(together)), True


@lru_cache(maxsize=64)
def _sets(
    gpus: Set, joined: frozenset[Pair], nodes: tuple[Set, ...], together: tuple[Set, ...]
) -> tuple[Set, ...]:
    return tuple(_best(gpus, joined, nodes, together))


def _best(
    gpus: Set, joined: frozenset[Pair], nodes: Sequence[Set], together: Sequence[Set]
) -> Iterator[Set]:
    for number in range(2, len(gpus) + 1):
        best, chosen = (0, 0), list[Set]()
        for wanted in combinations(gpus, number):
            if not _closed(wanted, together):
                continue
            worth = (_pairs(wanted, joined), -_nodes(wanted, nodes))
            if worth > best or not chosen:
                best, chosen = worth, []
            chosen += [wanted] if worth == best else []
        yield from chosen


def _closed(wanted: Set, together: Iterable[Set]) -> bool:
    return all(sum(g in wanted for g in group) in {0, len(group)} for group in together)


def _pairs(wanted: Set, joined: frozenset[Pair]) -> int:
    return sum(frozenset(pair) in joined for pair in combinations(wanted, 2))


def _nodes(wanted: Set, nodes: Sequence[Set]) -> int:
    return sum(1 for node in nodes if any(g in node for g in wanted))
