"""Fleets that are too small, with every rule: who has a place, and what a refusal says, against
every host and every way to stand on it."""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

import pytest

from gpuplan.fleet.problem import Card, Option, Placed, Problem, Request, Result
from gpuplan.fleet.solver import pack
from gpuplan.fleet.solver.classes import Fleet, compile_fleet
from gpuplan.fleet.solver.full.additions import RESOURCES
from tests.support import packing_problems as small
from tests.support.packing_check import Room, Where, _rooms, _stands, _tries, faults

SEEDS = range(40)
Left = tuple[Fraction, ...]


def tight(seed: int) -> Problem:
    """One or two hosts of each type, for up to eight requests of three priorities."""
    draw = random.Random(seed)
    asked = small.problem(seed, 8)
    hosts = tuple(replace(kind, available=draw.choice((1, 1, 2))) for kind in asked.hosts)
    requests = tuple(replace(r, priority=draw.choice((0, 1, 2))) for r in asked.requests)
    return replace(asked, hosts=hosts, requests=requests)


@functools.cache
def packed(seed: int) -> tuple[Problem, Result]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpuplan.fleet.solver.run.ruin_work", lambda _: 3_000)
        asked = tight(seed)
        return asked, pack(asked)


@functools.cache
def later(seed: int) -> tuple[Problem, Result]:
    """The same where those of the lowest priority stand already, and stay; no host is one team's
    own, which it stays while anybody of the team is there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpuplan.fleet.solver.run.ruin_work", lambda _: 3_000)
        asked = tight(seed)
        shared = {"node": "shared"}
        requests = tuple(
            replace(r, priority=min(r.priority, 1), isolation=shared.get(r.isolation, r.isolation))
            for r in asked.requests
        )
        low = tuple(r for r in requests if not r.priority)
        kept = pack(replace(asked, requests=low)).placed if low else ()
        asked = replace(asked, requests=requests, kept=kept)
        return asked, pack(asked)


class Standing:
    """The hosts of an answer, and what an item counts."""

    def __init__(self, asked: Problem, result: Result) -> None:
        self.asked, self.fleet = asked, compile_fleet(asked)
        self.requests = {r.name: r for r in asked.requests}
        self.rooms, wrong = _rooms(asked, result)
        assert wrong == []

    def rank(self, request: str, number: int) -> int:
        asked = self.requests[request]
        return asked.priority if number < asked.count else -1

    def gpus(self, request: str, number: int) -> Fraction:
        fleet: Fleet = self.fleet
        return fleet.classes[fleet.class_of[fleet.items[request, number]]].gpus

    def left(self, items: list[tuple[str, int]]) -> Left:
        """GPUs without a place, of the highest rank first."""
        ranks = range(2, -2, -1)
        each = [(self.rank(*item), self.gpus(*item)) for item in items]
        return tuple(sum((g for r, g in each if r == rank), Fraction()) for rank in ranks)

    def near(self, request: Request, number: int, room: Room) -> bool:
        """Whether one of its group is there."""
        spread = request.spread if number < request.count else None
        return spread is not None and any(
            r.spread == spread and p.number < r.count for p, r, _ in room.items
        )

    def fits(self, request: Request, number: int, place: Where, room: Room) -> bool:
        if self.near(request, number, room):
            return False
        tries = _tries(self.asked, room, request, number, place)
        return any(_stands(self.asked, room, one) for one in tries)

    def prefixes(
        self, request: Request, number: int, *, priority: bool
    ) -> Iterator[tuple[Where, list[Placed]]]:
        """Of each host who leaves it for the item where those go first that count least, as few as
        will do; `priority`: only those of a lower one."""
        mine = (self.rank(request.name, number), self.gpus(request.name, number))
        for place, room in sorted(self.rooms.items()):
            counted = [
                ((self.rank(p.request, p.number), self.gpus(p.request, p.number)), p)
                for p, _, _ in room.items
            ]
            order = self.fleet.items
            lesser = sorted(
                (
                    pair
                    for pair in counted
                    if (pair[0][0] < mine[0] if priority else pair[0] < mine)
                ),
                key=lambda pair: (*pair[0], -order[pair[1].request, pair[1].number]),
            )
            gone: list[Placed] = []
            for _, other in lesser:
                gone.append(other)
                stay = [item for item in room.items if item[0] not in gone]
                if self.fits(request, number, place, Room(room.kind, stay)):
                    yield place, gone
                    break


def refused(asked: Problem, result: Result) -> list[tuple[Request, int]]:
    """Those without a place that a larger fleet would have one for."""
    requests, fleet = {r.name: r for r in asked.requests}, compile_fleet(asked)
    items = [(requests[r.request], number) for r in result.refused for number in r.numbers]
    return [i for i in items if fleet.class_of[fleet.items[i[0].name, i[1]]] >= 0]


def with_more(room: Room, node: int, resource: str, amount: float) -> Room:
    """The host with so much more on one NUMA node."""
    nodes = [*room.kind.nodes]
    there, more = nodes[node], int(amount)
    if resource == "cpu_cores":
        nodes[node] = replace(there, cores=there.cores + more)
    elif resource == "host_memory":
        nodes[node] = replace(there, memory_bytes=there.memory_bytes + more)
    else:
        nodes[node] = replace(there, cards=(*there.cards, Card(functions=more)))
    return Room(replace(room.kind, nodes=tuple(nodes)), room.items)


def lacking(room: Room, option: Option) -> Iterator[tuple[int, str, int, int]]:
    """What of a resource each node may lack for its part: node, resource, so much of so much."""
    used = _used(room)
    for number, node in enumerate(room.kind.nodes):
        wide = min(option.gpus or 1, len(node.gpus))
        there = (node.cores, node.memory_bytes, sum(card.functions for card in node.cards))
        wanted = (option.cores, option.memory_bytes, option.functions)
        for n, (resource, _) in enumerate(RESOURCES):
            part = -(-wanted[n] * wide // (option.gpus or 1))
            missing = part - there[n] + used[number, n]
            if missing > 0:
                yield number, resource, missing, part


def _used(room: Room) -> Counter[tuple[int, int]]:
    used: Counter[tuple[int, int]] = Counter()
    for placed, _, option in room.items:
        for number, node in enumerate(room.kind.nodes):
            here = len(set(placed.gpus) & set(node.gpus))
            for n, amount in enumerate((option.cores, option.memory_bytes, option.functions)):
                used[number, n] += -(-amount * here // len(placed.gpus))
    return used


def names(items: list[Placed]) -> list[tuple[str, int]]:
    return [(p.request, p.number) for p in items]


@pytest.mark.parametrize("seed", SEEDS)
def test_nobody_counts_less_than_who_could_stand_in_its_place(seed: int) -> None:
    asked, result = packed(seed)
    assert faults(asked, result) == []
    standing = Standing(asked, result)
    for request, number in refused(asked, result):
        without = standing.left([(request.name, number)])
        for place, gone in standing.prefixes(request, number, priority=False):
            assert standing.left(names(gone)) >= without, (place, gone)


@pytest.mark.parametrize("made", [packed, later])
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_proposed_makes_room_and_stops_least(
    seed: int, made: Callable[[int], tuple[Problem, Result]]
) -> None:
    asked, result = made(seed)
    standing = Standing(asked, result)
    waiting = refused(asked, result)
    possible = [
        item for item in waiting if any(True for _ in standing.prefixes(*item, priority=True))
    ]
    assert bool(result.preemptions) == bool(possible)
    if not possible:
        return
    first = result.preemptions[0]
    item = standing.requests[first.placed.request], first.placed.number
    ranks = [(standing.rank(r.name, n), standing.gpus(r.name, n)) for r, n in possible]
    assert (standing.rank(item[0].name, item[1]), standing.gpus(item[0].name, item[1])) == max(
        ranks
    )
    ways = [standing.left(names(gone)) for _, gone in standing.prefixes(*item, priority=True)]
    assert standing.left(names(list(first.stopped))) <= min(ways)
    after = {(p.request, p.number): p for p in result.placed}
    for stopped in first.stopped:
        assert replace(after.pop((stopped.request, stopped.number)), cards=()) == stopped
    for move in first.moved:
        after[move.before.request, move.before.number] = move.after
    after[first.placed.request, first.placed.number] = first.placed
    without = replace(result, placed=tuple(replace(p, cards=()) for p in after.values()))
    bare = replace(
        asked,
        requests=tuple(
            replace(r, options=tuple(replace(o, functions=0) for o in r.options))
            for r in asked.requests
        ),
    )
    rooms, wrong = _rooms(bare, without)
    assert wrong == []
    for place, room in rooms.items():
        one, rest = room.items[0], room.items[1:]
        assert _stands(bare, Room(room.kind, rest), one), place


@pytest.mark.parametrize("seed", SEEDS)
def test_the_smallest_part_of_a_resource_that_makes_room_is_told(seed: int) -> None:
    asked, result = packed(seed)
    standing = Standing(asked, result)
    waiting = dict(refused(asked, result)[::-1])
    for told in result.refused:
        request = standing.requests[told.request]
        said = [each for each in told.enough if each.resource != "hosts"]
        if request not in waiting:
            assert told.enough == ()
            continue
        number = told.numbers[0]
        enough = {
            (Fraction(missing, part), resource, missing)
            for place, room in standing.rooms.items()
            for option in request.options
            if option.gpu == room.kind.gpu
            for node, resource, missing, part in lacking(room, option)
            if standing.fits(request, number, place, with_more(room, node, resource, missing))
        }
        assert bool(said) == bool(enough), (told, enough)
        if said:
            least = min(enough)[0]
            assert (said[0].resource, said[0].amount) in {e[1:] for e in enough if e[0] == least}
            place = (said[0].host_type, said[0].host or 0)
            room = standing.rooms[place]
            assert not any(
                standing.fits(
                    request,
                    number,
                    place,
                    with_more(room, node, said[0].resource, said[0].amount - 1),
                )
                for node in range(len(room.kind.nodes))
            )
