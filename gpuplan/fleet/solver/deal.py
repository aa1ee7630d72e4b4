"""An outline onto real hosts: whole-GPU workloads and layouts to the least loaded nodes, then items
to slots of their part, the hardest first."""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from operator import itemgetter, sub

from gpuplan.fleet.solver.classes import Vector, portions
from gpuplan.fleet.solver.effort import DEAL_LOOKS
from gpuplan.fleet.solver.insert import on_host
from gpuplan.fleet.solver.outline.formulate import Load, NodeGroup, Slots, slot_list
from gpuplan.fleet.solver.outline.master import Outline
from gpuplan.fleet.solver.shares import (
    Dealt,
    Unit,
    fills,
    layout_units,
    means,
    slots_of,
    split,
    vector,
    whole_units,
)
from gpuplan.fleet.solver.state import OpenHost, State


@dataclass(slots=True)
class Bench:
    """A node that is being filled. `free`: GPUs that nobody has, as bits; `dealt`: the expected
    load, as shares."""

    host: OpenHost
    node: int
    order: int
    free: int
    dealt: list[float]

    def used(self) -> float:
        """The largest share of the node that is taken."""
        room = self.host.chassis.room[self.node]
        return max(portions(list(map(sub, room, self.host.left[self.node])), room))


Entry = tuple[float, int, Bench]
FreeSlot = tuple[float, int, Bench, int, int | None]  # load, order, node, GPU, start


@dataclass(slots=True)
class Table:
    state: State
    hosts: dict[tuple[int, str | None], list[OpenHost]] = field(default_factory=dict)
    benches: dict[NodeGroup, list[Bench]] = field(default_factory=dict)
    slots: dict[tuple[Slots, int], list[FreeSlot]] = field(default_factory=dict)


def deal(state: State, outline: Outline, items: dict[int, list[int]]) -> None:
    """Place what the outline says of `items`, which are those of each class; some find no place."""
    table = Table(state)
    for (chassis, owner), number in outline.hosts.items():
        ready = table.hosts.setdefault((chassis, owner), [])
        while len(ready) < number and state.can_open(chassis):
            ready.append(state.open(chassis, owner))
    shares = split(outline.loads, items)
    big = [s for s in shares if s[0].choice.whole and fills(state.fleet, s[0])]
    for load, chosen in sorted(big, key=lambda s: -s[0].choice.gpus):
        _place_big(table, load, chosen)
    _set_benches(table)
    _seat_all(table, outline, shares)
    _fill(table, shares)


def _place_big(table: Table, load: Load, chosen: list[int]) -> None:
    """Workloads that take a node or more, host by host."""
    ready, first = table.hosts.get((load.choice.chassis, load.pool[0]), []), 0
    for item in chosen:
        for n in range(first, len(ready)):
            fit = table.state.may_stand(item, ready[n])
            where = on_host(table.state, ready[n], load.choice, load.pool) if fit else None
            if where is not None:
                table.state.put(item, where)
                first = n
                break


def _set_benches(table: Table) -> None:
    for (chassis, owner), ready in table.hosts.items():
        for host in ready:
            for node, kind in enumerate(host.chassis.kind_of):
                free = host.free & host.chassis.masks[node]
                if free:
                    seats = table.benches.setdefault((chassis, owner, kind), [])
                    seats.append(Bench(host, node, len(seats), free, [0.0, 0.0, 0.0]))


def _seat_all(table: Table, outline: Outline, shares: list[Dealt]) -> None:
    fleet = table.state.fleet
    units, typical = whole_units(fleet, shares), means(fleet, shares)
    for group, benches in table.benches.items():
        mine = units.get(group, [])
        layouts = [o for o in outline.layouts if (o[0][0], o[0][1][0], o[0][2]) == group]
        free = sum(bench.free.bit_count() for bench in benches) - sum(u.gpus for u in mine)
        mine += layout_units(fleet, layouts, typical, free)
        _seat(table, benches, mine)


def _seat(table: Table, benches: list[Bench], units: list[Unit]) -> None:
    """Biggest first, each to the least loaded node that has the GPUs."""
    heap: list[Entry] = [(max(bench.dealt), bench.order, bench) for bench in benches]
    heapify(heap)
    for unit in sorted(units, key=lambda u: (-u.gpus, -max(u.load))):
        skipped: list[Entry] = []
        while heap and len(skipped) < DEAL_LOOKS:
            entry = heappop(heap)
            bench = entry[2]
            if _take(table, bench, unit):
                _grow(bench, unit.load)
                if bench.free:
                    heappush(heap, (max(bench.dealt), bench.order, bench))
                break
            skipped.append(entry)
        for entry in skipped:
            heappush(heap, entry)


def _grow(bench: Bench, load: Vector) -> None:
    for n, amount in enumerate(load):
        bench.dealt[n] += amount


def _take(table: Table, bench: Bench, unit: Unit) -> bool:
    host, state, choice = bench.host, table.state, unit.choice
    if choice is None:
        _reserve(table, bench, unit)
        return True
    mask = host.chassis.pick(bench.free, choice.gpus)
    if (
        not mask
        or not host.holds(bench.node, choice.wanted)
        or not state.may_stand(unit.item, host)
    ):
        return False
    state.put(unit.item, (choice, host.id, mask, None, unit.pool))
    bench.free &= ~mask
    return True


def _reserve(table: Table, bench: Bench, unit: Unit) -> None:
    """A GPU of the node for the layout; its slots wait for items."""
    assert unit.slots is not None, "a unit without a choice is a layout"
    mask = bench.host.chassis.single(bench.free)
    bench.free &= ~mask
    for part, start in slot_list(table.state.fleet, unit.slots[3], unit.layout):
        waiting = table.slots.setdefault((unit.slots, part), [])
        waiting.append((0.0, len(waiting), bench, mask, start))


def _fill(table: Table, shares: list[Dealt]) -> None:
    """Items to slots of their part, on the least loaded nodes."""
    queue = []
    for load, chosen in shares:
        if not load.choice.whole:
            chassis = table.state.fleet.chassis[load.choice.chassis]
            queue.append((-max(vector(chassis, load.node, load.choice)), load, chosen))
    for _, load, chosen in sorted(queue, key=itemgetter(0)):
        waiting = table.slots.get((slots_of(load), load.choice.part), [])
        for item in chosen:
            _to_slot(table.state, item, load, waiting)


def _to_slot(state: State, item: int, load: Load, waiting: list[FreeSlot]) -> None:
    choice = load.choice
    skipped: list[FreeSlot] = []
    while waiting and len(skipped) < DEAL_LOOKS:
        slot = heappop(waiting)
        bench = slot[2]
        used = bench.used()
        if used > slot[0] + 1e-12:
            heappush(waiting, (used, *slot[1:]))
        elif bench.host.holds(bench.node, choice.wanted) and state.may_stand(item, bench.host):
            state.put(item, (choice, bench.host.id, slot[3], slot[4], load.pool))
            break
        else:
            skipped.append(slot)
    for slot in skipped:
        heappush(waiting, slot)
