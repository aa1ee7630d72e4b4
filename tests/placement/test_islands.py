"""Which GPUs NVLink joins, and the best sets of each number, against all sets there are."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from gpuplan.inventory.v1 import HostSpec, LinkSpec
from gpuplan.sharing.islands import GpuSet, Joined, best_sets, joined, joined_pairs, partly_joined


def host(*links: dict[str, object]) -> HostSpec:
    specs = [LinkSpec.model_validate({"between": [], "link": "NV4"} | link) for link in links]
    return HostSpec.model_construct(links=specs)


def best(
    links: Joined, nodes: tuple[GpuSet, ...], together: tuple[GpuSet, ...], number: int
) -> set[GpuSet]:
    gpus = sorted(g for node in nodes for g in node)
    whole = [
        chosen
        for chosen in combinations(gpus, number)
        if all(not set(g) & set(chosen) or set(g) <= set(chosen) for g in together)
    ]

    def worth(chosen: GpuSet) -> tuple[int, int]:
        pairs = sum(b in links.get(a, frozenset()) for a, b in combinations(chosen, 2))
        return pairs, -sum(bool(set(node) & set(chosen)) for node in nodes)

    top = max(map(worth, whole), default=None)
    return {chosen for chosen in whole if worth(chosen) == top}


@pytest.mark.parametrize("seed", range(20))
def test_sets_have_the_most_joined_pairs_on_the_fewest_nodes(seed: int) -> None:
    draw = random.Random(seed)
    count = draw.choice((2, 4, 5, 6))
    half = draw.choice((count, count // 2))
    nodes = tuple(n for n in (tuple(range(half)), tuple(range(half, count))) if n)
    pairs = [p for p in combinations(range(count), 2) if draw.random() < 0.3]
    links = joined(host(*({"between": [f"gpu{a}", f"gpu{b}"]} for a, b in pairs)))
    for a, b in combinations(range(count), 2):
        assert (b in links.get(a, frozenset())) == ((a, b) in pairs)
    assert joined_pairs(range(count), links) == len(pairs)
    assert partly_joined(count, links) == (0 < len(pairs) < count * (count - 1) // 2)
    together = draw.choice(((), ((0, 1),), ((0, count - 1),)))
    expected = [best(links, nodes, together, number) for number in range(2, count + 1)]
    listed = best_sets(links, nodes, together)
    assert len(listed) == len(set(listed))
    assert set(listed) == set().union(*expected)
    assert [len(s) for s in listed] == sorted(len(s) for s in listed), "small ones first"


def test_sixteen_gpus_are_listed_and_more_are_not() -> None:
    links = joined(host({"between": ["gpu0", "gpu1"]}))
    assert best_sets(links, (tuple(range(17)),), ()) == ()
    assert best_sets(links, (tuple(range(8)), (8, 9)), ())[0] == (0, 1)


def test_only_nvlink_between_gpus_joins() -> None:
    spec = host(
        {"between": ["gpu0", "gpu1"], "link": "PIX"},
        {"between": ["gpu2", "nic0"]},
        {"between": ["gpu3"], "to": ["gpu4", "gpu5"]},
    )
    both = {3: frozenset({3, 4, 5}), 4: frozenset({3, 4}), 5: frozenset({3, 5})}
    assert joined(spec) == both
    assert joined(host()) == {}
