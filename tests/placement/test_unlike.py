"""Guests of one workload on hosts that are unlike inside: they have the same, and it is said what
differs around them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuplan.diagnostics import Diagnostic, Severity
from gpuplan.placement.api import Placement
from tests.placement.test_window import compiled, manifest
from tests.support.placement_hosts import card, cards, host, placed
from tests.support.placement_samples import place_hgx

TWO = host([0, 0, 1, 1], names=["even-1", "even-2"])


def told(placement: Placement) -> list[Diagnostic]:
    return [d for d in placement.diagnostics if d.rule == "GP050"]


def beside(*hosts: dict[str, Any], **changes: Any) -> list[Diagnostic]:
    """What is said of guests that fill these hosts."""
    replicas = sum(len(h["gpus"]) * len(h["names"]) for h in hosts)
    placement = placed(cards(**{"replicas": replicas} | changes), hosts=hosts)
    assert {m.host for m in placement.virtual_machines} == {n for h in hosts for n in h["names"]}
    return told(placement)


def other(gpus: list[int], **more: Any) -> dict[str, Any]:
    return host(gpus, names=["odd"], **more)


def test_hosts_are_named_with_what_tells_them_apart_and_nothing_else() -> None:
    (found,) = beside(TWO, other([0, 0, 2, 2], nodes=4, cores=16, memory=256))
    assert found.severity is Severity.INFO
    assert found.message == (
        "guests of 'tune' are on hosts that are unlike: "
        "even-1, even-2: 2 NUMA nodes, cores beside them 32+32; "
        "odd: 4 NUMA nodes, cores beside them 16+16"
    )


def with_distances(spec: dict[str, Any], far: int) -> dict[str, Any]:
    rows = [[10, far], [far, 10]]
    nodes = [n | {"distances": row} for n, row in zip(spec["numa_nodes"], rows, strict=True)]
    return spec | {"numa_nodes": nodes}


def with_memory_alone() -> dict[str, Any]:
    spec = other([0, 0, 1, 1])
    return spec | {"numa_nodes": [*spec["numa_nodes"], {"memory": "256 GiB"}]}


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (TWO, other([0, 0, 0, 1]), ["GPUs 2+2", "GPUs 3+1"]),
        (TWO, with_memory_alone(), ["0 nodes of memory alone", "1 node of memory alone"]),
        (TWO, other([0, 0, 1, 1], cores=24), ["32+32", "24+24"]),
        (TWO, other([0, 0, 1, 1], threads=1), ["2 threads a core", "1 thread a core"]),
        (
            with_distances(TWO, 21),
            with_distances(other([0, 0, 1, 1]), 32),
            ["even-1, even-2: distances 21", "odd: distances 32"],
        ),
    ],
)
def test_each_fact_is_compared(
    first: dict[str, Any], second: dict[str, Any], said: list[str]
) -> None:
    (found,) = beside(first, second)
    assert [text for text in said if text not in found.message] == []


def test_what_nobody_said_is_no_difference_nor_is_what_is_equal() -> None:
    assert beside(with_distances(TWO, 21), other([0, 0, 1, 1])) == []
    assert beside(TWO, other([0, 0, 1, 1], memory=384)) == [], "all have the memory of the least"
    assert told(place_hgx()) == []


def test_guests_of_a_replica_wait_for_the_worst_of_their_hosts() -> None:
    """Network cards count where guests get functions of them."""
    near = TWO | {"nics": [card(0, 0), card(1, 1)], "names": ["even-1"]}
    far = other([0, 0, 1, 1]) | {"nics": [card(0, 0), card(1, 0)]}
    (found,) = beside(near, far, gpus=4, replicas=1, nodes_per_replica=2)
    assert found.severity is Severity.WARNING
    assert "even-1: a network card on the NUMA node of 4 of 4 GPUs" in found.message
    assert "odd: a network card on the NUMA node of 2 of 4 GPUs" in found.message
    assert beside(near, far) == [], "nobody gets a function"


def test_of_many_hosts_three_are_named() -> None:
    many = host([0, 0, 1, 1], names=[f"even-{n}" for n in range(1, 6)])
    (found,) = beside(many, other([0, 0, 0, 1]))
    assert "even-1, even-2, even-3 and 2 more: GPUs 2+2" in found.message
    three = host([0, 0, 1, 1], names=[f"even-{n}" for n in range(1, 4)])
    (found,) = beside(three, other([0, 0, 0, 1]))
    assert "even-1, even-2, even-3: GPUs 2+2" in found.message


def test_a_pool_of_a_cluster_has_no_two_kinds_of_hosts(tmp_path: Path) -> None:
    """So that nothing is to be said there: what does not fit on hosts of one kind is refused."""
    kinds = [{**TWO, "names": ["even"]}, other([0] * 4, nodes=1, cores=64)]
    for spec in kinds:
        spec.pop("hypervisor")
    result = compiled(tmp_path, manifest("kubernetes", 3, "gpu"), *kinds)
    assert [p.node_names for p in result.stacks[0].plan.node_pools] == [("even",)]
    refused = compiled(tmp_path, manifest("kubernetes", 7, "gpu"), *kinds)
    assert not refused.stacks
    assert any("all nodes of a workload are of one kind" in p.label for p in refused.problems)
