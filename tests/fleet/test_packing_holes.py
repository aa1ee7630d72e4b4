"""Where an item goes: the tightest hole, or the place of another that has another place."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from gpuplan.fleet.solver.classes import Choice, Pool, compile_fleet
from gpuplan.fleet.solver.exchange import exchange
from gpuplan.fleet.solver.improve import Packer, try_closing
from gpuplan.fleet.solver.insert import find, insert, on_host, open_for
from gpuplan.fleet.solver.state import OpenHost, State, Where, kind_of
from tests.support.packing_problems import problem

SEEDS = range(40)
FREE = 1000.0  # more than any GPU's room counts


def packed(seed: int, gone: float = 0.3) -> Packer:
    """Items each in the first place that is there; then some are gone, so that there are holes."""
    packer, draw = Packer(State(compile_fleet(problem(seed, 9)))), random.Random(seed)
    state = packer.state
    for item in range(len(state.where)):
        if packer.fleet.class_of[item] >= 0 and not packer.insert(item):
            packer.open_for(item)
    for item, where in enumerate(state.where):
        if where is not None and draw.random() < gone:
            state.remove(item)
    return packer


def absent(packer: Packer) -> list[int]:
    where, classes = packer.state.where, packer.fleet.class_of
    return [i for i in range(len(where)) if where[i] is None and classes[i] >= 0]


def holes(
    state: State, item: int, choice: Choice, pool: Pool, hosts: list[OpenHost]
) -> list[float]:
    """How tight each place of one node is: what the GPU would still hold; else, after all of these,
    the node's free GPUs."""
    found = []
    for host in hosts:
        if (host.chassis.index, host.owner) != (choice.chassis, pool[0]):
            continue
        if not state.may_stand(item, host):
            continue
        for node, mask in enumerate(host.chassis.masks):
            if host.holds(node, choice.wanted):
                found += _on_node(state, host, mask, choice, pool)
    return found


def spans(state: State, item: int, choice: Choice, pool: Pool, host: OpenHost) -> bool:
    """Whether the host has GPUs on several nodes for the item."""
    mine = (host.chassis.index, host.owner) == (choice.chassis, pool[0])
    if not choice.whole or not mine or not state.may_stand(item, host):
        return False
    sets = host.chassis.spans(host.free, choice.gpus)
    parts = (host.chassis.parts_of(mask) for mask in sets)
    return any(all(host.holds(node, choice.on(n)) for node, n in each) for each in parts)


def _on_node(
    state: State, host: OpenHost, mask: int, choice: Choice, pool: Pool
) -> Iterator[float]:
    free = host.free & mask
    if choice.whole:
        if host.chassis.within_node(choice.gpus) and host.chassis.pick(free, choice.gpus):
            yield FREE + free.bit_count()
        return
    geometry = state.fleet.geometries[choice.geometry]
    for gpu in range(host.chassis.gpus):
        shared = (host.gpu_mode[gpu], host.gpu_owner[gpu]) == (choice.geometry, pool[1])
        if mask >> gpu & 1 and shared:
            added = geometry.add(host.gpu_state[gpu], choice.part)
            if added is not None:
                yield geometry.value(added[0])
    if free:
        yield FREE + free.bit_count()


def tightness(state: State, where: Where) -> float:
    choice, number, mask, _, _ = where
    host = state.hosts[number]
    gpu = mask.bit_length() - 1
    if not choice.whole and host.gpu_state[gpu]:
        geometry = state.fleet.geometries[choice.geometry]
        added = geometry.add(host.gpu_state[gpu], choice.part)
        assert added is not None
        return geometry.value(added[0])
    return FREE + (host.free & host.chassis.masks[host.chassis.node_of[gpu]]).bit_count()


Wish = tuple[int, Choice, Pool]


def wishes(packer: Packer) -> Iterator[Wish]:
    for item in absent(packer):
        for choice, pool in packer.choices[packer.fleet.class_of[item]]:
            yield item, choice, pool


def stands_tightest(state: State, wish: Wish, hosts: list[OpenHost], where: Where | None) -> bool:
    """Whether `where` is the tightest place of `hosts`; or none, where they have none."""
    if tight := holes(state, *wish, hosts):
        return where is not None and tightness(state, where) == min(tight)
    return (where is not None) == any(spans(state, *wish, host) for host in hosts)


@pytest.mark.parametrize("seed", SEEDS)
def test_of_all_holes_for_a_choice_it_is_the_tightest(seed: int) -> None:
    packer = packed(seed)
    state = packer.state
    for item, choice, pool in wishes(packer):
        where = find(state, item, choice, pool)
        assert stands_tightest(state, (item, choice, pool), list(state.hosts.values()), where)
        if where is not None and choice.whole:
            assert where[3] is None, "whole GPUs have no start"


@pytest.mark.parametrize("seed", SEEDS)
def test_of_the_holes_of_one_host_a_part_takes_the_tightest(seed: int) -> None:
    packer = packed(seed)
    state = packer.state
    for item, choice, pool in wishes(packer):
        for host in state.hosts.values():
            if (host.chassis.index, host.owner) != (choice.chassis, pool[0]):
                continue
            where = on_host(state, host, choice, pool)
            if state.may_stand(item, host) and not choice.whole:
                assert stands_tightest(state, (item, choice, pool), [host], where)
            elif state.may_stand(item, host):
                room = holes(state, item, choice, pool, [host])
                assert (where is not None) == bool(room or spans(state, item, choice, pool, host))
                assert where is None or where[3] is None


def swaps(packer: Packer, item: int) -> bool:
    """Whether an item of the same kind could go to a hole, so that `item` has its place."""
    state = packer.state
    for choice, pool in packer.choices[packer.fleet.class_of[item]]:
        for other, where in enumerate(list(state.where)):
            if where is None or kind_of(where[0], where[4]) != kind_of(choice, pool):
                continue
            state.begin()
            state.remove(other)
            host, parts = state.hosts[where[1]], state.hosts[where[1]].chassis.parts_of(where[2])
            fits = all(host.holds(node, choice.on(gpus)) for node, gpus in parts)
            works = fits and state.may_stand(item, host)
            if works:
                state.put(item, (choice, *where[1:]))
                works = insert(state, other, packer.choices[packer.fleet.class_of[other]])
            state.undo()
            if works:
                return True
    return False


@pytest.mark.parametrize("seed", SEEDS)
def test_an_item_takes_anothers_place_exactly_where_that_one_has_another(seed: int) -> None:
    packer = packed(seed)
    state = packer.state
    for item in absent(packer):
        before = list(state.where)
        expected = swaps(packer, item)
        choices = packer.choices[packer.fleet.class_of[item]]
        assert exchange(state, item, choices, packer.choices, 10_000) == expected
        if expected:
            assert state.where[item] is not None
            gone = [a for a, b in zip(before, state.where, strict=True) if a is not None and not b]
            changed = sum(a != b for a, b in zip(before, state.where, strict=True))
            assert not gone
            assert changed <= 2
        else:
            assert state.where == before


@pytest.mark.parametrize("seed", SEEDS)
def test_a_host_is_given_back_only_with_everybody_elsewhere_and_for_less(seed: int) -> None:
    packer = packed(seed)
    state = packer.state
    standing = [i for i, where in enumerate(state.where) if where is not None]
    state.kept = {i: spot for i in standing if (spot := state.spot(i)) is not None}
    for host in list(state.hosts.values()):
        if not host.items:
            continue
        before, cost, items = list(state.where), state.cost, list(host.items)
        if try_closing(packer, host):
            assert all(state.where[item] is not None for item in standing)
            assert state.cost == cost - host.chassis.cost
            assert state.moved >= len(items)
        else:
            assert state.where == before
            assert state.cost == cost


def opens(packer: Packer, item: int) -> bool:
    """Whether an item has a place on a new host, by somebody who remembers nothing."""
    packer.state.begin()
    done = open_for(packer.state, item, packer.choices[packer.fleet.class_of[item]])
    packer.state.undo()
    return done


@pytest.mark.parametrize("seed", SEEDS)
def test_what_found_no_new_host_finds_one_when_a_host_was_given_back(seed: int) -> None:
    for item in absent(packed(seed)):
        packer = packed(seed)
        if packer.open_for(item):
            continue
        packer.state.close_empty()
        found = packer.open_for(item)
        if found:
            packer.state.remove(item)
            packer.state.close_empty()
        assert found == opens(packer, item)
