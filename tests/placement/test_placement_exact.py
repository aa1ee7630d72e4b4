"""Where all guests fit, all are placed: against every way to place them, on small hosts."""

from __future__ import annotations

import functools
import itertools
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from gpuplan.diagnostics import Severity
from gpuplan.placement.api import Placement
from gpuplan.placement.machines import search
from gpuplan.placement.machines.guests import guests
from gpuplan.placement.machines.hypervisors import lower
from gpuplan.placement.machines.state import empty
from gpuplan.plan.model import Workload
from tests.support.placement_hosts import as_inventory, cards, host, numbers, placed
from tests.support.placement_samples import l40s


@dataclass(frozen=True)
class Small:
    """A host in plain numbers: the node and the IOMMU group of each GPU, cores and pages a node; a
    guest takes a page of each of its nodes beside its memory."""

    nodes: tuple[int, ...]
    groups: tuple[int, ...]
    cores: tuple[int, ...]
    pages: tuple[int, ...]


Ask = tuple[int, int, int]  # GPUs, cores and GiB for each of them
Left = tuple[tuple[int, int], ...]  # cores and pages of each node


def fits(hosts: Sequence[Small], asks: Sequence[Ask]) -> bool:
    """Whether some way to give each guest GPUs of one host leaves no node short; by trying all."""

    @functools.cache
    def down(place: int, used: tuple[int, ...], left: tuple[Left, ...]) -> bool:
        return place == len(asks) or any(
            down(
                place + 1,
                (*used[:number], bits, *used[number + 1 :]),
                (*left[:number], after, *left[number + 1 :]),
            )
            for number, small in enumerate(hosts)
            for bits, after in ways(small, used[number], left[number], asks[place])
        )

    start = tuple(tuple(zip(h.cores, h.pages, strict=True)) for h in hosts)
    return down(0, (0,) * len(hosts), start)


def ways(small: Small, used: int, left: Left, ask: Ask) -> Iterator[tuple[int, Left]]:
    """The GPUs in use, as bits, and what is left of each node after each way to serve `ask`."""
    gpus, cores, pages = ask
    everything = range(len(small.nodes))
    for taken in itertools.combinations([g for g in everything if not used >> g & 1], gpus):
        groups = {small.groups[g] for g in taken}
        on = Counter(small.nodes[g] for g in taken)
        after = tuple(
            (c - cores * on[n], p - pages * on[n] - (on[n] > 0)) for n, (c, p) in enumerate(left)
        )
        torn = any(small.groups[g] in groups for g in everything if g not in taken)
        if not torn and min(min(pair) for pair in after) >= 0:
            yield used | sum(1 << g for g in taken), after


def case(seed: int) -> tuple[list[dict[str, Any]], list[Small], list[Ask]]:
    draw = random.Random(seed)
    nodes = draw.randint(1, 3)
    specs, plain = [], []
    for number in range(draw.randint(1, 2)):
        gpus = sorted(draw.randrange(nodes) for _ in range(draw.randint(1, 5)))
        groups = [draw.choice([i, i, i, max(0, i - 1)]) for i in range(len(gpus))]
        cores, memory = draw.choice([6, 10, 14, 18]), draw.choice([64, 128, 160])
        specs.append(
            host(
                gpus,
                nodes=nodes,
                cores=cores,
                memory=memory,
                threads=draw.choice([1, 2]),
                names=[f"hv-{number}"],
                gpu={i: {"iommu_group": 10 + group} for i, group in enumerate(groups)},
            )
        )
        pages = [int(memory - max(8, memory / 16))] * nodes
        free = tuple(kept(gpus, nodes, cores))
        plain.append(Small(tuple(gpus), tuple(groups), free, tuple(pages)))
    left, asks = sum(len(s.nodes) for s in plain), []
    while left > 0 and len(asks) < 5:
        gpus_asked = draw.randint(1, min(3, left))
        left -= gpus_asked
        asks.append((gpus_asked, draw.choice([1, 2, 4, 6, 8]), draw.choice([16, 32, 48, 64])))
        if draw.random() < 0.25:
            break
    return specs, plain, asks


def kept(gpus: Sequence[int], nodes: int, cores: int) -> Iterator[int]:
    """What guests may have of each node: all of one with GPUs, as long as those without have two
    cores for each such node beside their own two."""
    lent = sorted(set(gpus))[: (nodes - len(set(gpus))) * (cores // 2 - 1)]
    yield from (cores if node in lent else cores - 2 for node in range(nodes))


def wanted(asks: Sequence[Ask]) -> list[Workload]:
    return [
        cards(f"w{number}", gpus, cores=cores * gpus, memory_gib=memory * gpus)
        for number, (gpus, cores, memory) in enumerate(asks)
    ]


def complete(placement: Placement) -> bool:
    return all(d.severity is not Severity.ERROR for d in placement.diagnostics)


def test_guests_are_placed_exactly_where_some_placement_exists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And in few looks, since what failed once is not tried again."""
    monkeypatch.setattr(search, "MOST_LOOKS", 400)
    fitting = 0
    for seed in range(300):
        specs, plain, asks = case(seed)
        expected = fits(plain, asks)
        fitting += expected
        placement = placed(*wanted(asks), hosts=specs)
        assert complete(placement) == expected, (seed, plain, asks)
        assert not any("cut short" in d.label for d in placement.diagnostics), seed
    assert 100 < fitting < 250, "the cases tell fitting from not fitting"


def test_a_guest_of_single_gpus_does_not_take_what_only_a_pair_can_use() -> None:
    """GPUs 3 and 4 are one IOMMU group on two nodes. First fit gives the pair the nearer 0 and 1,
    and then two single GPUs have no place."""
    groups = host([0, 0, 1, 1, 2], nodes=3, cores=14, memory=160, gpu={4: {"iommu_group": 13}})
    placement = placed(*wanted([(2, 1, 48), (1, 8, 32), (1, 1, 64), (1, 1, 64)]), hosts=[groups])
    assert complete(placement)
    assert [numbers(m) for m in placement.virtual_machines] == [[3, 4], [2], [0], [1]]


@pytest.mark.parametrize("looks", [0, 3])
def test_a_search_that_was_cut_short_is_not_called_a_proof(
    looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = host([0, 0, 1, 1, 2], nodes=3, cores=14, memory=160, gpu={4: {"iommu_group": 13}})
    asks = [(2, 1, 48), (1, 8, 32), (1, 1, 64), (1, 1, 64)]
    monkeypatch.setattr(search, "MOST_LOOKS", looks)
    placement = placed(*wanted(asks), hosts=[groups])
    labels = {d.label for d in placement.diagnostics if d.severity is Severity.ERROR}
    assert labels == {"found by first fit; the search for a better order was cut short"}


@pytest.mark.parametrize(("gpus", "left"), [(1, 4), (2, 2), (4, 1)])
@pytest.mark.parametrize("resource", ["cores", "memory"])
def test_sums_of_cores_and_memory_of_all_gpus_say_that_there_is_too_little(
    gpus: int, left: int, resource: str
) -> None:
    """Four GPUs of a host; one core or page more for each of `left` guests is too much."""
    (hypervisor,) = lower(as_inventory(host([0, 0, 1, 1])), "inventory.yaml", ()).hypervisors
    there = [empty(hypervisor)]
    nodes = there[0].nodes
    most = {
        "cores": sum(n.usable_cores for n in nodes) // 4,
        "memory": sum(n.usable_pages for n in nodes) // 4,
    }
    for more in (0, 1):
        each = {"cores": 1, "memory": 1} | {resource: most[resource] + more}
        work = cards("a", gpus, cores=each["cores"] * gpus, memory_gib=each["memory"] * gpus)
        asked = [guest for _ in range(left) for guest in guests(work, l40s())]
        assert search._enough(there, asked) == (not more)


@pytest.mark.parametrize(
    ("each", "short"), [((2, 4, 48), "l40s: 2"), ((1, 9, 8), "cores"), ((1, 1, 110), "memory")]
)
def test_a_hopeless_question_is_answered_without_a_search(
    each: Ask, short: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two have room and a third has none, for want of GPUs, cores or memory alone."""
    monkeypatch.setattr(search, "MOST_LOOKS", 0)
    machine = host([0, 0, 1, 1], cores=14, memory=160)
    placement = placed(*wanted([each] * 3), hosts=[machine])
    (problem,) = [d for d in placement.diagnostics if d.severity is Severity.ERROR]
    assert problem.label == ""
    assert problem.message.startswith(f"no room for 1 of 1 guests of 'w2' on hv-1: {short}")


# --- vGPUs ---------------------------------------------------------------------------------------

PER_GPU = {"L40S-12C": 4, "L40S-24C": 2}
Share = tuple[str, str, str]  # type, tenant, isolation


def shares_fit(gpus: int, functions: int, asks: Sequence[Share]) -> bool:
    """Whether vGPUs of one type a GPU, and of one tenant where one wants that, can be dealt out."""

    def alone(users: Sequence[Share]) -> bool:
        return len({t for t, _, _ in users}) == 1 and (
            len({t for _, t, _ in users}) == 1 or all(i != "gpu" for _, _, i in users)
        )

    def down(place: int, dealt: tuple[tuple[Share, ...], ...]) -> bool:
        if place == len(asks):
            return True
        for number in range(gpus):
            users = (*dealt[number], asks[place])
            if len(users) <= min(functions, PER_GPU[asks[place][0]]) and alone(users):
                after = tuple(sorted((*dealt[:number], users, *dealt[number + 1 :])))
                if down(place + 1, after):
                    return True
        return False

    return down(0, ((),) * gpus)


def test_vgpus_are_placed_exactly_where_some_placement_exists() -> None:
    fitting = 0
    for seed in range(150):
        draw = random.Random(seed)
        gpus, functions = draw.randint(1, 3), draw.randint(1, 5)
        listed = {
            n: {"virtual_functions": [f"0000:{16 + n:02x}:01.{f}" for f in range(functions)]}
            for n in range(gpus)
        }
        asks: list[Share] = [
            (
                draw.choice(sorted(PER_GPU)),
                draw.choice(["red", "blue"]),
                draw.choice(["gpu", "shared"]),
            )
            for _ in range(draw.randint(1, 6))
        ]
        spec = host([0] * gpus, nodes=1, gpu=listed)
        placement = placed(
            *(
                cards(f"w{n}", cores=1, memory_gib=8, partition=p, tenant=t, isolation=i)
                for n, (p, t, i) in enumerate(asks)
            ),
            hosts=[spec],
        )
        expected = shares_fit(gpus, functions, asks)
        fitting += expected
        assert complete(placement) == expected, (seed, gpus, functions, asks)
    assert 30 < fitting < 120


def test_a_search_puts_a_guest_on_one_node_where_one_has_room() -> None:
    """Of two nodes of two GPUs; three GPUs are on both."""
    (hypervisor,) = lower(as_inventory(host([0, 0, 1, 1])), "inventory.yaml", ()).hypervisors
    for gpus, nodes in ((1, 1), (2, 1), (3, 2)):
        (guest,) = guests(cards("a", gpus), l40s())
        places = search.assign([empty(hypervisor)], [guest]).places
        assert places is not None
        assert [len(choice.nodes) for _, choice in places] == [nodes]
