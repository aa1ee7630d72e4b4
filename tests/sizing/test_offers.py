"""What nodes give: each shape its own candidates, each guest its part of the scarcest NUMA node."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal

import pytest

from gpuplan.catalog.load import load_catalog
from gpuplan.catalog.model import CatalogSource, Citation, Price
from gpuplan.catalog.shapes import Shape, Wanted, shapes
from gpuplan.inventory.v1 import HostSpec
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.decide.tried import tried
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.hardware.devices import fabric_rate
from gpuplan.sizing.hardware.housekeeping import kept_cores
from gpuplan.sizing.hardware.locality import Locality, of_shape
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.sizing.hardware.sites import joined
from gpuplan.units import GIB
from tests.support.sizing_cases import (
    CHAT_8B,
    CHAT_70B,
    FULL_8B,
    IB,
    IMAGE_BATCH,
    NOTEBOOKS,
    offer,
    site,
    sized,
    wanted,
)

GPU = "h100-sxm-80gb"
SOURCE = CatalogSource(key="test", title="test", where="", date="2026-11-21", published=True)


def shaped(gpus: int, capacity: str = "on-demand", **changes: object) -> GpuOffer:
    """A bought node of so many GPUs."""
    price = Price(
        gpu=GPU,
        usd_per_hour=Decimal(4),
        provider="azure",
        region="westus3",
        date="2026-11-21",
        source=Citation("prices.yaml", f"node-{gpus}", SOURCE),
        dated=True,
        instance=f"node-{gpus}",
        capacity=capacity,
    )
    shape = Shape(
        name=f"node-{gpus}",
        provider="azure",
        gpu=GPU,
        gpus=gpus,
        cpu_cores=12 * gpus,
        memory_bytes=220 * GIB * gpus,
        price=price,
        source=Citation("shapes.yaml", f"node-{gpus}", SOURCE),
    )
    return offer(GPU, gpus_per_node=gpus, shape=shape, **changes)


def key(candidate: Candidate) -> tuple[int, int, bool]:
    return candidate.gpus, candidate.replicas, candidate.feasible


@pytest.mark.parametrize("text", [CHAT_8B, CHAT_70B, FULL_8B])
def test_each_shape_has_the_layouts_that_it_would_have_alone(text: str) -> None:
    """Though only the largest is searched. What a whole node cannot do is said of the largest."""
    demand, shapes = wanted(text), [shaped(n) for n in (2, 8, 1, 4)]
    groups = tried(demand, Site(target="kubernetes", gpus=tuple(shapes)))
    assert [offer for offer, _ in groups] == shapes
    for shape, group in groups:
        assert group
        assert {id(c.device.offer) for c in group} == {id(shape)}
        ((_, alone),) = tried(demand, Site(target="kubernetes", gpus=(shape,)))
        inside = {key(c) for c in alone if c.feasible and c.gpus <= shape.gpus_per_node}
        assert {key(c) for c in group if c.feasible and c.gpus <= shape.gpus_per_node} == inside
        assert all(c.gpus <= shape.gpus_per_node for c in group if shape.gpus_per_node < 8)


def test_only_work_that_may_be_stopped_takes_nodes_that_may_be_taken_back() -> None:
    """Half of the two hours between two checkpoints is done again, and 30.5 min go by until it goes
    on, at 8 x $4 an hour."""
    where = Site(target="kubernetes", gpus=(shaped(8, "spot"), shaped(8)))
    text = FULL_8B + "    checkpoint: {interval: 2 h}\n    overrides: {gpu_count: 8}\n"
    kept = sized(text, where)
    assert kept.workload.node_pool == f"{GPU}-x8"
    assert [d.message for d in kept.diagnostics] == [NOT_PRICED]
    spare = sized(text + "    preemptible: true\n", replace(where, gpus=where.gpus[:1]))
    assert spare.workload.node_pool == f"{GPU}-x8-spot"
    (said, unpriced) = (d.message for d in spare.diagnostics)
    assert unpriced == NOT_PRICED
    assert said.startswith("'work' runs on spare capacity (azure, westus3, spot): each time")
    assert "costs 60 min of work and 30.5 min of restart, $48.28 on average, and the time" in said
    values = {e.quantity: e.value for e in spare.evidence}
    assert values["work.usd_per_interruption"] == pytest.approx(32 * (3600 + 1831.24) / 3600)
    served = sized(CHAT_8B + "    preemptible: true\n", replace(where, gpus=where.gpus[:1]))
    (said,) = (d.message for d in served.diagnostics)
    assert "costs 11.8 min of restart" in said


def guests(*nodes: tuple[int, int | None, int | None]) -> Site:
    """GPUs, cores and GiB of each NUMA node of a hypervisor, whose GPUs are passed to guests."""
    localities = tuple(
        Locality(
            name=f"node {number} of hv-01",
            gpus=gpus,
            cores=cores,
            memory_bytes=None if gib is None else gib * GIB,
            guests=True,
            source="inventory: hosts[0]",
        )
        for number, (gpus, cores, gib) in enumerate(nodes)
    )
    return site(GPU, localities=localities, node_count=1)


NOT_PRICED = "the storage of the checkpoints of 'work' is not priced"
ONE_GPU = CHAT_8B + "    overrides: {tensor_parallel_size: 1, replicas: 1%s}\n"


def host(where: Site, more: str = "", text: str = ONE_GPU) -> tuple[float, float, list[str]]:
    """Cores and GiB of a GPU, and what is said of them."""
    answer = sized(text % more if "%s" in text else text, where)
    entries = {e.quantity.removeprefix("work."): e.value for e in answer.evidence}
    said = [d.message for d in answer.diagnostics if d.rule == "GP044"]
    return entries["cpu_cores_per_gpu"], entries["host_memory_per_gpu"] / GIB, said


def test_a_guest_has_its_part_of_the_scarcest_node_for_each_resource() -> None:
    """Of 40 cores 2 are kept: 4.75 for each of 8 GPUs, where the other node has 14 / 2. Of 1,024
    GiB a sixteenth is kept: 120 for a GPU, and of 64 GiB 8: 28 for one, but for the guest's own."""
    cores, gib, (said,) = host(guests((8, 40, 1024), (2, 16, 64)))
    assert (cores, gib) == (4, 27)
    short = "'work' gets 27 GiB instead of 80 GiB of memory per GPU"
    assert said == f"{short}: that is its part of node 1 of hv-01"


@pytest.mark.parametrize(("cores", "each"), [(10, 4), (9, 3), (34, 6)])
def test_a_guest_with_fewer_cores_than_a_gpu_wants_is_warned_of(cores: int, each: int) -> None:
    got, _, said = host(guests((2, cores, 1024)))
    short = f"'work' gets {each} instead of 4 to 8 cores per GPU: that is its part of node 0 of"
    assert got == each
    assert said == ([f"{short} hv-01"] if each < 4 else [])


def test_nobody_is_warned_of_what_was_asked_for_or_is_a_pods_or_a_share() -> None:
    few = guests((2, 6, 32))
    assert len(host(few)[2]) == 2
    assert len(host(few, ", cpu_cores_per_gpu: 1")[2]) == 1
    assert host(few, ", cpu_cores_per_gpu: 1, host_memory_per_gpu: 16 GiB")[2] == []
    pods = replace(few.gpus[0].localities[0], guests=False)
    assert host(site(GPU, localities=(pods,), node_count=1))[2] == []
    # A notebook on a seventh of a GPU has a core, which is enough.
    roomy = guests((8, 64, 2048))
    shared = replace(roomy, gpus=(replace(roomy.gpus[0], gpus_per_node=8),))
    assert host(shared, text=NOTEBOOKS)[2] == []


def test_a_node_whose_cores_or_memory_are_unknown_has_the_usual() -> None:
    assert host(guests((2, None, None)))[:2] == (6, 80)
    assert host(guests((2, None, None), (2, 8, 64)))[:2] == (3, 27)


@pytest.mark.parametrize(
    ("kept", "cores", "gib", "why"),
    [
        # (170 - 170 / 16) / 2 = 79.7, of which a guest takes 1 beside its own
        ({}, 5, 78, "constant: cores of each NUMA node for the host"),
        ({"stated_cores": 0}, 6, 78, "inventory: hosts[0], reserved_cores"),
        (
            {"stated_memory_bytes": 64 * GIB},
            5,
            52,
            "constant: cores of each NUMA node for the host",
        ),
        (
            {"numa_nodes": None},
            5,
            78,
            "default: cores of one NUMA node, where the platform names none, for the host",
        ),
    ],
)
def test_what_a_host_keeps_is_what_is_stated_or_the_default_and_is_said(
    kept: dict[str, int], cores: int, gib: int, why: str
) -> None:
    (given,) = guests((2, 12, 170)).gpus
    nodes = (replace(given.localities[0], **kept),)  # type: ignore[arg-type]
    where = site(GPU, localities=nodes, node_count=1)
    assert host(where)[:2] == (cores, gib)
    answer = sized(ONE_GPU % "", where)
    (part,) = (e for e in answer.evidence if e.quantity == "work.cores_for_a_gpu")
    assert {i.name: i.source for i in part.inputs}["kept_cores"] == why


@pytest.mark.parametrize(
    ("cores", "busy", "kept"),
    [
        ((8, 8, 8), (0,), {0: 0, 1: 4, 2: 2}),  # the first of two equals
        ((8, 3, 8), (0,), {0: 0, 1: 2, 2: 4}),  # three cores have no room for two more
        ((8, 4, 8), (0,), {0: 0, 1: 4, 2: 2}),  # four have
        ((8, 8, 8, 8), (0, 1), {0: 0, 1: 0, 2: 4, 3: 4}),
        ((8, 8, 4), (0, 1), {0: 0, 1: 2, 2: 4}),  # room for one of them
        ((8, 8), (0, 1), {0: 2, 1: 2}),
        ((8, 8), (None,), {0: 2, 1: 2}),  # nobody says where the GPU is
    ],
)
def test_a_host_keeps_its_cores_where_no_gpu_is(
    cores: tuple[int, ...], busy: tuple[int | None, ...], kept: dict[int, int]
) -> None:
    """Two of each NUMA node, else of another one's."""
    ends = [sum(cores[: n + 1]) for n in range(len(cores))]
    nodes = [{"cpus": f"{end - own}-{end - 1}"} for own, end in zip(cores, ends, strict=True)]
    spec = HostSpec.model_validate(
        {
            "names": ["one"],
            "threads_per_core": 1,
            "numa_nodes": nodes,
            "gpus": [{"type": GPU, "numa_node": node} for node in busy],
        }
    )
    assert kept_cores(spec) == kept


@pytest.mark.parametrize(
    ("distances", "keeper"),
    [
        ([10, 32, 12, 21], 2),
        ([10, 11, 12, 21], 1),
        ([10, 32, 12, 11], 3),
        ([10, 12, 12, 12], 1),  # the first of equals
        ([10, 32, 12], 1),  # of one that tells too few, none is known
        (None, 1),
    ],
)
def test_the_nearest_node_without_gpus_keeps_the_hosts_cores(
    distances: list[int] | None, keeper: int
) -> None:
    nodes = [{"cpus": f"{8 * n}-{8 * n + 7}", "distances": distances} for n in range(4)]
    spec = HostSpec.model_validate(
        {
            "names": ["one"],
            "threads_per_core": 1,
            "numa_nodes": nodes,
            "gpus": [{"type": GPU, "numa_node": 0}],
        }
    )
    assert kept_cores(spec) == {0: 0, 1: 2, 2: 2, 3: 2} | {keeper: 4}


def test_a_server_is_cut_into_equal_numa_nodes_or_not_at_all() -> None:
    (server,) = shapes(load_catalog(), GPU, Wanted(names=("dgx-h100",)))
    assert server.numa_nodes == 2
    assert server.cpu_cores is not None
    assert server.memory_bytes is not None
    half = of_shape(server, guests=True)
    assert (half.gpus, half.cores) == (4, server.cpu_cores // 2)
    assert half.memory_bytes == server.memory_bytes // 2
    for odd in (replace(server, numa_nodes=3), replace(server, numa_nodes=None)):
        whole = of_shape(odd, guests=True)
        assert (whole.gpus, whole.cores) == (8, server.cpu_cores)
        assert whole.memory_bytes == server.memory_bytes


@pytest.mark.parametrize(("cards", "each"), [(None, 50e9), (400e9, 50e9), (399e9, 49.875e9)])
def test_a_gpu_has_its_part_of_slower_cards(cards: float | None, each: float) -> None:
    assert fabric_rate(offer(GPU, cards_bytes_per_s=cards), IB, 2).value == each


@pytest.mark.parametrize(
    ("switch", "nodes", "part"), [(4, 2, 1), (4, 4, 1), (4, 5, 3), (None, 2, 3), (4, None, 3)]
)
def test_beyond_a_switch_a_gpu_has_less_of_the_fabric(
    switch: int | None, nodes: int | None, part: int
) -> None:
    """Any two nodes may be behind two switches."""
    above = replace(IB, oversubscription=3.0, nodes_per_switch=switch)
    for cards in (None, 300e9):
        where = offer(GPU, cards_bytes_per_s=cards)
        whole = fabric_rate(where, IB, nodes).value
        assert fabric_rate(where, above, nodes).value == pytest.approx(whole / part)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (CHAT_8B, "the GPUs of all replicas"),
        (CHAT_8B + "    tenancy: {isolation: node}\n", "whole nodes, as isolation 'node' asks"),
        (NOTEBOOKS, "the share of the GPUs that the partitions take"),
    ],
)
def test_the_evidence_says_why_gpus_are_taken(text: str, reason: str) -> None:
    entries = {e.quantity: e.source for e in sized(text, site("a100-sxm-80gb")).evidence}
    assert entries["work.taken_gpus"] == f"choice: {reason}"


def test_replicas_that_fill_nodes_which_are_paid_anyway_are_told_by_the_nodes() -> None:
    batch = sized(IMAGE_BATCH, site("l4", gpus_per_node=4))
    (told,) = [e for e in batch.evidence if e.quantity == "work.replicas"]
    (least,) = [e for e in batch.evidence if e.quantity == "work.least.replicas"]
    counts = {i.name: i.value for i in told.inputs}
    assert counts["paid_nodes"] == math.ceil(least.value / 4)
    assert told.value == 4 * counts["paid_nodes"] > least.value
    assert told.formula == "paid_nodes * node_replicas"


def test_the_scarcest_node_is_that_of_least_memory_after_what_its_host_keeps() -> None:
    """Of 160 GiB 100 are stated to be kept: 30 for each of 2 GPUs, of which a guest takes 1."""
    first, second = guests((2, 16, 160), (2, 16, 128)).gpus[0].localities
    nodes = (replace(first, stated_memory_bytes=100 * GIB), second)
    assert host(site(GPU, localities=nodes, node_count=1))[1] == 29


@pytest.mark.parametrize(("memory", "rules"), [("16 GB", []), ("15.9 GB", ["GP011"])])
def test_as_little_memory_as_a_gpu_should_have_at_least_is_wise(
    memory: str, rules: list[str]
) -> None:
    answer = sized(ONE_GPU % f", host_memory_per_gpu: {memory}", site(GPU))
    assert [d.rule for d in answer.diagnostics] == rules


def test_machines_are_one_offer_where_nothing_but_their_list_differs() -> None:
    def offers(*prices: float | None) -> list[tuple[int | None, tuple[str, ...]]]:
        made = (
            offer(
                GPU,
                node_count=2,
                node_names=(f"node-{number}",),
                usd_per_gpu_hour=None if p is None else Quantity(p, "USD/h", "test"),
            )
            for number, p in enumerate(prices)
        )
        found = joined(Site(target="kubernetes", gpus=tuple(made))).gpus
        return [(o.node_count, o.node_names) for o in found]

    together = [(4, ("node-0", "node-1"))]
    assert offers(4.0, 4.0) == offers(None, None) == together
    assert offers(4.0, 5.0) == offers(4.0, None) == [(2, ("node-0",)), (2, ("node-1",))]
