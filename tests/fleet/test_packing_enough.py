"""A refusal says what would be enough, and who could make room: each is tried by packing again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuplan.fleet.problem import HostType, NumaCapacity, Result
from gpuplan.report.machines.pack import text, tree
from tests.fleet.test_packing_core import GB, ask, host, problem, share, solved, whole

LOW, HIGH = 0, 2


def refused(result: Result) -> int:
    return sum(len(r.numbers) for r in result.refused)


def test_so_many_hosts_more_take_all_and_one_less_does_not() -> None:
    """Five jobs of two GPUs on one host of four: two stand, three take two hosts more."""
    four, jobs = host(nodes=(4,), available=1), ask("job", 5, whole(2))
    (lacking,) = solved(four, jobs).refused
    (more,) = lacking.enough
    assert (more.host_type, more.resource, more.amount, more.items) == ("h", "hosts", 2, 3)
    assert more.cost == 2 * four.cost
    assert refused(solved(replace(four, available=2), jobs)) == 1
    assert refused(solved(replace(four, available=3), jobs)) == 0


def test_the_cheapest_type_is_named() -> None:
    """A big host takes all four for 3 USD; four small ones cost 4."""
    small = host("small", available=1)
    big = host("big", nodes=(4,), cost=3_000_000, available=1)
    result = solved((small, big), ask("job", 9, whole(1)))
    (more,) = result.refused[0].enough
    assert (more.host_type, more.amount) == ("big", 1)


def test_a_spread_group_needs_a_host_for_each() -> None:
    result = solved(host(nodes=(4,), available=1), ask("job", 4, whole(1), spread="s"))
    (more,) = [each for each in result.refused[0].enough if each.resource == "hosts"]
    assert more.amount == 3


def with_cores(kind: HostType, cores: int) -> HostType:
    nodes = tuple(replace(node, cores=cores) for node in kind.nodes)
    return replace(kind, nodes=nodes)


def test_the_cores_that_a_host_lacks_are_enough_and_no_fewer() -> None:
    """Two GPUs and 10 cores: a job of 6 stands, the next lacks 2."""
    two, jobs = host(nodes=(2,), cores=10, available=1), ask("job", 2, whole(1, cores=6))
    (lacking,) = solved(two, jobs).refused
    cores = next(each for each in lacking.enough if each.resource == "cpu_cores")
    assert (cores.host_type, cores.host, cores.amount, cores.items) == ("h", 0, 2, 1)
    assert refused(solved(with_cores(two, 11), jobs)) == 1
    assert refused(solved(with_cores(two, 12), jobs)) == 0


@pytest.mark.parametrize(
    ("cores", "gb", "lack"), [(2, 60, ("host_memory", 8 * GB)), (4, 200, ("cpu_cores", 1))]
)
def test_of_two_nodes_the_one_that_lacks_the_smaller_part_of_a_resource_is_named(
    cores: int, gb: int, lack: tuple[str, int]
) -> None:
    """A core of two or 8 GB of 60; a core of four or 148 GB of 200."""
    node = NumaCapacity(gpus=(0, 1), cores=16, memory_bytes=512 * GB)
    two = replace(host(available=1), nodes=(node, replace(node, gpus=(2, 3))))
    first = replace(whole(1, cores=17 - cores), memory_bytes=(512 - gb) * GB // 2)
    second = replace(whole(1, cores=12), memory_bytes=460 * GB)
    last = replace(whole(1, cores=cores), memory_bytes=gb * GB)
    requests = (ask("a", 1, first, priority=3), ask("b", 1, second, priority=3), ask("c", 1, last))
    (lacking,) = solved(two, *requests).refused
    assert lacking.request == "c"
    found = next(each for each in lacking.enough if each.host is not None)
    assert (found.resource, found.amount) == lack


def test_where_two_things_are_short_no_single_one_is_said_to_be_enough() -> None:
    node = NumaCapacity(gpus=(0, 1), cores=10, memory_bytes=10 * GB)
    small = replace(host(available=1), nodes=(node,))
    big = replace(whole(1), cores=6, memory_bytes=6 * GB)
    (lacking,) = solved(small, ask("job", 2, big)).refused
    assert [each.resource for each in lacking.enough] == ["hosts"]


def test_what_fits_no_host_is_promised_nothing() -> None:
    (lacking,) = solved(host(available=1), ask("job", 1, whole(1, cores=65))).refused
    assert lacking.enough == ()
    assert (lacking.requested, lacking.available) == (65, 64)


def test_for_a_higher_priority_the_lower_is_proposed_and_nothing_is_done() -> None:
    node = host(nodes=(4,), available=1)
    low, high = ask("low", 4, whole(1), priority=LOW), ask("high", 1, whole(2), priority=HIGH)
    kept = solved(node, low).placed
    result = solved(node, low, high, kept=kept)
    assert set(result.placed) == set(kept), "what stands stays"
    (proposal,) = result.preemptions
    assert proposal.placed.request == "high"
    assert len(proposal.stopped) == 2, "no more than it takes"
    gpus = {gpu for each in proposal.stopped for gpu in each.gpus}
    assert set(proposal.placed.gpus) == gpus


def test_who_has_another_place_is_moved_and_not_stopped() -> None:
    """Two hosts with a GPU free each: a pair fits where one of them moves to the other."""
    two = host(nodes=(2,), available=2)
    low, high = ask("low", 2, whole(1), priority=LOW), ask("high", 1, whole(2), priority=HIGH)
    apart = solved(two, replace(low, spread="s")).placed
    result = solved(two, low, high, kept=apart, move_cost=10**9)
    stands = {p.request for p in result.placed}
    if "high" in stands:
        assert len(result.moved) == 1
        return
    (proposal,) = result.preemptions
    assert not proposal.stopped
    assert len(proposal.moved) == 1


def test_nobody_of_the_same_priority_is_proposed() -> None:
    node = host(nodes=(2,), available=1)
    first = ask("first", 2, whole(1), priority=HIGH)
    kept = solved(node, first).placed
    assert solved(node, first, ask("next", 1, whole(1), priority=HIGH), kept=kept).preemptions == ()


def test_nobody_is_stopped_for_room_for_growth() -> None:
    node = host(nodes=(2,), available=1)
    low, high = ask("low", 1, whole(1), priority=LOW), ask("high", 1, whole(1), priority=HIGH)
    kept = solved(node, low, high).placed
    result = solved(node, low, replace(high, growth=1), kept=kept)
    assert refused(result) == 1
    assert result.preemptions == ()


def test_a_hundred_are_proposed_at_most() -> None:
    nodes = host(available=101)
    low, high = ask("low", 101, whole(1), priority=LOW), ask("high", 101, whole(1), priority=HIGH)
    result = solved(nodes, low, high, kept=solved(nodes, low).placed)
    assert refused(result) == 101
    assert len(result.preemptions) == 100


def test_the_lowest_is_proposed_first() -> None:
    node = host(nodes=(2,), available=1)
    low, normal = ask("low", 1, whole(1), priority=LOW), ask("normal", 1, whole(1))
    kept = solved(node, low, normal).placed
    high = ask("high", 1, whole(1), priority=HIGH)
    (proposal,) = solved(node, low, normal, high, kept=kept).preemptions
    assert [p.request for p in proposal.stopped] == ["low"]


def test_what_nobody_can_make_room_for_keeps_no_other_from_a_proposal() -> None:
    node = host(nodes=(2,), available=1)
    low, firm = ask("low", 1, whole(1), priority=LOW), ask("firm", 1, whole(1), priority=HIGH)
    pairs, high = ask("pairs", 2, whole(2), priority=HIGH), ask("high", 1, whole(1), priority=HIGH)
    kept = solved(node, low, firm).placed
    result = solved(node, low, firm, pairs, high, kept=kept)
    assert refused(result) == 3
    assert [p.placed.request for p in result.preemptions] == ["high"]


def test_the_report_says_both_and_json_has_them() -> None:
    node = host(nodes=(2,), available=1)
    low, high = ask("low", 2, whole(1), priority=LOW), ask("high", 1, whole(1), priority=HIGH)
    kept = solved(node, low).placed
    asked = problem(node, low, high, kept=kept)
    result = solved(node, low, high, kept=kept)
    said = " ".join(text(asked, result).split())
    assert "high: needs 1 GPU: none free on h; enough: 1 more h ($1.00/h)" in said
    assert "for high #0 (high) on h #0 GPU" in said
    assert "low #" in said
    data = tree(asked, result)
    assert data["refused"][0]["enough"][0]["resource"] == "hosts"
    assert data["preemptions"][0]["stopped"][0]["request"] == "low"


def test_a_part_is_said_to_need_a_host_where_no_gpu_has_room() -> None:
    """Eight 1g parts on one GPU of seven."""
    (lacking,) = solved(host(available=1), ask("part", 8, share("1g"))).refused
    assert lacking.resource == "gpu_partitions"
    assert [each.amount for each in lacking.enough] == [1]
