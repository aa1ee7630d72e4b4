"""Better packings from a packing: hosts whose content fits elsewhere are given back, and a few
hosts at a time are emptied and packed anew."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from gpuplan.fleet.solver.classes import Fleet
from gpuplan.fleet.solver.effort import PASSES, PATIENCE, RUIN_PRICES, close_tries, left_tries
from gpuplan.fleet.solver.exchange import exchange
from gpuplan.fleet.solver.insert import Ranked, insert, open_for, ranked
from gpuplan.fleet.solver.state import OpenHost, State

MOST_MOVES, MOVES_OF_1000 = 40, 4  # to save money in one answer: so many, or of those that stand


class Packer:
    """Insertion with the classes' choices, cheapest first, and a way back."""

    def __init__(self, state: State) -> None:
        self.state, self.fleet = state, state.fleet
        self.choices: list[Ranked] = [ranked(kind) for kind in state.fleet.classes]
        self.most_moves = max(MOST_MOVES, len(state.fleet.problem.kept) * MOVES_OF_1000 // 1000)
        costs = (c.cost * (len(state.where) + 1) for c in state.fleet.chassis)
        self.dearest = max(costs, default=0) + 1  # more than any change can save
        self._failed: dict[tuple[int, int], object] = {}  # class and spread, at which change
        self._closed: dict[int, tuple[object, int]] = {}  # class, at which change and hosts

    def hardness(self, item: int) -> tuple[int, float, int]:
        kind = self.fleet.classes[self.fleet.class_of[item]]
        return -kind.choices[0].gpus, -kind.size, item

    def insert(self, item: int, tries: int = 0) -> bool:
        """Into a hole, or where another makes room that has another place."""
        kind = self.fleet.class_of[item]
        choices, alike = self.choices[kind], (kind, self.fleet.spread[item])
        if self._failed.get(alike) is not self.state.change:
            if insert(self.state, item, choices):
                return True
            self._failed[alike] = self.state.change
        return tries > 0 and exchange(self.state, item, choices, self.choices, tries)

    def open_for(self, item: int) -> bool:
        """Into a new host. Where none can be had for an item, none can for the next of its class:
        that only a change or a host that is closed can mend."""
        kind, state = self.fleet.class_of[item], self.state
        if self._closed.get(kind) == (state.change, len(state.hosts)):
            return False
        if open_for(state, item, self.choices[kind]):
            return True
        self._closed[kind] = state.change, len(state.hosts)
        return False

    def empty(self, host: OpenHost) -> None:
        """Take everything off a host and give it back."""
        for item in list(host.items):
            self.state.remove(item)
        self.state.close(host)

    def price(self) -> int:
        """What the moves count; those of no price still count a little. Where they have a price,
        those beyond `most_moves` count more than all hosts: only who must move does."""
        price, moved = self.fleet.problem.move_cost, self.state.moved
        beyond = max(0, moved - self.most_moves) if price else 0
        return max(price, 1) * moved + self.dearest * beyond

    def content(self, host: OpenHost) -> float:
        """What the content of a host would cost at its cheapest, beside what the host costs."""
        return host.content / max(host.chassis.cost, 1)


def close_hosts(packer: Packer) -> None:
    """Give hosts back whose content fits the others, the emptiest first. None is tried of which the
    content at its cheapest costs as much as the host."""
    for _ in range(PASSES):
        before = packer.state.cost
        hosts = sorted(packer.state.hosts.values(), key=lambda h: (packer.content(h), h.id))
        for host in hosts:
            if packer.content(host) < 1:
                try_closing(packer, host)
        if packer.state.cost == before:
            return


def try_closing(packer: Packer, host: OpenHost) -> bool:
    state, items = packer.state, sorted(host.items, key=packer.hardness)
    before = state.cost + packer.price()
    state.begin()
    packer.empty(host)
    tries = close_tries(len(state.where))
    done = all(packer.insert(item, tries) for item in items)
    if done and state.cost + packer.price() < before:
        state.commit()
        return True
    state.undo()
    return False


def insert_all(packer: Packer, items: list[int]) -> list[int]:
    """Into holes only; who is left, hardest first."""
    order = sorted(items, key=packer.hardness)
    left = [item for item in order if not packer.insert(item)]
    tries = left_tries(len(left), len(packer.state.where))
    return [item for item in left if not packer.insert(item, 0 if packer.state.kept else tries)]


def open_all(packer: Packer, items: list[int], order: Callable[[int], Any] | None = None) -> None:
    """Into holes, else onto hosts that are opened; the hardest first, or in another order."""
    for item in sorted(items, key=order or packer.hardness):
        if not packer.insert(item):
            packer.open_for(item)


def unplaced(fleet: Fleet, state: State) -> list[int]:
    return [i for i, where in enumerate(state.where) if where is None and fleet.class_of[i] >= 0]


class Ruin:
    """Ruin and recreate: a few hosts are emptied, their content inserted in a shaken order."""

    spread = RUIN_PRICES

    def __init__(self, packer: Packer, seed: int) -> None:
        self.packer, self.state = packer, packer.state
        self.random = Random(seed)  # noqa: S311

    def run(self, work: int, bound: int) -> None:
        """Until so many places were looked at, the bound is met, or nothing was gained for long."""
        state = self.state
        end, gained, cost = state.work + work, state.work, state.cost
        while bound < state.cost and state.work < min(end, gained + work // PATIENCE):
            self._step()
            state.work += 1
            if state.cost < cost:
                gained, cost = state.work, state.cost

    def _step(self) -> None:
        state, packer = self.state, self.packer
        chosen = self._choose()
        before = (state.cost + packer.price(), state.gpus)
        items = [item for host in chosen for item in host.items]
        state.begin()
        for host in chosen:
            packer.empty(host)
        if self._recreate(items, before[0]) and (state.cost + packer.price(), state.gpus) <= before:
            state.commit()
        else:
            state.undo()

    def _choose(self) -> list[OpenHost]:
        """One to five of the emptier hosts; half the time all of one owner."""
        hosts = list(self.state.hosts.values())
        chosen: dict[int, OpenHost] = {}
        near = self.random.random() < 0.5
        for _ in range(self.random.randint(1, 5)):
            if near and chosen:
                owner = next(iter(chosen.values())).owner
                hosts = [host for host in hosts if host.owner == owner] if owner else hosts
            some = [hosts[self.random.randrange(len(hosts))] for _ in range(4)]
            best = min(some, key=lambda h: (self.packer.content(h), h.id))
            chosen[best.id] = best
        return list(chosen.values())

    def _recreate(self, items: list[int], limit: int) -> bool:
        fleet, random = self.packer.fleet, self.random
        price = [random.uniform(*self.spread) for _ in fleet.chassis]
        size = {i: fleet.classes[fleet.class_of[i]].size * random.uniform(0.7, 1.4) for i in items}
        orders: dict[int, Ranked] = {}
        order = sorted(items, key=lambda i: (self.packer.hardness(i)[0], -size[i], i))
        for item in order:
            kind = fleet.class_of[item]
            if kind not in orders:
                choices = self.packer.choices[kind]
                orders[kind] = sorted(choices, key=lambda c: c[0].share * price[c[0].chassis])
            if not insert(self.state, item, orders[kind]) and not open_for(
                self.state, item, orders[kind]
            ):
                return False
            if self.state.cost > limit:
                return False
        return True
