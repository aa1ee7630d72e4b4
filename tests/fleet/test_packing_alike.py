"""Kinds of items that differ little are packed as one, and what that costs is said."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from bench.packing.fleets import fleet
from gpuplan.fleet.problem import Card, NumaCapacity, Option, Problem, Result
from gpuplan.fleet.solver import pack
from gpuplan.fleet.solver.alike import STEPS, alike, own
from gpuplan.fleet.solver.classes import Vector, compile_fleet
from gpuplan.fleet.solver.outline.master import whole_outline
from gpuplan.fleet.solver.run import construct
from gpuplan.report.machines.pack import text, tree
from tests.fleet.test_packing_core import GB, ask, host, whole
from tests.fleet.test_packing_core import problem as core_problem
from tests.support.packing_check import faults


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuplan.fleet.solver.run.ruin_work", lambda _: 5_000)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small fleets are merged too, and whatever it costs."""
    monkeypatch.setattr("gpuplan.fleet.solver.alike.CLASSES", 0)
    monkeypatch.setattr("gpuplan.fleet.solver.alike.SMALL", 0)
    monkeypatch.setattr("gpuplan.fleet.solver.alike.WORTH", 1.0)
    monkeypatch.setattr("gpuplan.fleet.solver.alike.MOST_ERROR", 9.0)


def checked(problem: Problem) -> Result:
    result = pack(problem)
    assert faults(problem, result) == []
    assert result.bound <= result.cost
    return result


def scattered(problem: Problem) -> Problem:
    """Every request wants a little less memory than another."""

    def less(option: Option, part: int) -> Option:
        return replace(option, memory_bytes=option.memory_bytes * (100 - part) // 100)

    return replace(
        problem,
        requests=tuple(
            replace(r, options=tuple(less(o, n % 9) for o in r.options))
            for n, r in enumerate(problem.requests)
        ),
    )


def test_a_fleet_of_unlike_items_is_packed_as_one_of_fewer_kinds() -> None:
    problem = fleet("distinct", 300, 5)
    result = checked(problem)
    merged = result.merged
    assert merged is not None
    assert not result.refused
    assert merged.before == len(compile_fleet(problem).classes)
    assert merged.after < merged.before / 2
    assert 0 < merged.rounded <= 0.6


def test_a_fleet_of_few_kinds_is_packed_by_its_own_amounts() -> None:
    assert checked(fleet("mixed", 300, 5)).merged is None


def test_what_binds_is_not_rounded() -> None:
    """Cores are short there: rounding those up would buy hosts."""
    free, bound = (checked(fleet(mix, 300, 5)).merged for mix in ("distinct", "distinct-bound"))
    assert free is not None
    assert bound is not None
    assert bound.after > free.after
    assert bound.cost <= 0.0025


@pytest.mark.parametrize("mix", ["core-bound", "memory-bound", "mixed", "notebooks"])
def test_the_bound_is_one_of_the_amounts_that_were_asked(
    mix: str, monkeypatch: pytest.MonkeyPatch, always: None
) -> None:
    """No packing of the items by their own amounts costs less."""
    asked = scattered(fleet(mix, 40, 4))
    merged = checked(asked)
    assert merged.merged is not None
    assert merged.merged.after < merged.merged.before
    monkeypatch.setattr("gpuplan.fleet.solver.alike.SMALL", 10**6)
    alone = checked(asked)
    assert alone.merged is None
    assert max(merged.bound, alone.bound) <= min(merged.cost, alone.cost)


def test_a_full_fleet_is_packed_by_its_own_amounts(always: None) -> None:
    """Nobody is refused for what was rounded up."""
    problem = scattered(fleet("mixed", 120, 3))
    few = replace(problem, hosts=tuple(replace(h, available=1) for h in problem.hosts))
    result = checked(few)
    assert result.refused
    assert result.merged is None


def test_who_fits_no_host_is_in_no_kind_that_is_merged(always: None) -> None:
    """It is refused, and the others are merged as if it were not there."""
    asked = differing(3)
    wide = ask("wide", 2, whole(1, cores=500))
    result = checked(replace(asked, requests=(wide, *asked.requests)))
    assert [(r.request, r.numbers) for r in result.refused] == [("wide", (0, 1))]
    assert result.merged is not None
    assert result.merged == checked(asked).merged


def test_it_is_said_with_what_it_costs() -> None:
    problem = fleet("distinct", 300, 5)
    result = checked(problem)
    assert result.merged is not None
    said = f"{result.merged.before} kinds of items were packed as {result.merged.after}"
    assert said in " ".join(text(problem, result).split())
    assert tree(problem, result)["merged"]["after"] == result.merged.after


def differing(seed: int) -> Problem:
    """Forty items that differ in cores, memory, functions, team and priority, on one host type."""
    draw = random.Random(seed)
    node = NumaCapacity(
        gpus=tuple(range(8)), cores=64, memory_bytes=512 * GB, cards=(Card(functions=16),)
    )
    kind = replace(host(), nodes=(node, replace(node, gpus=tuple(range(8, 16)))))
    requests = []
    for n in range(40):
        option = Option(
            gpu="g",
            gpus=draw.choice((1, 1, 2)),
            cores=draw.randint(1, 9),
            memory_bytes=draw.randint(1, 60) * GB,
            functions=draw.choice((0, 1, 1)),
        )
        if draw.random() < 0.3:
            option = replace(option, gpus=0, mode="mig", part="2g")
        tenant, isolation = draw.choice((("red", "shared"), ("red", "shared"), ("blue", "node")))
        priority = draw.choice((1, 1, 2))
        more = {"tenant": tenant, "isolation": isolation, "priority": priority}
        requests.append(ask(f"r{n}", 1, option, **more))
    return core_problem(kind, *requests)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("seed", range(3))
def test_items_of_one_kind_are_rounded_to_the_most_and_the_least_of_them(
    seed: int, step: Vector, always: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the part of its share of a host that rounding adds is said, and is the step's at most."""
    monkeypatch.setattr("gpuplan.fleet.solver.alike.STEPS", (step,))
    fleet = compile_fleet(differing(seed))
    made = alike(fleet)
    assert made is not None
    assert (made.said.before, made.said.after) == (len(fleet.classes), len(made.up.classes))
    assert made.said.cost >= 0.0
    kind_of = {item: kind for kind in fleet.classes for item in kind.items}
    everything = (128, 1024 * GB, 32)
    added = [0.0, 0.0, 0.0]
    for up, down in zip(made.up.classes, made.down.classes, strict=True):
        assert up.items == down.items
        members = [kind_of[item] for item in up.items]
        assert len({(m.pools, m.priority) for m in members}) == 1
        assert {made.up.class_of[item] for item in up.items} == {up.index}
        (high,), (low,) = up.choices, down.choices
        of = [m.choices[0] for m in members]
        assert {(c.gpus, c.part) for c in of} == {(high.gpus, high.part)}
        amounts = list(zip(*(c.wanted for c in of), strict=True))
        assert high.wanted == tuple(map(max, amounts))
        assert low.wanted == tuple(map(min, amounts))
        assert (up.size, down.size) == (high.share, low.share)
        assert high.share >= max(c.share for c in of)
        share = min(c.share for c in of) / fleet.chassis[0].cost
        for n, (most, least) in enumerate(zip(high.wanted, low.wanted, strict=True)):
            added[n] = max(added[n], (most - least) / everything[n] / share)
    assert made.said.rounded == pytest.approx(max(added))
    assert all(a <= s for a, s in zip(added, step, strict=True))
    assert sorted(i for kind in made.up.classes for i in kind.items) == sorted(kind_of)


def test_the_same_packing_has_each_items_own_amounts(always: None) -> None:
    fleet = compile_fleet(differing(3))
    made = alike(fleet)
    assert made is not None
    packer = construct(made.up, whole_outline(made.up))
    mine = own(fleet, packer.state)
    for item, where in enumerate(packer.state.where):
        there = mine.state.where[item]
        assert (where is None) == (there is None)
        if where is not None and there is not None:
            assert there[2:] == where[2:]
            assert there[0] in fleet.classes[fleet.class_of[item]].choices
    assert mine.state.cost == packer.state.cost
    kept = [(h.chassis.index, h.owner, h.label) for h in mine.state.hosts.values()]
    assert kept == [(h.chassis.index, h.owner, h.label) for h in packer.state.hosts.values()]


@pytest.mark.parametrize(
    ("items", "kinds", "merged"), [(201, 83, True), (201, 82, False), (200, 150, False)]
)
def test_kinds_are_merged_where_they_are_too_many_of_many_items(
    items: int, kinds: int, merged: bool
) -> None:
    """More than eighty, and one for each hundred items; of two hundred items none."""
    sizes = [replace(whole(1, cores=1), memory_bytes=GB + n) for n in range(kinds)]
    counts = [items // kinds + (n < items % kinds) for n in range(kinds)]
    requests = [ask(f"r{n}", c, o) for n, (c, o) in enumerate(zip(counts, sizes, strict=True))]
    made = alike(compile_fleet(core_problem(host(nodes=(8,)), *requests)))
    assert (made is not None) == merged
    if made is not None:
        assert made.said.after == 1


def test_kinds_are_not_merged_where_that_would_buy_hosts() -> None:
    """Of 512 GB each wants from 60 to 102: what is rounded up by a fiftieth buys a hundredth
    more. Where GPUs are short and memory is not, the same costs nothing."""
    for memory, merged in ((1, False), (4, True)):
        node = replace(host(nodes=(8,)).nodes[0], memory_bytes=memory * 512 * GB)
        kinds = [replace(whole(1, cores=0), memory_bytes=60 * GB + n * GB // 2) for n in range(84)]
        requests = [ask(f"r{n}", 3, each) for n, each in enumerate(kinds)]
        made = alike(compile_fleet(core_problem(replace(host(), nodes=(node,)), *requests)))
        assert (made is not None) == merged
