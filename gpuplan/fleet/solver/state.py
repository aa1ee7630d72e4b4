"""Hosts in use: what is free on every node and GPU, and where every item stands."""

from __future__ import annotations

from itertools import count
from operator import add, sub
from typing import Any

from gpuplan.fleet.solver.chassis import Amounts, Chassis
from gpuplan.fleet.solver.classes import Choice, Fleet, Pool

Spot = tuple[int, int, int, int | None, int, int]  # chassis, label, GPUs, start, geometry, part
Where = tuple[Choice, int, int, int | None, Pool]  # choice, host, GPUs as bits, start, pool
Standing = tuple[int, int, int, int, Pool]  # chassis, geometry, part, GPUs, pool
Place = tuple[int, int]  # host, its GPU or node
Bucket = dict[int, dict[Place, None]]


def kind_of(choice: Choice, pool: Pool) -> Standing:
    """Items of one kind take equal room on GPUs."""
    return choice.chassis, choice.geometry, choice.part, choice.gpus, pool


class OpenHost:
    """One host. `gpu_state[g]`: the state of the geometry `gpu_mode[g]`, 0 where nobody shares it.
    `left`: what each node has left. `content`: what its items cost at their cheapest, in micro-USD
    per hour."""

    __slots__ = (
        "chassis",
        "content",
        "free",
        "gpu_mode",
        "gpu_owner",
        "gpu_state",
        "groups",
        "id",
        "items",
        "label",
        "left",
        "owner",
    )  # fmt: skip

    def __init__(self, number: int, chassis: Chassis, owner: str | None, label: int) -> None:
        self.id, self.chassis, self.owner, self.label = number, chassis, owner, label
        self.left = [*chassis.room]
        self.free = chassis.mask
        self.gpu_mode: list[int | None] = [None] * chassis.gpus
        self.gpu_state = [0] * chassis.gpus
        self.gpu_owner: list[str | None] = [None] * chassis.gpus
        self.items: dict[int, None] = {}
        self.groups: set[int] = set()
        self.content = 0

    def holds(self, node: int, wanted: Amounts) -> bool:
        (cores, memory, functions), left = wanted, self.left[node]
        return cores <= left[0] and memory <= left[1] and functions <= left[2]

    def take(self, node: int, wanted: Amounts) -> None:
        cores, memory, functions = map(sub, self.left[node], wanted)
        self.left[node] = cores, memory, functions

    def give(self, node: int, wanted: Amounts) -> None:
        cores, memory, functions = map(add, self.left[node], wanted)
        self.left[node] = cores, memory, functions


class State:
    """`shared` lists GPUs with room by (chassis, pool, geometry) and state; `nodes` lists nodes by
    (chassis, owner) and free GPUs."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.hosts: dict[int, OpenHost] = {}
        self.labels: list[dict[int, int]] = [{} for _ in fleet.chassis]
        self.where: list[Where | None] = [None] * len(fleet.request)
        self.shared: dict[tuple[int, str | None, str | None, int | None], Bucket] = {}
        self.nodes: dict[tuple[int, str | None], Bucket] = {}
        self.standing: dict[Standing, dict[int, None]] = {}
        self._journal: list[tuple[Any, ...]] | None = None
        self.kept: dict[int, Spot] = {}  # where items stood before
        self.moved = 0  # items of `kept` that stand elsewhere now
        self.cost = self.gpus = 0  # of hosts in use, and GPUs taken
        self.size = [round(kind.size) for kind in fleet.classes]
        self.work = 0  # places looked at: the clock of what must not depend on the machine
        self.spreads = {k for k, g in zip(fleet.class_of, fleet.spread, strict=True) if g >= 0}
        self.change = object()  # while it is the same, what found no place finds none
        self._numbers = count()
        self._lowest = [0] * len(fleet.chassis)

    def begin(self) -> None:
        """From here on `undo` can bring all back."""
        self._journal = []

    def undo(self) -> None:
        """All as it was when the last `begin` was called."""
        journal, self._journal = self._journal or [], None
        for step, *arguments in reversed(journal):
            if step == "put":
                self.remove(arguments[0])
            elif step == "remove":
                self.put(arguments[0], arguments[1])
            elif step == "open":
                self.close(self.hosts[arguments[0]])
            else:
                self._open(*arguments)

    def commit(self) -> None:
        self._journal = None

    def _note(self, step: tuple[Any, ...]) -> None:
        if self._journal is not None:
            self._journal.append(step)

    def can_open(self, chassis: int) -> bool:
        available = self.fleet.chassis[chassis].available
        return available is None or len(self.labels[chassis]) < available

    def open(self, chassis: int, owner: str | None, label: int | None = None) -> OpenHost:
        """A new host, under the lowest free number of its type."""
        host = self._open(chassis, owner, label, next(self._numbers))
        self._note(("open", host.id))
        return host

    def _open(self, chassis: int, owner: str | None, label: int | None, number: int) -> OpenHost:
        self.change = object()
        if label is None:
            label = self._lowest[chassis]
            while label in self.labels[chassis]:
                label += 1
            self._lowest[chassis] = label
        host = OpenHost(number, self.fleet.chassis[chassis], owner, label)
        self.labels[chassis][label] = host.id
        self.hosts[host.id] = host
        self.cost += host.chassis.cost
        for node, mask in enumerate(host.chassis.masks):
            self._list_node(host, node, mask.bit_count())
        return host

    def close(self, host: OpenHost) -> None:
        """Give an empty host back."""
        assert not host.items, "a host with workloads cannot be closed"
        self._note(("close", host.chassis.index, host.owner, host.label, host.id))
        for node, mask in enumerate(host.chassis.masks):
            self._unlist_node(host, node, mask.bit_count())
        del self.labels[host.chassis.index][host.label]
        self._lowest[host.chassis.index] = min(self._lowest[host.chassis.index], host.label)
        del self.hosts[host.id]
        self.cost -= host.chassis.cost

    def close_empty(self) -> None:
        for host in [host for host in self.hosts.values() if not host.items]:
            self.close(host)

    def _list_node(self, host: OpenHost, node: int, free: int) -> None:
        lists = self.nodes.setdefault((host.chassis.index, host.owner), {})
        lists.setdefault(free, {})[host.id, node] = None

    def _unlist_node(self, host: OpenHost, node: int, free: int) -> None:
        del self.nodes[host.chassis.index, host.owner][free][host.id, node]

    def _set_free(self, host: OpenHost, mask: int) -> None:
        """The host's free GPUs become `mask`."""
        for node, _ in host.chassis.parts_of(mask ^ host.free):
            gpus = host.chassis.masks[node]
            self._unlist_node(host, node, (host.free & gpus).bit_count())
            self._list_node(host, node, (mask & gpus).bit_count())
        self.gpus += host.free.bit_count() - mask.bit_count()
        host.free = mask

    def _bucket(self, host: OpenHost, gpu: int, state: int) -> dict[Place, None]:
        key = (host.chassis.index, host.owner, host.gpu_owner[gpu], host.gpu_mode[gpu])
        return self.shared.setdefault(key, {}).setdefault(state, {})

    def put(self, item: int, where: Where) -> None:
        choice, number, mask, start, pool = where
        self._note(("put", item))
        self.change = object()
        self.work += 2
        self.standing.setdefault(kind_of(choice, pool), {})[item] = None
        host = self.hosts[number]
        self.where[item] = where
        if item in self.kept and self.spot(item) != self.kept[item]:
            self.moved += 1
        host.items[item] = None
        host.content += self.size[self.fleet.class_of[item]]
        if self.fleet.spread[item] >= 0:
            host.groups.add(self.fleet.spread[item])
        if choice.whole:
            for node, gpus in host.chassis.parts_of(mask):
                host.take(node, choice.on(gpus))
            self._set_free(host, host.free & ~mask)
            return
        gpu = mask.bit_length() - 1
        host.take(host.chassis.node_of[gpu], choice.wanted)
        self._share(host, gpu, choice, start, pool)

    def _share(
        self, host: OpenHost, gpu: int, choice: Choice, start: int | None, pool: Pool
    ) -> None:
        geometry, before = self.fleet.geometries[choice.geometry], host.gpu_state[gpu]
        if before:
            del self._bucket(host, gpu, before)[host.id, gpu]
        else:
            self._set_free(host, host.free & ~(1 << gpu))
            host.gpu_mode[gpu], host.gpu_owner[gpu] = choice.geometry, pool[1]
        after = geometry.at(before, choice.part, start)
        assert after is not None, "an illegal layout"
        host.gpu_state[gpu] = after
        self._bucket(host, gpu, after)[host.id, gpu] = None

    def remove(self, item: int) -> Where:
        where = self.where[item]
        assert where is not None, "not placed"
        choice, number, mask, start, pool = where
        self._note(("remove", item, where))
        self.change = object()
        del self.standing[kind_of(choice, pool)][item]
        host = self.hosts[number]
        if item in self.kept and self.spot(item) != self.kept[item]:
            self.moved -= 1
        self.where[item] = None
        del host.items[item]
        host.content -= self.size[self.fleet.class_of[item]]
        host.groups.discard(self.fleet.spread[item])
        if choice.whole:
            for node, gpus in host.chassis.parts_of(mask):
                host.give(node, choice.on(gpus))
            self._set_free(host, host.free | mask)
            return where
        gpu = mask.bit_length() - 1
        host.give(host.chassis.node_of[gpu], choice.wanted)
        self._unshare(host, gpu, choice, start)
        return where

    def _unshare(self, host: OpenHost, gpu: int, choice: Choice, start: int | None) -> None:
        before = host.gpu_state[gpu]
        del self._bucket(host, gpu, before)[host.id, gpu]
        after = self.fleet.geometries[choice.geometry].drop(before, choice.part, start)
        host.gpu_state[gpu] = after
        if after:
            self._bucket(host, gpu, after)[host.id, gpu] = None
        else:
            host.gpu_mode[gpu] = host.gpu_owner[gpu] = None
            self._set_free(host, host.free | 1 << gpu)

    def may_stand(self, item: int, host: OpenHost) -> bool:
        return self.fleet.spread[item] not in host.groups

    def spot(self, item: int) -> Spot | None:
        """Where an item stands, by names that outlive a host's number."""
        where = self.where[item]
        if where is None:
            return None
        choice, number, mask, start, _ = where
        host = self.hosts[number]
        return host.chassis.index, host.label, mask, start, choice.geometry, choice.part

    def remaining(self) -> list[int | None]:
        """Hosts of each type that can still be had."""
        return [
            None
            if chassis.available is None
            else chassis.available - len(self.labels[chassis.index])
            for chassis in self.fleet.chassis
        ]
